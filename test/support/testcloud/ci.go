package testcloud

import (
	"fmt"
	"maps"
	"net/http"
)

// GHCR and GitLabRegistry are the registries of CI systems, gitlab issues the tokens of the second one, and runner those of jobs.
const (
	GHCR           = "ghcr.io"
	GitLabRegistry = "registry.gitlab.com"
	gitlab         = "gitlab.com"
	runner         = "run-actions-1-azure-eastus.actions.githubusercontent.com"
)

// jobUsers lists the users of jobs.
var jobUsers = map[string]string{GHCR: "octocat", GitLabRegistry: "gitlab-ci-token"}

// systems lists the CI systems.
type systems struct{ *Cloud }

// environment returns the variables of a job's identity, or nil for another identity.
func (c systems) environment(identity string) map[string]string {
	grants := func(use string) string {
		token := secret("job-token")
		c.grant(token, grant{use: use})
		return token
	}
	actions := map[string]string{"ACTIONS_ID_TOKEN_REQUEST_URL": "https://" + runner + "/token?api-version=2.0", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": grants(runner)}
	selects := map[string]map[string]string{
		AWSWebIdentity: {"AWS_ROLE_ARN": role, "AWS_EC2_METADATA_DISABLED": "true"},
		AzureWorkload:  {"AZURE_TENANT_ID": tenant, "AZURE_CLIENT_ID": client, "AZURE_TOKEN_CREDENTIALS": "", "IDENTITY_ENDPOINT": ""},
		GCPFederated:   {"GCP_WORKLOAD_IDENTITY_PROVIDER": pool[len("//iam.googleapis.com/"):]},
	}
	env := map[string]string{}
	switch identity {
	case "github":
		return map[string]string{"GITHUB_SERVER_URL": "https://github.com", "GITHUB_ACTOR": jobUsers[GHCR], "GITHUB_TOKEN": grants(GHCR)}
	case "gitlab":
		return map[string]string{"CI_REGISTRY": GitLabRegistry, "CI_REGISTRY_USER": jobUsers[GitLabRegistry], "CI_JOB_TOKEN": grants(GitLabRegistry)}
	case "github-" + AWSWebIdentity, "github-" + AzureWorkload, "github-" + GCPFederated:
		maps.Copy(env, actions)
		maps.Copy(env, selects[identity[len("github-"):]])
		return env
	case "gitlab-" + AWSWebIdentity:
		maps.Copy(env, selects[AWSWebIdentity])
		env["GITLAB_OIDC_TOKEN"] = c.account.token("sts.amazonaws.com")
		c.grant(env["GITLAB_OIDC_TOKEN"], grant{use: awsSTS})
		return env
	}
	return nil
}

// jobToken issues an OIDC token for the audience that a job requests.
func (c systems) jobToken(w http.ResponseWriter, r *http.Request) {
	if _, err := c.valid(bearer(r), runner); err != nil || r.URL.Path != "/token" || c.is(Denied) {
		http.Error(w, "no permission id-token", http.StatusForbidden)
		return
	}
	token := c.account.token(r.URL.Query().Get("audience"))
	c.grant(token, grant{use: "provider"})
	respond(w, http.StatusOK, map[string]string{"value": token})
}

// registryToken exchanges the token of a job for a registry token.
func (c systems) registryToken(w http.ResponseWriter, r *http.Request) {
	registry := r.URL.Query().Get("service")
	user, password, _ := r.BasicAuth()
	_, err := c.valid(password, registry)
	if err != nil || user != jobUsers[registry] {
		refuse(w, http.StatusUnauthorized, "UNAUTHORIZED", fmt.Sprintf("user %s: %v", user, err))
		return
	}
	token := secret("registry-token")
	c.grant(token, grant{use: "bearer " + registry})
	respond(w, http.StatusOK, map[string]string{"token": token})
}
