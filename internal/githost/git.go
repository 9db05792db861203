package githost

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/secrets/redact"
)

// Git is a repository on a Git server without an API. The user creates the repository and grants keys access to it.
type Git struct {
	// Access contains the credentials and the URL, as returned by ParseURL.
	Access Access
	// TokenAuth stores the password or token of Access in the source Secret
	// instead of an SSH key.
	TokenAuth bool
	// SSHHostname is the SSH host and port if they differ from Access.
	SSHHostname string
	// SSHUsername is the SSH user if Access does not specify one.
	SSHUsername string
	// Confirm shows a public key and returns when the user has granted it access.
	Confirm func(ctx context.Context, key DeployKey) error
	// CanConfirm returns an error if the user cannot be prompted.
	CanConfirm func() error
}

// Survey implements Host. It sends no request: cloning shows whether the
// repository exists.
func (g Git) Survey(ctx context.Context, _ Want) (Survey, error) {
	repository, err := g.Ensure(ctx)
	return Survey{Repository: repository, Exists: true}, err
}

// Ensure implements Host. The user has created the repository.
func (g Git) Ensure(context.Context) (Repository, error) {
	u, err := url.Parse(g.Access.URL)
	if err != nil {
		return Repository{}, fmt.Errorf("invalid repository URL: %w", err)
	}
	if g.TokenAuth {
		return Repository{Access: g.Access, SyncURL: overHTTP(*u)}, nil
	}
	return Repository{Access: g.Access, SyncURL: g.overSSH(*u)}, nil
}

// overHTTP returns the HTTP URL for a password or token.
func overHTTP(u url.URL) string {
	u.User = nil
	if u.Scheme == "ssh" {
		// Remove the SSH port, and use TLS to protect the password.
		u.Scheme, u.Host = "https", bare(u)
	}
	return u.String()
}

// overSSH returns the SSH URL for a key.
func (g Git) overSSH(u url.URL) string {
	if u.Scheme != "ssh" {
		u.Host, u.User = bare(u), nil // the port and user apply to HTTP
	}
	if u.User == nil {
		u.User = url.User(g.SSHUsername)
	}
	if g.SSHHostname != "" {
		u.Host = g.SSHHostname
	}
	u.Scheme = "ssh"
	return u.String()
}

// bare returns the host without the port. IPv6 addresses are in brackets.
func bare(u url.URL) string {
	if name := u.Hostname(); strings.Contains(name, ":") {
		return "[" + name + "]"
	}
	return u.Hostname()
}

// DeployKey implements Host.
func (g Git) DeployKey(ctx context.Context, key DeployKey) error { return g.Confirm(ctx, key) }

// CanDeployKey implements Preparer.
func (g Git) CanDeployKey() error {
	if g.CanConfirm == nil {
		return nil
	}
	return g.CanConfirm()
}

// ParseURL parses the URL of a repository. Plain HTTP must be allowed
// explicitly, because it sends credentials unencrypted.
func ParseURL(address string, allowHTTP bool) (*url.URL, error) {
	const example = "as in --url=ssh://git@example.com/org/fleet or --url=https://example.com/org/fleet"
	if address == "" {
		return nil, hint.Errorf("set --url, "+example, "a repository URL is required")
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return nil, notAnURL(address, example)
	}
	_, hasPassword := u.User.Password()
	switch {
	case u.Scheme == "http" && !allowHTTP:
		return nil, hint.Errorf("use https, or set --allow-insecure-http", "an http URL sends credentials unencrypted")
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "ssh":
		return nil, hint.Errorf("use ssh or https, "+example, "unsupported URL scheme %q in --url", u.Scheme)
	case hasPassword:
		return nil, hint.Errorf("set the password with GIT_PASSWORD or --password instead", "the URL %s contains a password, which would be committed to the repository", redact.URL(address))
	case u.Hostname() == "":
		return nil, hint.Errorf(example, "the URL %q has no host", address)
	case strings.Trim(u.Path, "/") == "":
		return nil, hint.Errorf(example, "the URL %q has no repository path", address)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, hint.Errorf("use the repository URL only, "+example, "the URL in --url has a query or fragment")
	}
	return u, nil
}

func notAnURL(address, example string) error {
	user, path, scp := strings.Cut(address, ":")
	if scp && strings.Contains(user, "@") && !strings.HasPrefix(path, "//") {
		return hint.Errorf(fmt.Sprintf("write --url=ssh://%s/%s", user, strings.TrimPrefix(path, "/")), "the address %q is not a URL", redact.Text(address))
	}
	return hint.Errorf(example, "invalid URL in --url")
}

// ErrDeclined is returned when the user does not grant a key access.
var ErrDeclined = errors.New("the key was not granted access to the repository")
