// Package testgitea runs a real Gitea for tests, over HTTPS and SSH on loopback. It
// stops with the test.
package testgitea

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testlimit"
)

const (
	// downTime is the maximum time of a graceful shutdown.
	downTime = 20 * time.Second
	// tail is the size of the end of the log that a failed test prints, in bytes.
	tail = 4 << 10
)

// Server is a running Gitea.
type Server struct {
	// Dir contains the state and the log.
	Dir string
	// Hostname is the host and port of the API and of Git over HTTPS, SSH the host and
	// port of Git over SSH.
	Hostname, SSH string
	// CAFile is the file with the CA certificate, CA its content.
	CAFile string
	CA     []byte
	// Admin is the administrator.
	Admin Account

	program string
	client  *http.Client
	web     *exec.Cmd
	ended   chan error
	stdin   io.Closer
}

// Account is a user of a Server.
type Account struct {
	Name, Password string
	// Token has all scopes.
	Token string
}

// Start runs a Gitea until the end of the test and its subtests.
func Start(t testing.TB) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testlimit.Wait)
	defer cancel()
	s, err := Up(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the log of Gitea, %s, ends with:\n%s", s.logFile(), s.log())
			return
		}
		if err := os.RemoveAll(s.Dir); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Up runs Gitea in a temporary directory until Stop, which keeps the directory.
func Up(ctx context.Context) (*Server, error) {
	s := &Server{program: filepath.Join(testcluster.Bin(), "gitea"), ended: make(chan error, 1)}
	if _, err := os.Stat(s.program); err != nil {
		return nil, fmt.Errorf("finding Gitea (make gitea builds it): %w", err)
	}
	var err error
	if s.Dir, err = os.MkdirTemp("", "flux-gitea-"); err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		err = fmt.Errorf("starting Gitea: %w\n%s", err, s.log())
		return nil, errors.Join(err, s.Stop(), os.RemoveAll(s.Dir))
	}
	return s, nil
}

func (s *Server) start(ctx context.Context) error {
	listeners, err := listen(&s.Hostname, &s.SSH)
	defer func() {
		for _, f := range listeners {
			_ = f.Close() // Gitea has its own copy
		}
	}()
	if err != nil {
		return err
	}
	if err := s.certify(); err != nil {
		return err
	}
	if err := s.configure(); err != nil {
		return err
	}
	if err := s.serve(listeners); err != nil {
		return err
	}
	// The sockets are open before Gitea listens, so the first request waits for it.
	if err := s.Call(ctx, "", http.MethodGet, "/api/healthz", nil, nil); err != nil {
		return err
	}
	s.Admin, err = s.createAdmin(ctx)
	return err
}

// listen opens loopback sockets, so that no other program can take their ports
// before Gitea listens, and stores their addresses.
func listen(addresses ...*string) ([]*os.File, error) {
	var files []*os.File
	for _, address := range addresses {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return files, err
		}
		*address = l.Addr().String()
		tcp, _ := l.(*net.TCPListener)
		f, err := tcp.File()
		if err := errors.Join(err, l.Close()); err != nil {
			return files, err
		}
		files = append(files, f)
	}
	return files, nil
}

// serve starts the process. It stops when its standard input is closed, even if the test
// is killed.
func (s *Server) serve(listeners []*os.File) error {
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := s.command("web")
	cmd.ExtraFiles = listeners
	cmd.Env = append(cmd.Env, fmt.Sprintf("GITEA_SOCKETS=%d", len(listeners)), "GITEA_ENDS_WITH_STDIN=true")
	cmd.Stdout, cmd.Stderr = log, log
	if s.stdin, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.web = cmd
	var waiting sync.WaitGroup
	waiting.Go(func() { s.ended <- cmd.Wait() })
	return nil
}

// command returns a command of Gitea with the state of this server.
func (s *Server) command(args ...string) *exec.Cmd {
	cmd := exec.Command(s.program, append([]string{"--work-path", s.Dir, "--config", filepath.Join(s.Dir, "app.ini")}, args...)...)
	cmd.Dir = s.Dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.Dir, "TMPDIR=" + os.TempDir()}
	if os.Getuid() == 0 {
		// Otherwise, Gitea does not run as root.
		cmd.Env = append(cmd.Env, "GITEA_I_AM_BEING_UNSAFE_RUNNING_AS_ROOT=true")
	}
	return cmd
}

var printed = regexp.MustCompile(`(?s)random password is '([^']+)'.*successfully created\.\.\. (\S+)`)

// createAdmin creates the first account. Gitea generates password and token, so that
// they are not in process arguments.
func (s *Server) createAdmin(ctx context.Context) (Account, error) {
	cmd := s.command("admin", "user", "create", "--admin", "--username=root", "--email=root@example.com", "--random-password",
		"--must-change-password=false", "--access-token", "--access-token-scopes=all")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := runBounded(ctx, cmd); err != nil {
		return Account{}, fmt.Errorf("creating the administrator: %w\n%s", err, &out)
	}
	found := printed.FindStringSubmatch(out.String())
	if found == nil {
		return Account{}, fmt.Errorf("creating the administrator: no password and token in %q", out.String())
	}
	return Account{Name: "root", Password: found[1], Token: found[2]}, nil
}

func runBounded(ctx context.Context, cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	return cmd.Wait()
}

// Stop stops the server.
func (s *Server) Stop() error {
	if s.web == nil {
		return nil
	}
	web := s.web
	s.web = nil
	s.client.CloseIdleConnections()
	if err := web.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case err := <-s.ended:
		_ = s.stdin.Close()
		return err
	case <-time.After(downTime):
		return errors.Join(errors.New("stopping Gitea: it did not end in time"), web.Process.Kill(), <-s.ended)
	}
}

func (s *Server) logFile() string { return filepath.Join(s.Dir, "gitea.log") }

// log returns the last lines of the log.
func (s *Server) log() string {
	data, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	return strings.ToValidUTF8(string(data[max(0, len(data)-tail):]), "")
}
