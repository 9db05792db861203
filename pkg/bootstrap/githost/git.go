package githost

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/fluxkit/flux/internal/redact"
)

// Git is a repository on a server of which nothing is known but that it
// speaks Git: a person has to make it and to give keys access.
type Git struct {
	// Access is how the repository is opened; URL has been through ParseURL.
	Access Access
	// TokenAuth lets the cluster use the password or token of Access over
	// HTTP; without it the cluster uses a key over SSH.
	TokenAuth bool
	// SSHHostname is the host, and port, of the SSH address where it is
	// another than that of Access.
	SSHHostname string
	// SSHUsername is the user of the SSH address where Access names none.
	SSHUsername string
	// Confirm shows a public key and returns when it has been given access.
	Confirm func(ctx context.Context, key DeployKey) error
	// CanConfirm returns why Confirm could not be answered.
	CanConfirm func() error
}

// Survey implements Host. A server without an API is asked nothing: whether
// the repository is there is found out by opening it.
func (g Git) Survey(ctx context.Context, _ Want) (Survey, error) {
	repository, err := g.Ensure(ctx)
	return Survey{Repository: repository, Exists: true}, err
}

// Ensure implements Host. A person has made the repository.
func (g Git) Ensure(context.Context) (Repository, error) {
	u, err := url.Parse(g.Access.URL)
	if err != nil {
		return Repository{}, fmt.Errorf("reading the repository's address: %w", err)
	}
	if g.TokenAuth {
		return Repository{Access: g.Access, SyncURL: overHTTP(*u)}, nil
	}
	return Repository{Access: g.Access, SyncURL: g.overSSH(*u)}, nil
}

// overHTTP returns the address by which a password or token works.
func overHTTP(u url.URL) string {
	u.User = nil
	if u.Scheme == "ssh" {
		// The port is SSH's, and a password is not to be sent in the open.
		u.Scheme, u.Host = "https", bare(u)
	}
	return u.String()
}

// overSSH returns the address by which a key works.
func (g Git) overSSH(u url.URL) string {
	if u.Scheme != "ssh" {
		u.Host, u.User = bare(u), nil // the port is HTTP's, and so is the user
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

// bare is the host without the port, an IPv6 address in its brackets.
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

// URLError says what is wrong with the address of a repository.
type URLError struct {
	Problem string
	// Hint is the way out.
	Hint string
}

func (e *URLError) Error() string { return e.Problem }

// ParseURL reads the address of a repository. Plain HTTP has to be allowed,
// since it shows credentials to everybody on the way.
func ParseURL(address string, allowHTTP bool) (*url.URL, error) {
	const example = "as in --url=ssh://git@example.com/org/fleet or --url=https://example.com/org/fleet"
	if address == "" {
		return nil, &URLError{"no repository is named", "name it with --url, " + example}
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return nil, notAnURL(address, example)
	}
	_, hasPassword := u.User.Password()
	switch {
	case u.Scheme == "http" && !allowHTTP:
		return nil, &URLError{"an http address sends credentials in the open", "use https, or allow it with --allow-insecure-http"}
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "ssh":
		return nil, &URLError{fmt.Sprintf("cannot bootstrap over scheme %q in --url", u.Scheme), "use ssh or https, " + example}
	case hasPassword:
		return nil, &URLError{fmt.Sprintf("the address %s has a password in it, which would be written to the repository", redact.URL(address)), "give it with GIT_PASSWORD or --password instead"}
	case u.Hostname() == "":
		return nil, &URLError{fmt.Sprintf("the address %q names no host", address), example}
	case strings.Trim(u.Path, "/") == "":
		return nil, &URLError{fmt.Sprintf("the address %q names no repository: the path is missing", address), example}
	case u.RawQuery != "" || u.Fragment != "":
		return nil, &URLError{"the address in --url has a query or fragment in it", "name the repository alone, " + example}
	}
	return u, nil
}

func notAnURL(address, example string) error {
	user, path, scp := strings.Cut(address, ":")
	if scp && strings.Contains(user, "@") && !strings.HasPrefix(path, "//") {
		return &URLError{fmt.Sprintf("the address %q is not a URL", redact.Text(address)), fmt.Sprintf("write --url=ssh://%s/%s", user, strings.TrimPrefix(path, "/"))}
	}
	return &URLError{"the address in --url is not a URL", example}
}

// ErrDeclined says that a key was not given access.
var ErrDeclined = errors.New("the key was not given access to the repository")
