package main

import (
	"net/http"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/pkg/bootstrap/githost"
)

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
