package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// update pushes the objects of pack and updates the branch from one commit to
// another. It returns the commit of the branch on the server, which is not the
// new commit if another push came first or the server rejected this one.
func (r Repository) update(ctx context.Context, branch plumbing.ReferenceName, from, to plumbing.Hash, pack func(io.Writer) error) (plumbing.Hash, error) {
	now := from
	err := exchange(ctx, r, transport.ReceivePackServiceName, func(ctx context.Context, session receiver, adv *packp.AdvRefs) error {
		if now = adv.References[branch.String()]; now != from {
			return nil
		}
		if err := send(ctx, session, adv, &packp.Command{Name: branch, Old: from, New: to}, pack, r.bounds().message); err != nil {
			return err
		}
		now = to
		return nil
	})
	return now, err
}

// send pushes objects and updates a reference. It returns nil only if the server has confirmed the
// update. It records the output of hooks up to a limit.
func send(ctx context.Context, session receiver, adv *packp.AdvRefs, command *packp.Command, pack func(io.Writer) error, limit int64) error {
	request := packp.NewReferenceUpdateRequestFromCapabilities(adv.Capabilities)
	request.Commands = []*packp.Command{command}
	messages := &prefix{max: limit}
	request.Progress = messages
	if adv.Capabilities.Supports(capability.Sideband64k) {
		if err := request.Capabilities.Set(capability.Sideband64k); err != nil {
			return err
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
	read.CloseWithError(io.ErrClosedPipe) // unblocks the packer if the server stopped reading early
	<-packed
	switch {
	case report != nil && report.Error() != nil:
		return &rejectedError{err: report.Error(), message: oneLine(messages.String())}
	case report != nil: // the connection may have failed after the server's report
		return nil
	case rejectedByStatus(err):
		return &rejectedError{err: err, message: oneLine(messages.String())}
	case err == nil:
		err = errors.New("no report from the server")
	}
	return &unconfirmedError{err: err, message: oneLine(messages.String())}
}

// rejectedByStatus reports whether an error is an HTTP status that means that the server rejected a push.
func rejectedByStatus(err error) bool {
	if errors.Is(err, transport.ErrAuthenticationRequired) || errors.Is(err, transport.ErrAuthorizationFailed) || errors.Is(err, transport.ErrRepositoryNotFound) {
		return true
	}
	status := statusOf(err)
	return status >= http.StatusBadRequest && status < http.StatusInternalServerError
}

// unconfirmedError is returned if the server did not respond to a push. The push may have
// succeeded.
type unconfirmedError struct {
	err     error
	message string
}

func (e *unconfirmedError) Error() string { return (&rejectedError{e.err, e.message}).Error() }

func (e *unconfirmedError) Unwrap() error { return e.err }

// rejectedError is returned if the server rejected a push. It contains the output of the hooks.
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
