package bootstrap

import (
	"net/http"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/pkg/bootstrap/githost"
)

func bitbucketRow() hostRow {
	return hostRow{
		word: "bitbucket-server", name: "Bitbucket Server", tokenEnv: "BITBUCKET_TOKEN", below: true, spaced: true,
		scopes: `It is an HTTP access token with the permissions
project admin, to create the repository, or repository admin, to add keys and groups.`,
		owner: "the key or name of the project, or the user, that owns the repository",
		teams: teamWords{flag: "group", permission: "write", permissions: githost.BitbucketPermissions(), spaced: true},
		extra: func(o *hostedFlags, fs *pflag.FlagSet) {
			fs.StringVarP(&o.username, "username", "u", "git", "the user name that goes with the token over HTTP")
		},
		example: `  # A private repository of a project, with an access key for the cluster
  BITBUCKET_TOKEN=… flux bootstrap bitbucket-server --hostname=bitbucket.example.com --owner=PLAT --repository=fleet --path=clusters/production

  # The same, with access for a group
  flux bootstrap bitbucket-server --hostname=bitbucket.example.com --owner=PLAT --repository=fleet --path=clusters/production --group=operators:read

  # A repository of your own; the cluster uses the token over HTTP
  flux bootstrap bitbucket-server --hostname=example.com/bitbucket --owner=me --repository=fleet --personal --username=me --token-auth --path=clusters/home`,
		host: func(h githost.Hosted, client *http.Client, o *hostedFlags) (githost.Host, error) {
			return githost.NewBitbucket(h, o.username, client), nil
		},
	}
}

// giteaRow is the row of Gitea and Forgejo.
func giteaRow() hostRow {
	return hostRow{
		word: "gitea", name: "Gitea or Forgejo", tokenEnv: "GITEA_TOKEN", hostname: "gitea.com",
		owner: "the organisation that owns the repository, or the user with --personal",
		scopes: `It needs
the scope write:repository; write:user or write:organization too, to make a
repository of yours or of an organisation; and read:organization to give a team
access.`,
		teams: teamWords{flag: "team", permission: "read", permissions: githost.GiteaPermissions()},
		example: `  # A private repository of an organisation, and access for two of its teams
  GITEA_TOKEN=… flux bootstrap gitea --owner=acme --repository=fleet --team=ops:write --team=dev --path=clusters/production

  # A repository of your own on a server of your own, with its certificate authority
  flux bootstrap gitea --hostname=git.example.com:3000 --ca-file=./ca.crt --owner=me --personal --repository=fleet --path=clusters/production < token

  # The cluster uses the token over HTTPS, instead of a deploy key over SSH
  GITEA_TOKEN=… flux bootstrap gitea --owner=acme --repository=fleet --token-auth --path=clusters/production`,
		host: func(h githost.Hosted, client *http.Client, _ *hostedFlags) (githost.Host, error) {
			return githost.NewGitea(h, client), nil
		},
	}
}

func gitlabRow() hostRow {
	return hostRow{
		word: "gitlab", name: "GitLab", tokenEnv: "GITLAB_TOKEN", hostname: "gitlab.com", below: true,
		scopes: `It needs the scope api; with --token-auth and
a project that is there, read_api and write_repository are enough.`,
		owner: "the user or group that owns the project, subgroups after slashes", nested: true,
		visibilities: []string{"private", "internal", "public"}, visibility: "private",
		teams: teamWords{flag: "team", permission: "maintain", permissions: githost.GitLabPermissions()},
		extra: func(o *hostedFlags, fs *pflag.FlagSet) {
			fs.BoolVar(&o.deployToken, "deploy-token-auth", false, "let the cluster use a deploy token of the project that only reads it")
			_ = fs.MarkHidden("private") // --visibility says more
		},
		example: `  # A private project in a subgroup, with a deploy key for the cluster
  GITLAB_TOKEN=… flux bootstrap gitlab --owner=acme/platform --repository=fleet --path=clusters/production

  # The same, with access for another group
  flux bootstrap gitlab --owner=acme/platform --repository=fleet --path=clusters/production --team=acme/operators:developer

  # A project of your own; the cluster uses a deploy token that only reads it
  flux bootstrap gitlab --owner=me --repository=fleet --personal --path=clusters/home --deploy-token-auth

  # A GitLab of your own, below a path and with a certificate authority of its own
  flux bootstrap gitlab --hostname=example.com/gitlab --ca-file=./ca.crt --owner=acme --repository=fleet --path=clusters/production`,
		host: func(h githost.Hosted, client *http.Client, _ *hostedFlags) (githost.Host, error) {
			return githost.NewGitLab(h, client)
		},
	}
}

// hostRow is a Git host with an API: all that its command is made of.
type hostRow struct {
	// word is the command's, name the host's.
	word, name string
	// tokenEnv is the variable with the token, scopes what the token has to allow.
	tokenEnv, scopes string
	// hostname is the default one, "" where it has to be given.
	hostname string
	// below says that the host may live below a path, as in example.com/git.
	below bool
	// owner says what owns a repository; nested says that slashes lead to subgroups.
	owner  string
	nested bool
	// spaced says that owners may have spaces in their names.
	spaced bool
	// visibilities are the words of --visibility, visibility its default; nil
	// where there is --private only.
	visibilities []string
	visibility   string
	teams        teamWords
	// extra adds the flags that no other host has; nil for none.
	extra   func(*hostedFlags, *pflag.FlagSet)
	example string
	// host makes the row's Host.
	host func(githost.Hosted, *http.Client, *hostedFlags) (githost.Host, error)
}

// hostRows are the Git hosts with an API.
func hostRows() []hostRow {
	return []hostRow{githubRow(), gitlabRow(), giteaRow(), bitbucketRow()}
}

func githubRow() hostRow {
	return hostRow{
		word: "github", name: "GitHub", tokenEnv: "GITHUB_TOKEN", hostname: "github.com",
		scopes: `A classic token needs the scope repo, and
read:org for teams; a fine-grained one the permissions Contents (write) and
Administration (write), Pull requests (write) for --pull-request and Members
(read) for teams.`,
		owner:        "the user or organisation that owns the repository",
		visibilities: []string{"private", "internal", "public"}, visibility: "private",
		teams: teamWords{flag: "team", permission: "maintain", permissions: githost.GitHubPermissions()},
		example: `  # A private repository of an organisation, with a deploy key for the cluster
  GITHUB_TOKEN=… flux bootstrap github --owner=acme --repository=fleet --path=clusters/production

  # The same, with access for teams
  flux bootstrap github --owner=acme --repository=fleet --path=clusters/production --team=platform --team=developers:pull

  # A repository of your own, with the token of the program gh
  flux bootstrap github --owner=me --repository=fleet --personal --path=clusters/home --token-from=gh

  # GitHub Enterprise; the cluster uses the token too
  flux bootstrap github --hostname=github.example.com --ca-file=./ca.crt --owner=acme --repository=fleet --path=clusters/production --token-auth`,
		host: func(h githost.Hosted, client *http.Client, _ *hostedFlags) (githost.Host, error) {
			return githost.NewGitHub(h, client)
		},
	}
}
