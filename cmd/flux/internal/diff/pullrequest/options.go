// Package pullrequest has the flags of diff that write the result to the pull
// request of a CI system.
package pullrequest

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/ci"
	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/provider"
	"github.com/fluxkit/flux/internal/githost/rest"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/secrets/redact"
)

// Options holds the flags for publishing the result.
type Options struct {
	comment     bool
	key, status string
}

// Add adds the flags.
func (o *Options) Add(fs *pflag.FlagSet) {
	fs.BoolVar(&o.comment, "comment", false, "create or update a comment with the result on the pull request of the CI system")
	fs.StringVar(&o.key, "comment-key", "", "key that identifies the comment on the pull request (default: the value of --path)")
	fs.StringVar(&o.status, "status", "", "name of the commit status to set, e.g. flux/production")
}

// maxKey is the maximum length of a key in bytes.
const maxKey = 200

// Open returns the Gate for the pull request of the CI system, nil without the flags. By default,
// the cluster directories identify the comment.
func (o *Options) Open(a *app.App, paths []string) (*Gate, error) {
	flag := "--comment"
	if !o.comment {
		flag = "--status"
	}
	switch {
	case !o.comment && o.key != "":
		return nil, hint.Errorf("add --comment, or omit --comment-key", "--comment-key requires --comment")
	case !o.comment && o.status == "":
		return nil, nil // the result is not written to a pull request
	case len(o.key) > maxKey || strings.ContainsAny(o.key, "\r\n"):
		return nil, hint.Errorf("use a short name, e.g. production", "invalid --comment-key: must be one line of at most %d bytes", maxKey)
	}
	p := ci.Read(a.Env)
	switch {
	case p.System == "":
		return nil, hint.Errorf("run it in the pipeline of a pull request, or write the comment to a file with -o github=FILE", "%s: no CI system found in the environment", flag)
	case p.Number == 0:
		return nil, hint.Errorf("run this command only for pull requests, or omit "+flag, "%s: %s runs without a pull request", flag, p.System)
	case !p.Known():
		return nil, hint.Errorf("write the comment to a file with -o github=FILE, and post it in another step", "%s: the variables of %s do not contain the URL of a supported Git host", flag, p.System)
	}
	g := &Gate{Options: *o, app: a, request: p, host: githost.PullRequestHosts()[p.Host]}
	if g.key == "" {
		var folders []string
		for _, folder := range paths {
			folders = append(folders, path.Clean(folder))
		}
		g.key = strings.Join(folders, " ")
	}
	return g, g.open()
}

// open reads the token and the address of the host.
func (g *Gate) open() error {
	hosted, err := hosted(g.request)
	if err != nil {
		return err
	}
	if hosted.TokenOrigin, hosted.Token = g.token(); hosted.Token == "" {
		if g.request.Fork {
			return nil // Post reports it
		}
		return hint.Errorf("pass the token to this step; it requires "+g.host.Permissions, "no token for %s: %s is not set", g.host.Name, hosted.TokenOrigin)
	}
	if strings.ContainsAny(hosted.Token, " \t\r\n") {
		return fmt.Errorf("the token in %s contains a space or a line break: set only the token", hosted.TokenOrigin)
	}
	g.app.Secrets.Add(hosted.Token)
	if hosted.Scheme == "http" {
		g.app.UI.Warning("%s is an http:// URL: the token is sent unencrypted", g.request.Origin)
	}
	if hosted.CABundle, err = certificates(g.request.CAFile); err != nil {
		return err
	}
	caller := rest.Caller{UserAgent: "flux/" + g.app.Build.Version, Now: g.app.Now, Waiting: g.app.UI.Waiting}
	var client *http.Client
	if client, err = caller.Client(hosted); err != nil {
		return err
	}
	g.pull = provider.OpenPull(g.request.Host, hosted, g.request.Number, client)
	return nil
}

// token returns the token and its variable. Gitea and Forgejo Actions also set the variable of
// GitHub.
func (g *Gate) token() (variable, token string) {
	variables := g.host.TokenVariables
	if g.request.Host == ci.Gitea && strings.HasSuffix(g.request.System, "Actions") {
		variables = append(variables[:len(variables):len(variables)], "GITHUB_TOKEN")
	}
	for _, name := range variables {
		if value := strings.TrimSpace(g.app.Env(name)); value != "" {
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
