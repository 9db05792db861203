package githost

import (
	"fmt"
	"net/url"
	"strings"
)

// Hosted is a repository on a host with an API, as a user asks for it.
type Hosted struct {
	// Hostname is the host, with a port where it is not the usual one.
	Hostname string
	// Scheme is "https", or "http" where the user allowed it.
	Scheme string
	// BasePath is the path below which the host lives, "" for its root.
	BasePath string
	// Token is what the API and Git over HTTP accept.
	Token string
	// CABundle is trusted besides the system's certificates.
	CABundle []byte

	// Owner is the user, organisation, group or project; subgroups follow after slashes.
	Owner string
	// Name is the repository's.
	Name string
	// Personal says that Owner is a user.
	Personal bool
	// Visibility is "private", "internal" or "public".
	Visibility string
	// Description is shown by the host; "" leaves it as it is.
	Description string
	// Branch is the default branch of a repository that is made.
	Branch string
	// Teams are given access.
	Teams []Team
	// Reconcile brings a repository that exists in line with Visibility and
	// Description; without it only what is missing is added.
	Reconcile bool

	// TokenAuth lets the cluster use the token; without it a key over SSH.
	TokenAuth bool
	// ReadWriteKey lets the holder of the deploy key write.
	ReadWriteKey bool
	// SSHHostname is the host, and port, of SSH where it is not Hostname.
	SSHHostname string
	// SSHUsername is the user of SSH, "git" unless given.
	SSHUsername string
}

// Team is a team or group that works with a repository.
type Team struct {
	// Name is as the host writes it in addresses.
	Name string
	// Permission is the host's word, as in "maintain".
	Permission string
}

// String returns the full name of the repository.
func (h Hosted) String() string { return strings.Trim(h.Owner, "/") + "/" + h.Name }

// HTTPURL returns the address of the repository over HTTP.
func (h Hosted) HTTPURL(path string) string {
	u := url.URL{Scheme: h.Scheme, Host: h.Hostname, Path: "/" + strings.TrimPrefix(path, "/")}
	if base := strings.Trim(h.BasePath, "/"); base != "" {
		u.Path = "/" + base + u.Path
	}
	if u.Scheme == "" {
		u.Scheme = "https"
	}
	return u.String()
}

// SSHURL returns the address of the repository over SSH. The port of Hostname
// is that of HTTP, so it is left out.
func (h Hosted) SSHURL(path string) string {
	u := url.URL{Scheme: "ssh", User: url.User("git"), Host: bare(url.URL{Host: h.Hostname}), Path: "/" + strings.TrimPrefix(path, "/")}
	if h.SSHUsername != "" {
		u.User = url.User(h.SSHUsername)
	}
	if h.SSHHostname != "" {
		u.Host = h.SSHHostname
	}
	return u.String()
}

// Error is a failure of a host with the way out.
type Error struct {
	// Err is what went wrong, without any credential.
	Err error
	// Hint is the way out.
	Hint string
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the failure.
func (e *Error) Unwrap() error { return e.Err }

func failure(hint, format string, args ...any) error {
	return &Error{fmt.Errorf(format, args...), hint}
}
