package bootstrap

import (
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/githost/provider"
)

func bitbucketRow() hostRow {
	return hostRow{
		word: "bitbucket-server", name: "Bitbucket Server", tokenEnv: "BITBUCKET_TOKEN", below: true, spaced: true,
		scopes: `It must be an HTTP access token. Creating
the repository requires the permission project admin; adding access keys and
groups requires repository admin.`,
		owner: "key or name of the project, or the user, that owns the repository",
		teams: teamWords{flag: "group", permission: "write", spaced: true},
		extra: func(o *hostedFlags, fs *pflag.FlagSet) {
			fs.StringVarP(&o.username, "username", "u", "git", "user name for the token over HTTPS")
		},
		example: `  # Use a private repository of a project with an access key for the cluster
  BITBUCKET_TOKEN=… flux bootstrap bitbucket-server --hostname=bitbucket.example.com --owner=PLAT --repository=fleet --path=clusters/production

  # Grant a group access to the repository
  flux bootstrap bitbucket-server --hostname=bitbucket.example.com --owner=PLAT --repository=fleet --path=clusters/production --group=operators:read

  # Use a personal repository; the cluster authenticates with the token over HTTPS
  flux bootstrap bitbucket-server --hostname=example.com/bitbucket --owner=me --repository=fleet --personal --username=me --token-auth --path=clusters/home`,
	}
}

// giteaRow returns the hostRow for Gitea and Forgejo.
func giteaRow() hostRow {
	return hostRow{
		word: "gitea", name: "Gitea or Forgejo", tokenEnv: "GITEA_TOKEN", hostname: "gitea.com",
		owner: "organization that owns the repository, or the user with --personal",
		scopes: `It requires the scope write:repository.
Creating a repository also requires write:user or write:organization,
depending on the owner. Granting teams access requires read:organization.`,
		teams: teamWords{flag: "team", permission: "read"},
		example: `  # Use a private repository of an organization and grant two teams access
  GITEA_TOKEN=… flux bootstrap gitea --owner=acme --repository=fleet --team=ops:write --team=dev --path=clusters/production

  # Use a personal repository on a self-hosted server with a custom certificate authority
  flux bootstrap gitea --hostname=git.example.com:3000 --ca-file=./ca.crt --owner=me --personal --repository=fleet --path=clusters/production < token

  # Authenticate the cluster with the token over HTTPS instead of an SSH deploy key
  GITEA_TOKEN=… flux bootstrap gitea --owner=acme --repository=fleet --token-auth --path=clusters/production`,
	}
}

func gitlabRow() hostRow {
	return hostRow{
		word: "gitlab", name: "GitLab", tokenEnv: "GITLAB_TOKEN", tokenCLI: "glab", hostname: "gitlab.com", below: true,
		scopes: `It requires the scope api; with --token-auth and an
existing project, read_api and write_repository are sufficient.`,
		owner: "user or group that owns the project; subgroups as GROUP/SUBGROUP", nested: true,
		visibilities: []string{"private", "internal", "public"}, visibility: "private",
		teams: teamWords{flag: "team", permission: "maintain"},
		extra: func(o *hostedFlags, fs *pflag.FlagSet) {
			fs.BoolVar(&o.deployToken, "deploy-token-auth", false, "authenticate the cluster with a read-only deploy token of the project")
			_ = fs.MarkHidden("private") // replaced by --visibility
		},
		example: `  # Use a private project in a subgroup with a deploy key for the cluster
  GITLAB_TOKEN=… flux bootstrap gitlab --owner=acme/platform --repository=fleet --path=clusters/production

  # Grant another group access to the project
  flux bootstrap gitlab --owner=acme/platform --repository=fleet --path=clusters/production --team=acme/operators:developer

  # Use a personal project; the cluster authenticates with a read-only deploy token
  flux bootstrap gitlab --owner=me --repository=fleet --personal --path=clusters/home --deploy-token-auth

  # Use self-hosted GitLab with a relative URL and a custom certificate authority
  flux bootstrap gitlab --hostname=example.com/gitlab --ca-file=./ca.crt --owner=acme --repository=fleet --path=clusters/production`,
	}
}

// hostRow describes a Git host with an API and its command.
type hostRow struct {
	// word is the command name, the same as in package ci. name is the name of the host.
	word, name string
	// tokenEnv is the environment variable with the token, scopes the help text on
	// its required scopes.
	tokenEnv, scopes string
	// tokenCLI is the host CLI that stores tokens, or "".
	tokenCLI string
	// hostname is the default hostname, or "" if it is required.
	hostname string
	// below reports whether the host may be served below a path, as in example.com/git.
	below bool
	// owner is the help text of --owner; nested reports whether owners may have subgroups.
	owner  string
	nested bool
	// spaced reports whether names of owners may contain spaces.
	spaced bool
	// visibilities lists the values of --visibility, visibility is its default;
	// nil if the host supports only --private.
	visibilities []string
	visibility   string
	teams        teamWords
	// extra registers the flags that only this host has; it may be nil.
	extra   func(*hostedFlags, *pflag.FlagSet)
	example string
	host    provider.Host
}

// hostRows returns the Git hosts with an API.
func hostRows() []hostRow {
	rows := []hostRow{githubRow(), gitlabRow(), giteaRow(), bitbucketRow()}
	for i := range rows {
		rows[i].host = provider.Hosts()[rows[i].word]
		rows[i].teams.permissions = rows[i].host.Permissions
	}
	return rows
}

func githubRow() hostRow {
	return hostRow{
		word: "github", name: "GitHub", tokenEnv: "GITHUB_TOKEN", tokenCLI: "gh", hostname: "github.com",
		scopes: `A classic token requires the scope repo, and
read:org for teams. A fine-grained token requires the permissions Contents (write) and
Administration (write), Pull requests (write) for --pull-request, and Members (read)
for teams.`,
		owner:        "user or organization that owns the repository",
		visibilities: []string{"private", "internal", "public"}, visibility: "private",
		teams: teamWords{flag: "team", permission: "maintain"},
		example: `  # Use a private repository of an organization with a deploy key for the cluster
  GITHUB_TOKEN=… flux bootstrap github --owner=acme --repository=fleet --path=clusters/production

  # Grant teams access to the repository
  flux bootstrap github --owner=acme --repository=fleet --path=clusters/production --team=platform --team=developers:pull

  # Use a personal repository with the token of the gh CLI
  flux bootstrap github --owner=me --repository=fleet --personal --path=clusters/home --token-from=gh

  # Use GitHub Enterprise Server; the cluster authenticates with the token
  flux bootstrap github --hostname=github.example.com --ca-file=./ca.crt --owner=acme --repository=fleet --path=clusters/production --token-auth`,
	}
}
