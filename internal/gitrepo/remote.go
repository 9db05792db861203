// Package gitrepo commits files to a branch of a remote Git repository. It
// fetches only the newest commit, into a temporary folder without a work tree,
// writes blobs, trees and commits directly, and pushes only the new objects, so
// that the history of a large repository is never transferred.
package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/client"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"golang.org/x/crypto/ssh"
)

// connectTimeout is the maximum time to connect to a host.
const connectTimeout = 10 * time.Second

// Remote is a remote repository with its credentials.
type Remote struct {
	// URL is the URL without credentials.
	URL string
	// Auth is the authentication method; nil for none.
	Auth transport.AuthMethod
	// CABundle is trusted in addition to the system's CA certificates.
	CABundle []byte
	// Cert and Key are a client certificate in PEM format.
	Cert, Key []byte
	// Proxy is the proxy to use if its URL is set.
	Proxy transport.ProxyOptions
}

// Basic authenticates with a user name and password.
func Basic(username, password string) transport.AuthMethod {
	return &githttp.BasicAuth{Username: username, Password: password}
}

// Bearer authenticates with a token in the Authorization header.
func Bearer(token string) transport.AuthMethod { return &githttp.TokenAuth{Token: token} }

// SSH authenticates with keys to a server with the given host key.
func SSH(user string, keys func() ([]ssh.Signer, error), hostKey ssh.PublicKey) transport.AuthMethod {
	algorithms := []string{hostKey.Type()}
	if hostKey.Type() == ssh.KeyAlgoRSA {
		algorithms = []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA}
	}
	return SSHWithCallback(user, keys, ssh.FixedHostKey(hostKey), algorithms)
}

// SSHWithCallback authenticates with keys to a server whose host key has one of
// the algorithms and passes the check.
func SSHWithCallback(user string, keys func() ([]ssh.Signer, error), check ssh.HostKeyCallback, algorithms []string) transport.AuthMethod {
	return &keyAuth{user: user, keys: keys, check: check, algorithms: algorithms}
}

// keyAuth requests only host keys of the algorithms that check can verify.
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

// ClientConfig implements the SSH transport's AuthMethod.
func (a *keyAuth) ClientConfig() (*ssh.ClientConfig, error) {
	return &ssh.ClientConfig{
		User: a.user, Auth: []ssh.AuthMethod{ssh.PublicKeysCallback(a.keys)},
		HostKeyCallback: a.check, HostKeyAlgorithms: a.algorithms, Timeout: connectTimeout,
	}, nil
}

func (r Remote) connect() (transport.Transport, *transport.Endpoint, error) {
	endpoint, err := transport.NewEndpoint(r.URL)
	if err != nil {
		return nil, nil, err
	}
	endpoint.CaBundle, endpoint.ClientCert, endpoint.ClientKey = r.CABundle, r.Cert, r.Key
	endpoint.Proxy = r.Proxy
	t, err := client.NewClient(endpoint)
	return t, endpoint, err
}

// heads are the newest commits of the branch and the default branch.
type heads struct {
	// branch is the commit of the branch, zero if it does not exist.
	branch plumbing.Hash
	// defaultBranch is the commit of the default branch, zero in an empty repository.
	defaultBranch plumbing.Hash
}

func headsOf(adv *packp.AdvRefs, branch plumbing.ReferenceName) heads {
	h := heads{branch: adv.References[branch.String()]}
	if adv.Head != nil {
		h.defaultBranch = *adv.Head
	}
	return h
}

// fetch stores the newest commit of the branch, or of the default branch if the
// branch does not exist, and returns both.
func (r Remote) fetch(ctx context.Context, branch plumbing.ReferenceName, into packStore) (_ heads, err error) {
	t, endpoint, err := r.connect()
	if err != nil {
		return heads{}, err
	}
	session, err := t.NewUploadPackSession(endpoint, r.Auth)
	if err != nil {
		return heads{}, err
	}
	defer func() { _ = session.Close() }() // the received objects have been verified
	adv, err := session.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return heads{}, nil
	}
	if err != nil {
		return heads{}, err
	}
	found := headsOf(adv, branch)
	want := found.start()
	if want.IsZero() || into.HasEncodedObject(want) == nil {
		return found, nil
	}
	request := packp.NewUploadPackRequestFromCapabilities(adv.Capabilities)
	request.Wants = []plumbing.Hash{want}
	if adv.Capabilities.Supports(capability.Shallow) {
		request.Depth = packp.DepthCommits(1)
		if err := request.Capabilities.Set(capability.Shallow); err != nil {
			return heads{}, err
		}
	}
	response, err := session.UploadPack(ctx, request)
	if err != nil {
		return heads{}, err
	}
	defer func() { err = errors.Join(err, response.Close()) }()
	return found, packfile.UpdateObjectStorage(into, demultiplexed(request.Capabilities, response))
}

