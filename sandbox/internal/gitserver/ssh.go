package gitserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/fluxkit/flux/sandbox/internal/credentials"
)

// handshakeBound limits the duration of a handshake.
const handshakeBound = 30 * time.Second

var errNotAuthorized = errors.New("this key is not authorized")

func (s *server) sshDoor(root string) (func(context.Context, net.Listener) error, error) {
	signer, err := hostKey(root)
	if err != nil {
		return nil, err
	}
	config := &ssh.ServerConfig{
		ServerVersion: "SSH-2.0-flux-sandbox",
		NoClientAuth:  true, // as restricted by the next function
		NoClientAuthCallback: func(ssh.ConnMetadata) (*ssh.Permissions, error) {
			set, err := s.credentials.Load()
			if err == nil && !set.Open() {
				err = errNotAuthorized
			}
			return &ssh.Permissions{}, err
		},
		PublicKeyCallback: func(_ ssh.ConnMetadata, offered ssh.PublicKey) (*ssh.Permissions, error) {
			access, err := s.keyAccess(offered.Marshal())
			if err == nil && access == credentials.None {
				err = errNotAuthorized
			}
			return &ssh.Permissions{ExtraData: map[any]any{keyOfClient{}: offered.Marshal()}}, err
		},
	}
	config.AddHostKey(signer)
	return func(ctx context.Context, listener net.Listener) error { return s.serveSSH(ctx, listener, config) }, nil
}

// keyOfClient is the context key for the public key of a connection.
type keyOfClient struct{}

// keyAccess is called for every service, so that a removed key is also rejected on open connections.
func (s *server) keyAccess(marshalled []byte) (credentials.Access, error) {
	set, err := s.credentials.Load()
	if err != nil {
		return credentials.None, err
	}
	if set.Open() {
		return credentials.Write, nil
	}
	if marshalled == nil {
		return credentials.None, nil
	}
	public, err := ssh.ParsePublicKey(marshalled)
	if err != nil {
		return credentials.None, fmt.Errorf("reading the client's key: %w", err)
	}
	return set.Key(public), nil
}

func (s *server) serveSSH(ctx context.Context, listener net.Listener, config *ssh.ServerConfig) error {
	unhook := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer func() {
		unhook()
		_ = listener.Close()
	}()
	for {
		connection, err := listener.Accept()
		if ctx.Err() != nil {
			if err == nil {
				_ = connection.Close()
			}
			return nil
		}
		if err != nil {
			return err
		}
		s.busy.Go(func() { s.connection(ctx, connection, config) })
	}
}

func (s *server) connection(ctx context.Context, raw net.Conn, config *ssh.ServerConfig) {
	unhook := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer unhook()
	defer func() { _ = raw.Close() }()

	_ = raw.SetDeadline(time.Now().Add(handshakeBound))
	connection, channels, requests, err := ssh.NewServerConn(raw, config)
	if err != nil {
		s.log.Printf("ssh connection rejected: %v", err)
		return
	}
	_ = raw.SetDeadline(time.Time{})
	var marshalled []byte
	if connection.Permissions != nil {
		marshalled, _ = connection.Permissions.ExtraData[keyOfClient{}].([]byte)
	}
	var sessions sync.WaitGroup
	sessions.Go(func() { ssh.DiscardRequests(requests) })
	for offered := range channels {
		if offered.ChannelType() != "session" {
			_ = offered.Reject(ssh.UnknownChannelType, "only Git is served here")
			continue
		}
		channel, requests, err := offered.Accept()
		if err != nil {
			break
		}
		sessions.Go(func() { s.session(ctx, channel, requests, marshalled) })
	}
	_ = raw.Close()
	sessions.Wait()
}

// session waits for the single command of a session and runs it. Terminal requests are rejected.
func (s *server) session(ctx context.Context, channel ssh.Channel, requests <-chan *ssh.Request, key []byte) {
	var running sync.WaitGroup
	defer running.Wait()
	protocol, started := "", false
	for request := range requests {
		accepted := false
		switch request.Type {
		case "env":
			var variable struct{ Name, Value string }
			if ssh.Unmarshal(request.Payload, &variable) == nil && variable.Name == "GIT_PROTOCOL" {
				protocol, accepted = variable.Value, true
			}
		case "exec", "shell":
			if started {
				break
			}
			var command struct{ Line string }
			if request.Type == "exec" && ssh.Unmarshal(request.Payload, &command) != nil {
				break
			}
			started, accepted = true, true
			_ = request.Reply(true, nil)
			version := protocol
			running.Go(func() { s.execute(ctx, channel, command.Line, version, key) })
			continue
		}
		if request.WantReply {
			_ = request.Reply(accepted, nil)
		}
	}
}

