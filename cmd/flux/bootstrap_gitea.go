package main

import (
	"net/http"

	"github.com/fluxkit/flux/pkg/bootstrap/githost"
)

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
