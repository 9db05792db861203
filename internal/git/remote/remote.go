// Package remote commits files to a branch of a remote Git repository. It
// fetches only the newest commit, into a temporary directory without a work tree,
// writes blobs, trees and commits directly, and pushes only the new objects, so
// that the history of a large repository is never transferred.
package remote

import (
	"context"
	"io"
	"time"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"golang.org/x/crypto/ssh"

	"github.com/fluxkit/flux/internal/secrets/sshkey"
)

// connectTimeout is the maximum time to connect to a host.
const connectTimeout = 10 * time.Second

// Repository is a remote repository with its credentials.
type Repository struct {
	// URL is the URL without credentials.
	URL string
	// Auth is the authentication method, or nil for none.
	Auth transport.AuthMethod
	// CABundle is trusted in addition to the system's CA certificates.
	CABundle []byte
	// Cert and Key are a client certificate in PEM format.
	Cert, Key []byte
	// Proxy is the HTTP proxy to use if its URL is set.
	Proxy transport.ProxyOptions

	// limits replaces the default limits if it is set.
	limits *limits
}

// Basic authenticates with a user name and password.
func Basic(username, password string) transport.AuthMethod {
	return &githttp.BasicAuth{Username: username, Password: password}
}

// Bearer authenticates with a token in the Authorization header.
func Bearer(token string) transport.AuthMethod { return &githttp.TokenAuth{Token: token} }

// SSH authenticates with keys to a server with the given host key.
func SSH(user string, keys func() ([]ssh.Signer, error), hostKey ssh.PublicKey) transport.AuthMethod {
	return SSHWithCallback(user, keys, ssh.FixedHostKey(hostKey), sshkey.HostAlgorithms(hostKey.Type()))
}

// SSHWithCallback authenticates with keys to a server whose host key has one of
// the algorithms and passes the check.
func SSHWithCallback(user string, keys func() ([]ssh.Signer, error), check ssh.HostKeyCallback, algorithms []string) transport.AuthMethod {
	return &keyAuth{user: user, keys: keys, check: check, algorithms: algorithms}
}

// keyAuth requests only host key algorithms that check can verify.
type keyAuth struct {
	user       string
	keys       func() ([]ssh.Signer, error)
	check      ssh.HostKeyCallback
	algorithms []string
}

// Name implements transport.AuthMethod.
func (a *keyAuth) Name() string { return "ssh-public-keys" }

// String implements fmt.Stringer.
func (a *keyAuth) String() string { return "user: " + a.user + ", name: " + a.Name() }

func (a *keyAuth) config() *ssh.ClientConfig {
	return &ssh.ClientConfig{
		User: a.user, Auth: []ssh.AuthMethod{ssh.PublicKeysCallback(a.keys)},
		HostKeyCallback: a.check, HostKeyAlgorithms: a.algorithms,
	}
}

// Probe returns an error unless the credentials can read the repository.
func (r Repository) Probe(ctx context.Context) error {
	err := exchange(ctx, r, transport.UploadPackServiceName, func(context.Context, uploader, *packp.AdvRefs) error { return nil })
	return r.explain(ctx, "checking read access to", err)
}

// ProbePush returns an error unless the credentials can push to the repository.
// A hook may still reject the push.
func (r Repository) ProbePush(ctx context.Context) error {
	err := exchange(ctx, r, transport.ReceivePackServiceName, func(context.Context, receiver, *packp.AdvRefs) error { return nil })
	return r.explain(ctx, "checking push access to", err)
}

func demultiplexed(agreed *capability.List, from io.Reader) io.Reader {
	switch {
	case agreed.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, from)
	case agreed.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, from)
	default:
		return from
	}
}
