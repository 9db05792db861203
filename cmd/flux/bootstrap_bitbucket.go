package main

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
