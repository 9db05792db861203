package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/fluxkit/flux/internal/budget"
)

// limits holds the maximum sizes of server responses, in bytes.
type limits struct {
	// references limits the list of branches, tags and other references.
	references int64
	// pack limits the compressed size of fetched objects.
	pack int64
	// report limits the response to a push, including the output of hooks.
	report int64
	// message is the length to which messages of servers and hooks are truncated.
	message int64
}

// defaultLimits returns limits that far exceed the needs of repositories with hundreds of
// thousands of references and gigabytes of files.
func defaultLimits() limits {
	return limits{references: 64 << 20, pack: 4 << 30, report: 8 << 20, message: 4 << 10}
}

func (r Repository) bounds() limits {
	if r.limits != nil {
		return *r.limits
	}
	return defaultLimits()
}

// limitError is returned if a response exceeds a limit.
type limitError struct {
	// of is the name of the response.
	of    string
	limit int64
}

func (e *limitError) Error() string {
	return fmt.Sprintf("the server sent %s larger than %s", e.of, budget.Size(e.limit))
}

// lostError is returned if the connection to the server is lost.
type lostError struct{ err error }

func (e *lostError) Error() string {
	var op *net.OpError
	if errors.As(e.err, &op) {
		return op.Err.Error() // omit the addresses of both ends
	}
	return e.err.Error()
}

func (e *lostError) Unwrap() error { return e.err }

// packError is returned if the received objects cannot be stored.
type packError struct{ err error }

func (e *packError) Error() string { return e.err.Error() }

func (e *packError) Unwrap() error { return e.err }

// bounded returns a reader of a response. It ends the session with a limitError or a lostError, because the parsers of go-git
// discard the errors of their readers.
func bounded(from io.ReadCloser, what string, limit int64, stop context.CancelCauseFunc) io.ReadCloser {
	left := limit
	return budget.Closing(budget.Checked(from, func(read []byte, err error) error {
		switch left -= int64(len(read)); {
		case left < 0:
			err = &limitError{what, limit}
		case err == nil || errors.Is(err, io.EOF):
			return nil
		default:
			err = &lostError{err}
		}
		stop(err)
		return err
	}), from)
}

// session is a session with a Git server. It ends when its context ends.
type session interface {
	AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error)
	io.Closer
}

// uploader is a session in which the server uploads objects.
type uploader interface {
	session
	UploadPack(context.Context, *packp.UploadPackRequest) (*packp.UploadPackResponse, error)
}

// receiver is a session in which the server receives objects.
type receiver interface {
	session
	ReceivePack(context.Context, *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error)
}

// open starts a Git service.
func (r Repository) open(ctx context.Context, stop context.CancelCauseFunc, service string) (session, error) {
	endpoint, err := transport.NewEndpoint(r.URL)
	if err != nil {
		return nil, err
	}
	if endpoint.Protocol == "ssh" {
		return r.dialSSH(ctx, stop, endpoint, service)
	}
	client, err := r.client(ctx, stop)
	if err != nil {
		return nil, err
	}
	if service == transport.ReceivePackServiceName {
		return client.NewReceivePackSession(endpoint, r.Auth)
	}
	return client.NewUploadPackSession(endpoint, r.Auth)
}

// exchange opens a session and calls do with it and the references of the server. If an error has
// ended the session, exchange returns that error instead of its consequence.
func exchange[S session](ctx context.Context, r Repository, service string, do func(context.Context, S, *packp.AdvRefs) error) error {
	transfer, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	err := converse(transfer, r, stop, service, do)
	if err != nil && ctx.Err() == nil && transfer.Err() != nil {
		ended := context.Cause(transfer)
		if errors.As(err, new(*unconfirmedError)) {
			return &unconfirmedError{err: ended}
		}
		return ended
	}
	return err
}

func converse[S session](ctx context.Context, r Repository, stop context.CancelCauseFunc, service string, do func(context.Context, S, *packp.AdvRefs) error) error {
	s, err := r.open(ctx, stop, service)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // the received data has been verified
	adv, err := s.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		adv, err = packp.NewAdvRefs(), nil
	}
	if err != nil {
		return err
	}
	return do(ctx, s.(S), adv)
}
