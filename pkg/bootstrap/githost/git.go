package githost

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/fluxkit/flux/internal/redact"
)

// Git is a repository on a Git server without an API. The user creates it and
// grants keys access.
type Git struct {
	// Access is the URL, as ParseURL returns it, with credentials.
	Access Access
	// TokenAuth stores the password or token of Access in the source Secret
	// instead of an SSH key.
	TokenAuth bool
	// SSHHostname is the SSH host, and port, if it differs from the one of
	// Access.
	SSHHostname string
	// SSHUsername is the SSH user if Access has none.
	SSHUsername string
	// Confirm shows a public key and returns when the user has granted it access.
	Confirm func(ctx context.Context, key DeployKey) error
	// CanConfirm returns an error if there is no user to ask.
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
		return Repository{}, fmt.Errorf("invalid URL of the repository: %w", err)
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
		// The port is the one of SSH, and a password must be encrypted.
		u.Scheme, u.Host = "https", bare(u)
	}
	return u.String()
}

// overSSH returns the SSH URL for a key.
func (g Git) overSSH(u url.URL) string {
	if u.Scheme != "ssh" {
		u.Host, u.User = bare(u), nil // port and user are those of HTTP
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

// bare returns the host without the port, an IPv6 address in brackets.
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

// URLError is returned for an invalid URL of a repository.
type URLError struct {
	Problem string
	// Hint is the remedy.
	Hint string
}

func (e *URLError) Error() string { return e.Problem }

// ParseURL parses the URL of a repository. Plain HTTP has to be allowed, since
// it sends credentials unencrypted.
func ParseURL(address string, allowHTTP bool) (*url.URL, error) {
	const example = "as in --url=ssh://git@example.com/org/fleet or --url=https://example.com/org/fleet"
	if address == "" {
		return nil, &URLError{"a repository URL is required", "set --url, " + example}
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return nil, notAnURL(address, example)
	}
	_, hasPassword := u.User.Password()
	switch {
	case u.Scheme == "http" && !allowHTTP:
		return nil, &URLError{"an http URL sends credentials unencrypted", "use https, or allow it with --allow-insecure-http"}
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "ssh":
		return nil, &URLError{fmt.Sprintf("cannot bootstrap over scheme %q in --url", u.Scheme), "use ssh or https, " + example}
	case hasPassword:
		return nil, &URLError{fmt.Sprintf("the address %s has a password, which would be committed to the repository", redact.URL(address)), "set it with GIT_PASSWORD or --password instead"}
	case u.Hostname() == "":
		return nil, &URLError{fmt.Sprintf("the address %q names no host", address), example}
	case strings.Trim(u.Path, "/") == "":
		return nil, &URLError{fmt.Sprintf("the address %q names no repository: the path is missing", address), example}
	case u.RawQuery != "" || u.Fragment != "":
		return nil, &URLError{"the URL in --url has a query or fragment", "use the URL of the repository only, " + example}
	}
	return u, nil
}

func notAnURL(address, example string) error {
	user, path, scp := strings.Cut(address, ":")
	if scp && strings.Contains(user, "@") && !strings.HasPrefix(path, "//") {
		return &URLError{fmt.Sprintf("the address %q is not a URL", redact.Text(address)), fmt.Sprintf("write --url=ssh://%s/%s", user, strings.TrimPrefix(path, "/"))}
	}
	return &URLError{"invalid URL in --url", example}
}

// ErrDeclined is returned when the user does not grant a key access.
var ErrDeclined = errors.New("the key was not granted access to the repository")
