package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"golang.org/x/crypto/ssh"

	"github.com/fluxkit/flux/internal/web"
)

// sshSession is a Git command on an SSH server. The transport of go-git has no timeout for the handshake and the
// start of the command, waits ten seconds for error messages, and reads references without a limit.
type sshSession struct {
	client  *ssh.Client
	command *ssh.Session
	stdin   io.WriteCloser
	stdout  io.Reader
	stderr  *prefix
	limits  limits
	stop    context.CancelCauseFunc
	// unhook unregisters the function that closes the connection when the context ends.
	unhook func() bool

	wait   sync.Once
	ended  error
	writes bool
}

// dialSSH starts a Git command. The connection is closed when ctx ends.
func (r Repository) dialSSH(ctx context.Context, stop context.CancelCauseFunc, endpoint *transport.Endpoint, service string) (_ *sshSession, err error) {
	auth, ok := r.Auth.(*keyAuth)
	if !ok {
		return nil, errors.New("SSH requires a private key")
	}
	port := endpoint.Port
	if port <= 0 {
		port = 22
	}
	address := net.JoinHostPort(strings.Trim(endpoint.Host, "[]"), strconv.Itoa(port))
	conn, err := (&net.Dialer{Timeout: connectTimeout}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	s := &sshSession{limits: r.bounds(), stop: stop}
	s.unhook = context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer func() {
		if err != nil {
			s.unhook()
			_ = conn.Close()
		}
	}()
	connection, channels, requests, err := ssh.NewClientConn(conn, address, auth.config())
	if err != nil {
		return nil, lostIn(err)
	}
	s.client = ssh.NewClient(connection, channels, requests)
	if err := s.start(service + " " + quoteShell(endpoint.Path)); err != nil {
		return nil, lostIn(err)
	}
	return s, nil
}

func (s *sshSession) start(line string) (err error) {
	if s.command, err = s.client.NewSession(); err != nil {
		return err
	}
	if s.stdin, err = s.command.StdinPipe(); err != nil {
		return err
	}
	if s.stdout, err = s.command.StdoutPipe(); err != nil {
		return err
	}
	s.stderr = &prefix{max: s.limits.message}
	s.command.Stderr = s.stderr
	return s.command.Start(line)
}

// lostIn returns a lostError if err means that the server has closed the connection.
func lostIn(err error) error {
	if web.Lost(err) {
		return &lostError{err}
	}
	return err
}

// quoteShell quotes a path for the server's shell.
func quoteShell(path string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(path) + "'"
}

// prefix keeps the beginning of the output of a command.
type prefix struct {
	bytes.Buffer
	max int64
}

// Write implements io.Writer.
func (p *prefix) Write(text []byte) (int, error) {
	if left := p.max - int64(p.Len()); left > 0 {
		p.Buffer.Write(text[:min(int64(len(text)), left)])
	}
	return len(text), nil
}

// Read reads the output of the command. It returns io.EOF only if the command has succeeded, and
// otherwise the error of the command.
func (s *sshSession) Read(p []byte) (int, error) {
	n, err := s.stdout.Read(p)
	if errors.Is(err, io.EOF) {
		if failed := s.result(); failed != nil {
			err = failed
			s.stop(failed)
		}
	}
	return n, err
}

// result waits for the end of the command.
func (s *sshSession) result() error {
	s.wait.Do(func() {
		err := s.command.Wait()
		var exit *ssh.ExitError
		var missing *ssh.ExitMissingError
		switch {
		case errors.As(err, &exit):
			s.ended = commandFailure(exit.ExitStatus(), oneLine(s.stderr.String()))
		case errors.As(err, &missing):
			s.ended = &lostError{io.ErrUnexpectedEOF}
		case err != nil:
			s.ended = &lostError{err}
		}
	})
	return s.ended
}

// commandError is returned if a Git command failed on the server.
type commandError struct {
	status  int
	message string
}

func (e *commandError) Error() string {
	if e.message == "" {
		return fmt.Sprintf("git on the server exited with status %d", e.status)
	}
	return e.message
}

// commandFailure returns the error of a command. SSH servers report a missing
// repository only in their messages.
func commandFailure(status int, message string) error {
	lower := strings.ToLower(message)
	for _, phrase := range []string{"not found", "does not exist", "could not be found", "not appear to be a git repository", "no such repository", "access denied"} {
		if strings.Contains(lower, phrase) {
			return fmt.Errorf("%w: %s", transport.ErrRepositoryNotFound, message)
		}
	}
	return &commandError{status, message}
}

func (s *sshSession) output(what string, limit int64) io.ReadCloser {
	return bounded(io.NopCloser(s), what, limit, s.stop)
}

// AdvertisedReferencesContext returns the references of the server.
func (s *sshSession) AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error) {
	adv := packp.NewAdvRefs()
	err := adv.Decode(s.output(references, s.limits.references))
	if errors.Is(err, packp.ErrEmptyInput) && s.result() != nil {
		return nil, s.result()
	}
	if errors.Is(err, packp.ErrEmptyAdvRefs) || err == nil && adv.IsEmpty() {
		err = nil // pushes to an empty repository are possible
	}
	if err != nil {
		return nil, err
	}
	transport.FilterUnsupportedCapabilities(adv.Capabilities)
	return adv, nil
}

// UploadPack requests objects.
func (s *sshSession) UploadPack(_ context.Context, request *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	s.writes = true
	if err := request.UploadRequest.Encode(s.stdin); err != nil {
		return nil, s.refused(err)
	}
	if err := request.UploadHaves.Encode(s.stdin, true); err != nil {
		return nil, s.refused(err)
	}
	if err := pktline.NewEncoder(s.stdin).EncodeString("done\n"); err != nil {
		return nil, s.refused(err)
	}
	response := packp.NewUploadPackResponse(request)
	if err := response.Decode(s.output(objects, s.limits.pack)); err != nil {
		return nil, fmt.Errorf("invalid response: %w", err)
	}
	return response, nil
}

// ReceivePack pushes objects and returns the report of the server.
func (s *sshSession) ReceivePack(_ context.Context, request *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	s.writes = true
	if err := request.Encode(s.stdin); err != nil {
		return nil, s.refused(err)
	}
	if err := s.stdin.Close(); err != nil {
		return nil, s.refused(err)
	}
	var from io.Reader = s.output(reports, s.limits.report)
	if request.Capabilities.Supports(capability.Sideband64k) {
		demultiplexer := sideband.NewDemuxer(sideband.Sideband64k, from)
		demultiplexer.Progress = request.Progress
		from = demultiplexer
	}
	report := packp.NewReportStatus()
	if err := report.Decode(from); err != nil {
		return nil, err
	}
	return report, report.Error()
}

// refused returns the reason why the server stopped reading its input.
func (s *sshSession) refused(err error) error {
	if !errors.Is(err, io.EOF) {
		return lostIn(err)
	}
	if failed := s.result(); failed != nil {
		return failed
	}
	return &lostError{io.ErrUnexpectedEOF}
}

// Close ends the command and closes the connection.
func (s *sshSession) Close() error {
	if !s.writes {
		_, _ = s.stdin.Write(pktline.FlushPkt) // a flush packet makes the server exit
	}
	s.unhook()
	return s.client.Close()
}
