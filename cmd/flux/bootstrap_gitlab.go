package main

import (
	"net/http"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/pkg/bootstrap/githost"
)

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
