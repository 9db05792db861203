package githost

import (
	"cmp"
	"net/url"
	"strings"
)

// Hosted is the desired state of a repository on a host with an API.
type Hosted struct {
	// Hostname is the host, with the port unless it is the default port.
	Hostname string
	// Scheme is "https", or "http" if the user allowed it.
	Scheme string
	// BasePath is the base path of the host, "" for its root.
	BasePath string
	// Token is the token for the API and for Git over HTTP.
	Token string
	// CABundle is trusted in addition to the system's CA certificates.
	CABundle []byte
	// Origin is the variable that sets Hostname, "" for the flag --hostname, TokenOrigin the variable that sets the
	// token, and CAOrigin the variable that sets the CA certificates, "" for --ca-file. Error hints refer to them.
	Origin, TokenOrigin, CAOrigin string

	// Owner is the user, organization, project or group, with slashes before subgroups.
	Owner string
	// Name is the name of the repository.
	Name string
	// Personal is set if Owner is a user.
	Personal bool
	// Visibility is "private", "internal" or "public".
	Visibility string
	// Description is the description of the repository; "" does not change it.
	Description string
	// Branch is the default branch of a new repository.
	Branch string
	// Teams lists the teams to grant access.
	Teams []Team
	// Reconcile updates an existing repository to match Visibility and
	// Description.
	Reconcile bool

	// TokenAuth stores the token in the source Secret instead of an SSH key.
	TokenAuth bool
	// ReadWriteKey grants the deploy key write access.
	ReadWriteKey bool
	// SSHHostname is the SSH host and port if they differ from Hostname.
	SSHHostname string
	// SSHUsername is the SSH user (default "git").
	SSHUsername string
	// Username is the user name to send with the token for Git over HTTP (default "git").
	Username string
}

// Team is a team or group with access to a repository.
type Team struct {
	// Name is the team's name in URLs.
	Name string
	// Permission is the permission in the host's terms, such as "maintain".
	Permission string
}

// HostnameFlag returns the flag or variable that sets the host.
func (h Hosted) HostnameFlag() string { return cmp.Or(h.Origin, "--hostname") }

// String returns the full name of the repository.
func (h Hosted) String() string { return strings.Trim(h.Owner, "/") + "/" + h.Name }

// HTTPURL returns the HTTP URL of a path on the host.
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

// SSHURL returns the SSH URL of a path on the host. It omits the port of Hostname, which applies to HTTP.
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
