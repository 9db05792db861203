// Package gitrepo changes files on a branch of a remote Git repository. It
// fetches the newest commit alone, into a temporary folder and without a work
// tree, writes blobs, trees and commits directly and pushes exactly the
// objects that it has made, so that a large repository costs no more than its
// newest state.
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

// connectTimeout bounds how long a host that does not answer is tried.
const connectTimeout = 10 * time.Second

// Remote is a repository on a server and how to open it.
type Remote struct {
	// URL is the address, without credentials.
	URL string
	// Auth is how to prove who asks; nil asks for nothing.
	Auth transport.AuthMethod
	// CABundle is trusted besides the system's certificates.
	CABundle []byte
	// Cert and Key are a client certificate, in PEM form.
	Cert, Key []byte
	// Proxy is asked to reach the host, where it has a URL.
	Proxy transport.ProxyOptions
}

// Basic authenticates by user name and password.
func Basic(username, password string) transport.AuthMethod {
	return &githttp.BasicAuth{Username: username, Password: password}
}

// Bearer authenticates by a token in the Authorization header.
func Bearer(token string) transport.AuthMethod { return &githttp.TokenAuth{Token: token} }

// SSH authenticates by keys to a server that shows the given host key.
func SSH(user string, keys func() ([]ssh.Signer, error), hostKey ssh.PublicKey) transport.AuthMethod {
	algorithms := []string{hostKey.Type()}
	if hostKey.Type() == ssh.KeyAlgoRSA {
		algorithms = []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA}
	}
	return CheckedSSH(user, keys, ssh.FixedHostKey(hostKey), algorithms)
}

// CheckedSSH authenticates by keys to a server whose host key, shown by one of
// the algorithms, passes a check.
func CheckedSSH(user string, keys func() ([]ssh.Signer, error), check ssh.HostKeyCallback, algorithms []string) transport.AuthMethod {
	return &keyAuth{user: user, keys: keys, check: check, algorithms: algorithms}
}

// keyAuth asks the server for those types of host keys only that can be checked.
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

// heads is what a server says of a repository's branches.
type heads struct {
	// branch is the commit of the branch, zero where it does not exist.
	branch plumbing.Hash
	// standard is the commit of the default branch, zero in an empty repository.
	standard plumbing.Hash
}

func headsOf(adv *packp.AdvRefs, branch plumbing.ReferenceName) heads {
	h := heads{branch: adv.References[branch.String()]}
	if adv.Head != nil {
		h.standard = *adv.Head
	}
	return h
}

// fetch stores the newest commit of the branch, or of the default branch where
// it does not exist, and returns what the server has.
func (r Remote) fetch(ctx context.Context, branch plumbing.ReferenceName, into packStore) (_ heads, err error) {
	t, endpoint, err := r.connect()
	if err != nil {
		return heads{}, err
	}
	session, err := t.NewUploadPackSession(endpoint, r.Auth)
	if err != nil {
		return heads{}, err
	}
	defer func() { _ = session.Close() }() // what was received is checked already
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
	answer, err := session.UploadPack(ctx, request)
	if err != nil {
		return heads{}, err
	}
	defer func() { err = errors.Join(err, answer.Close()) }()
	return found, packfile.UpdateObjectStorage(into, demultiplexed(request.Capabilities, answer))
}

// Probe asks the server whether it lets these credentials read the repository.
func (r Remote) Probe(ctx context.Context) error {
	return probe(ctx, r, "opening", transport.Transport.NewUploadPackSession)
}

// ProbePush asks the server whether it lets these credentials push to the
// repository. What a hook will say to a certain push, only the push tells.
func (r Remote) ProbePush(ctx context.Context) error {
	return probe(ctx, r, "asking for the right to push to", transport.Transport.NewReceivePackSession)
}

// advertiser is a session of either direction.
type advertiser interface {
	AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error)
	Close() error
}

func probe[S advertiser](ctx context.Context, r Remote, doing string, open func(transport.Transport, *transport.Endpoint, transport.AuthMethod) (S, error)) error {
	t, endpoint, err := r.connect()
	if err != nil {
		return r.explain(ctx, doing, err)
	}
	session, err := open(t, endpoint, r.Auth)
	if err != nil {
		return r.explain(ctx, doing, err)
	}
	defer func() { _ = session.Close() }() // nothing is lost with it
	_, err = session.AdvertisedReferencesContext(ctx)
	if err == nil || errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return nil
	}
	return r.explain(ctx, doing, err)
}

// start is the commit that the next one stands on.
func (h heads) start() plumbing.Hash {
	if !h.branch.IsZero() {
		return h.branch
	}
	return h.standard
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

// update moves the branch from one commit to another and sends the objects
// that the server lacks. It returns where the branch is on the server, which
// is not the new commit where somebody else was faster or the server refused.
func (r Remote) update(ctx context.Context, branch plumbing.ReferenceName, from, to plumbing.Hash, pack func(io.Writer) error) (plumbing.Hash, error) {
	t, endpoint, err := r.connect()
	if err != nil {
		return from, err
	}
	session, err := t.NewReceivePackSession(endpoint, r.Auth)
	if err != nil {
		return from, err
	}
	defer func() { _ = session.Close() }() // the server's report tells what happened
	adv, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return from, err
	}
	if now := adv.References[branch.String()]; now != from {
		return now, nil
	}
	request := packp.NewReferenceUpdateRequestFromCapabilities(adv.Capabilities)
	request.Commands = []*packp.Command{{Name: branch, Old: from, New: to}}
	var told strings.Builder
	request.Progress = &told
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
	read.CloseWithError(io.ErrClosedPipe) // ends the packer where the server did not read to the end
	<-packed
	switch {
	case report != nil && report.Error() != nil:
		return from, &refusal{err: report.Error(), told: remarks(told.String())}
	case report != nil: // also where the connection ends badly after it
		return to, nil
	case refusedByStatus(err):
		return from, &refusal{err: err, told: remarks(told.String())}
	case err == nil:
		err = errors.New("the server has sent no report")
	}
	return from, &unconfirmedError{err: err, told: remarks(told.String())}
}

// refusedByStatus reports whether an error is an HTTP status by which the server
// says that it has not done what was requested.
func refusedByStatus(err error) bool {
	if errors.Is(err, transport.ErrAuthenticationRequired) || errors.Is(err, transport.ErrAuthorizationFailed) || errors.Is(err, transport.ErrRepositoryNotFound) {
		return true
	}
	var unexpected *plumbing.UnexpectedError
	var status *githttp.Err
	return errors.As(err, &unexpected) && errors.As(unexpected.Err, &status) && status.StatusCode() >= 400 && status.StatusCode() < 500
}

// unconfirmedError is a push that was sent, and to which the server has not
// answered: it may have been done.
type unconfirmedError struct {
	err  error
	told string
}

func (e *unconfirmedError) Error() string { return (&refusal{e.err, e.told}).Error() }

func (e *unconfirmedError) Unwrap() error { return e.err }

// refusal is a push that was not done, with what the server said about it.
type refusal struct {
	err  error
	told string
}

func (e *refusal) Error() string {
	if e.told == "" {
		return e.err.Error()
	}
	return fmt.Sprintf("%s (%s)", e.err, e.told)
}

func (e *refusal) Unwrap() error { return e.err }

// remarks makes one line of what hooks print.
func remarks(told string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("remote:", " ", "\r", " ").Replace(told)), " ")
}