// Probe returns an error unless the credentials can read the repository.
func (r Remote) Probe(ctx context.Context) error {
	return probe(ctx, r, "checking read access to", transport.Transport.NewUploadPackSession)
}

// ProbePush returns an error unless the credentials can push to the repository.
// A hook may still reject the push.
func (r Remote) ProbePush(ctx context.Context) error {
	return probe(ctx, r, "checking push access to", transport.Transport.NewReceivePackSession)
}

// advertiser is an upload-pack or receive-pack session.
type advertiser interface {
	AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error)
	Close() error
}

func probe[S advertiser](ctx context.Context, r Remote, op string, open func(transport.Transport, *transport.Endpoint, transport.AuthMethod) (S, error)) error {
	t, endpoint, err := r.connect()
	if err != nil {
		return r.explain(ctx, op, err)
	}
	session, err := open(t, endpoint, r.Auth)
	if err != nil {
		return r.explain(ctx, op, err)
	}
	defer func() { _ = session.Close() }() // only the references were read
	_, err = session.AdvertisedReferencesContext(ctx)
	if err == nil || errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return nil
	}
	return r.explain(ctx, op, err)
}

// start returns the parent of the first new commit.
func (h heads) start() plumbing.Hash {
	if !h.branch.IsZero() {
		return h.branch
	}
	return h.defaultBranch
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

// update pushes the objects of pack and updates the branch from one commit to
// another. It returns the commit of the branch on the server, which is not the
// new commit if another push came first or the server rejected this one.
func (r Remote) update(ctx context.Context, branch plumbing.ReferenceName, from, to plumbing.Hash, pack func(io.Writer) error) (plumbing.Hash, error) {
	t, endpoint, err := r.connect()
	if err != nil {
		return from, err
	}
	session, err := t.NewReceivePackSession(endpoint, r.Auth)
	if err != nil {
		return from, err
	}
	defer func() { _ = session.Close() }() // the report of the server has the result
	adv, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return from, err
	}
	if now := adv.References[branch.String()]; now != from {
		return now, nil
	}
	request := packp.NewReferenceUpdateRequestFromCapabilities(adv.Capabilities)
	request.Commands = []*packp.Command{{Name: branch, Old: from, New: to}}
	var messages strings.Builder
	request.Progress = &messages
	if adv.Capabilities.Supports(capability.Sideband64k) {
		if err := request.Capabilities.Set(capability.Sideband64k); err != nil {
			return from, err
		}
	}
	read, write := io.Pipe()
	packed := make(chan struct{})
	go func() {
		defer close(packed)
		write.CloseWithError(pack(write))
	}()
	request.Packfile = read
	report, err := session.ReceivePack(ctx, request)
	read.CloseWithError(io.ErrClosedPipe) // unblocks the packer if the server did not read to the end
	<-packed
	switch {
	case report != nil && report.Error() != nil:
		return from, &rejectedError{err: report.Error(), message: oneLine(messages.String())}
	case report != nil: // even if the connection fails after it
		return to, nil
	case rejectedByStatus(err):
		return from, &rejectedError{err: err, message: oneLine(messages.String())}
	case err == nil:
		err = errors.New("no report from the server")
	}
	return from, &unconfirmedError{err: err, message: oneLine(messages.String())}
}

// rejectedByStatus reports whether an error is an HTTP status with which the
// server rejects a push.
func rejectedByStatus(err error) bool {
	if errors.Is(err, transport.ErrAuthenticationRequired) || errors.Is(err, transport.ErrAuthorizationFailed) || errors.Is(err, transport.ErrRepositoryNotFound) {
		return true
	}
	var unexpected *plumbing.UnexpectedError
	var status *githttp.Err
	return errors.As(err, &unexpected) && errors.As(unexpected.Err, &status) && status.StatusCode() >= 400 && status.StatusCode() < 500
}

// unconfirmedError is returned for a push without a response from the server.
// The push may have succeeded.
type unconfirmedError struct {
	err     error
	message string
}

func (e *unconfirmedError) Error() string { return (&rejectedError{e.err, e.message}).Error() }

func (e *unconfirmedError) Unwrap() error { return e.err }

// rejectedError is a rejected push with the output of the server's hooks.
type rejectedError struct {
	err     error
	message string
}

func (e *rejectedError) Error() string {
	if e.message == "" {
		return e.err.Error()
	}
	return fmt.Sprintf("%s (%s)", e.err, e.message)
}

func (e *rejectedError) Unwrap() error { return e.err }

// oneLine returns the output of hooks as one line without "remote:" prefixes.
func oneLine(output string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("remote:", " ", "\r", " ").Replace(output)), " ")
}
