package cloud

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"

	"github.com/fluxkit/flux/internal/web"
	"github.com/fluxkit/flux/internal/web/webhook"
)

// GitLab is the provider of the container registry of a GitLab server.
const GitLab = "gitlab"

// gitlabToken is the variable with the OIDC token of a GitLab job. The job configures the audience of the token.
const gitlabToken = "GITLAB_OIDC_TOKEN" // the name of a variable

// jobLogin returns the credentials that a CI system provides to jobs for its own registry. It sends no request.
func jobLogin(r Request, env func(string) string) (Credentials, error) {
	missing := func(name string) (Credentials, error) {
		return Credentials{}, &Error{r, Identify, name + " is not set"}
	}
	registry, user, password := githubRegistry(env("GITHUB_SERVER_URL")), "GITHUB_ACTOR", "GITHUB_TOKEN"
	if r.Provider == GitLab {
		registry, user, password = env("CI_REGISTRY"), "CI_REGISTRY_USER", "CI_JOB_TOKEN"
	}
	switch {
	case registry == "":
		return missing("CI_REGISTRY")
	case registry != r.Registry:
		return Credentials{}, &Error{r, CheckRegistry, ""}
	case env(user) == "":
		return missing(user)
	case env(password) == "":
		return missing(password)
	}
	return Credentials{env(user), env(password)}, nil
}

// githubRegistry returns the container registry of a GitHub server. The registry of github.com has a separate domain.
func githubRegistry(server string) string {
	if u, err := url.Parse(server); err == nil && u.Host != "" && u.Host != "github.com" {
		return "containers." + u.Host
	}
	return "ghcr.io"
}

// federation describes how a provider accepts the OIDC tokens of a CI system.
type federation struct {
	// annotations maps the ServiceAccount annotations that select an identity to the variables that hold their
	// values. All variables in required must be set, and none in others, which select another identity.
	annotations      map[string]string
	required, others []string
}

var federations = map[string]federation{
	AWS: {
		map[string]string{"eks.amazonaws.com/role-arn": "AWS_ROLE_ARN"},
		[]string{"AWS_ROLE_ARN"},
		[]string{"AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"},
	},
	Azure: {
		map[string]string{"azure.workload.identity/tenant-id": "AZURE_TENANT_ID", "azure.workload.identity/client-id": "AZURE_CLIENT_ID"},
		[]string{"AZURE_TENANT_ID", "AZURE_CLIENT_ID"},
		[]string{"AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PATH", "AZURE_USERNAME", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_TOKEN_CREDENTIALS"},
	},
	GCP: {
		map[string]string{"gcp.auth.fluxcd.io/workload-identity-provider": "GCP_WORKLOAD_IDENTITY_PROVIDER", "iam.gke.io/gcp-service-account": "GCP_SERVICE_ACCOUNT"},
		[]string{"GCP_WORKLOAD_IDENTITY_PROVIDER"},
		[]string{"GOOGLE_APPLICATION_CREDENTIALS"},
	},
}

// federated returns the annotations that select the identity for a CI system's OIDC token, nil without such a token or
// if the environment selects another identity.
func federated(provider string, env func(string) string) map[string]string {
	f, set := federations[provider], func(name string) bool { return env(name) != "" }
	unset := func(name string) bool { return !set(name) }
	if !set(gitlabToken) && !set(webhook.ActionsURL) || len(f.required) == 0 || slices.ContainsFunc(f.required, unset) || slices.ContainsFunc(f.others, set) {
		return nil
	}
	annotations := map[string]string{}
	for name, variable := range f.annotations {
		if set(variable) {
			annotations[name] = env(variable)
		}
	}
	return annotations
}

// jobToken returns the OIDC token of a job for the audience that the helper process requests.
func (c *Client) jobToken(ctx context.Context, query json.RawMessage) (any, error) {
	var audience string
	if err := json.Unmarshal(query, &audience); err != nil {
		return nil, err
	}
	token := c.env(gitlabToken)
	if c.env(webhook.ActionsURL) != "" {
		client, err := web.Client{}.HTTP()
		if err != nil {
			return nil, err
		}
		if token, err = webhook.ActionsToken(ctx, client, c.env, audience); err != nil {
			return nil, err
		}
	}
	c.mask("", token)
	return token, nil
}
