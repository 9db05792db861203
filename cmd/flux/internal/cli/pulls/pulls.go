// Package pulls connects to the host of a pull request, with the token in the environment.
package pulls

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/ci"
	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/rest"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/secrets/redact"
)

// NoTokenError is returned if no variable contains a token.
type NoTokenError struct{ err error }

func (e *NoTokenError) Error() string { return e.err.Error() }

// Unwrap returns the error with the remedy.
func (e *NoTokenError) Unwrap() error { return e.err }

// Connect returns the repository of a pull request with the token, and the client of its host.
func Connect(a *app.App, p ci.PullRequest) (githost.Hosted, *http.Client, error) {
	hosted, err := hosted(p)
	if err != nil {
		return hosted, nil, err
	}
	host := githost.PullRequestHosts()[p.Host]
	if hosted.TokenOrigin, hosted.Token = token(a, p); hosted.Token == "" {
		return hosted, nil, &NoTokenError{hint.Errorf("pass the token to this step; it requires "+host.Permissions, "no token for %s: %s is not set", host.Name, hosted.TokenOrigin)}
	}
	if strings.ContainsAny(hosted.Token, " \t\r\n") {
		return hosted, nil, fmt.Errorf("the token in %s contains a space or a line break: set only the token", hosted.TokenOrigin)
	}
	a.Secrets.Add(hosted.Token)
	if hosted.Scheme == "http" {
		a.UI.Warning("%s is an http:// URL: the token is sent unencrypted", p.Origin)
	}
	if hosted.CABundle, err = certificates(p.CAFile); err != nil {
		return hosted, nil, err
	}
	caller := rest.Caller{UserAgent: "flux/" + a.Build.Version, Now: a.Now, Waiting: a.UI.Waiting}
	client, err := caller.Client(hosted)
	return hosted, client, err
}

// token returns the token and its variable. Gitea and Forgejo Actions also set the variable of
// GitHub.
func token(a *app.App, p ci.PullRequest) (variable, token string) {
	variables := githost.PullRequestHosts()[p.Host].TokenVariables
	if p.Host == ci.Gitea && strings.HasSuffix(p.System, "Actions") {
		variables = append(variables[:len(variables):len(variables)], "GITHUB_TOKEN")
	}
	for _, name := range variables {
		if value := strings.TrimSpace(a.Env(name)); value != "" {
			return name, value
		}
	}
	return variables[0], ""
}

// hosted returns the repository of a pull request.
func hosted(p ci.PullRequest) (githost.Hosted, error) {
	u, err := url.Parse(p.Server)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return githost.Hosted{}, hint.Errorf("set it to the URL of the Git host", "invalid URL %q in %s", redact.URL(p.Server), p.Origin)
	}
	owner, name := path.Split(p.Repository)
	owner = strings.Trim(owner, "/")
	for _, part := range append(strings.Split(owner, "/"), name) {
		if part == "" || strings.Trim(part, ".") == "" || strings.ContainsAny(part, "?#%\\ ") {
			return githost.Hosted{}, hint.Errorf("check the variables of "+p.System, "invalid repository %q", p.Repository)
		}
	}
	return githost.Hosted{
		Hostname: u.Host, Scheme: u.Scheme, BasePath: strings.Trim(u.Path, "/"), Owner: owner, Name: name, Origin: p.Origin, CAOrigin: "SSL_CERT_FILE",
	}, nil
}

// maxCertificates is the maximum size of the file with CA certificates.
const maxCertificates = 1 << 20

func certificates(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading the CA certificate of the Git host: %w", err)
	}
	defer func() { _ = file.Close() }()
	text, err := budget.ReadAll(file, name, "the file", maxCertificates)
	if err != nil {
		return nil, fmt.Errorf("reading the CA certificate of the Git host: %w", err)
	}
	return text, nil
}