// execute runs the requested service and reports its exit status, which clients wait for.
func (s *server) execute(ctx context.Context, channel ssh.Channel, line, protocol string, key []byte) {
	defer func() { _ = channel.Close() }()
	status := 0
	if err := s.service(ctx, channel, line, protocol, key); err != nil {
		status = 1
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			status = max(failed.ExitCode(), 1) // -1 means a signal
		} else {
			s.log.Printf("ssh request rejected: %v", err)
			_, _ = fmt.Fprintln(channel.Stderr(), gitError(err))
		}
	}
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(status)}))
}

// gitError formats an error like the large Git hosts. SSH has no status codes, so client libraries detect a missing
// repository by this text.
func gitError(err error) string {
	if detail, missing := strings.CutPrefix(err.Error(), ErrNotFound.Error()+": "); missing {
		return "ERROR: Repository not found. (" + detail + ")"
	}
	return "ERROR: " + err.Error()
}

func (s *server) service(ctx context.Context, channel ssh.Channel, line, protocol string, key []byte) error {
	service, path, err := parseCommand(line)
	if err != nil {
		return err
	}
	access, err := s.keyAccess(key)
	if err != nil {
		s.log.Print(err)
		return errors.New("the server's credentials cannot be read: see its log")
	}
	if access == credentials.None {
		return errNotAuthorized
	}
	name, folder, err := s.repositories.Find(path)
	if err != nil {
		return err
	}
	if service == receivePack && access < credentials.Write {
		return fmt.Errorf("this key may read %s but not push to it", name)
	}
	s.log.Printf("SSH %s %s", name, service)
	return s.child(ctx, channel, service, folder, protocol)
}

// child runs a Git service on the channel. A goroutine copies the input, because os/exec would wait for clients that
// keep their side open until they have read the exit status.
func (s *server) child(ctx context.Context, channel ssh.Channel, service, folder, protocol string) error {
	args := append(settings(), strings.TrimPrefix(service, "git-"), folder)
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = s.repositories.root
	cmd.Env = environment(s.repositories.root)
	if protocol != "" {
		cmd.Env = append(cmd.Env, "GIT_PROTOCOL="+protocol)
	}
	cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
	// On SIGTERM, Git removes its lock files and partially received objects.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	input, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("starting %s: %w", service, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", service, err)
	}
	s.busy.Go(func() { // ends at the latest when the caller closes the channel
		_, _ = io.Copy(input, channel)
		_ = input.Close()
	})
	return cmd.Wait()
}

// parseCommand parses the command of a Git client: a service and a path quoted for a shell.
func parseCommand(line string) (service, path string, err error) {
	if line == "" {
		return "", "", errors.New("interactive shells are not supported: use git clone, fetch or push")
	}
	if command, spaced := strings.CutPrefix(line, "git "); spaced {
		line = "git-" + command
	}
	service, quoted, _ := strings.Cut(line, " ")
	if service != uploadPack && service != receivePack {
		return "", "", fmt.Errorf("unknown service %q: must be git-upload-pack or git-receive-pack", service)
	}
	path = strings.TrimSpace(quoted)
	if inner, found := strings.CutPrefix(path, "'"); found {
		if inner, found = strings.CutSuffix(inner, "'"); !found {
			return "", "", fmt.Errorf("%w: unbalanced quotes in %q", ErrNotFound, path)
		}
		path = inner // a quote in the path, which Git writes as '\'', is invalid in a name and rejected later
	}
	return service, path, nil
}

// logWriter logs the output of child processes, one write at a time.
type logWriter struct{ log *log.Logger }

func (w logWriter) Write(text []byte) (int, error) {
	w.log.Print(string(trimmed(text)))
	return len(text), nil
}
