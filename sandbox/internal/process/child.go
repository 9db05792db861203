package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Command describes the program to start.
type Command struct {
	Path   string
	Args   []string
	Env    []string
	Dir    string
	Output io.Writer // stdout and stderr; an *os.File is passed without a copy
	// Restrict is called on the thread that starts the program, so that its restrictions also apply to the program. It
	// may be nil.
	Restrict func() error
}

// Child is a child process.
type Child struct {
	Identity
	done chan struct{}
	err  error
}

// Starter starts children from one thread that runs as long as the program. Linux sends the parent-death signal when the
// thread that started the child ends, which can be long before the program exits if the thread belongs to a goroutine.
type Starter struct{ requests chan func() }

// NewStarter starts the thread. It ends when ctx is canceled, and on Linux so do its children, so ctx must outlive them.
func NewStarter(ctx context.Context) *Starter {
	s := &Starter{requests: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for {
			select {
			case <-ctx.Done():
				return
			case start := <-s.requests:
				start()
			}
		}
	}()
	return s
}

// Do calls f on the thread.
func (s *Starter) Do(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case s.requests <- func() { f(); close(done) }:
		<-done
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Start runs the command and returns once it is running.
func (s *Starter) Start(ctx context.Context, c Command) (*Child, error) {
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env, cmd.Dir = c.Env, c.Dir
	cmd.Stdout, cmd.Stderr = c.Output, c.Output
	cmd.SysProcAttr = childAttributes()
	// A grandchild that keeps the output open must not block Wait.
	cmd.WaitDelay = time.Second
	child := &Child{done: make(chan struct{})}
	if err := s.start(ctx, cmd, c.Restrict, child.done); err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Path, err)
	}
	child.Identity = Identify(cmd.Process.Pid)
	go func() {
		child.err = cmd.Wait()
		close(child.done)
	}()
	return child, nil
}

// start starts a program on the thread, or on a separate thread if it is restricted. The separate thread lives as long
// as the program.
func (s *Starter) start(ctx context.Context, cmd *exec.Cmd, restrict func() error, done <-chan struct{}) (err error) {
	if restrict == nil {
		var failed error
		err = s.Do(ctx, func() { failed = cmd.Start() })
		return errors.Join(err, failed)
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with this function
		err := restrict()
		if err == nil {
			err = cmd.Start()
		}
		started <- err
		if err == nil {
			<-done
		}
	}()
	return <-started
}

// Done returns a channel that is closed when the child has exited.
func (c *Child) Done() <-chan struct{} { return c.done }

// Err returns the error of the child. It must be called after Done is closed.
func (c *Child) Err() error { return c.err }

// Stop sends SIGTERM to the child, kills it after grace, and waits for its exit.
func (c *Child) Stop(grace time.Duration) {
	_ = c.End(context.Background(), grace) // a signal fails only when the child has already exited
	<-c.done
}

// ExitCode returns the exit code of the child, or 128+n after signal n.
func (c *Child) ExitCode() int {
	var exit *exec.ExitError
	if !errors.As(c.err, &exit) {
		return 0
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}

// OpenLog opens an output file for appending, readable by its owner only.
func OpenLog(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening log %s: %w", path, err)
	}
	return file, nil
}

// Environment returns the environment of a component of the sandbox: the variables for git and temporary files, without
// the tokens, sockets and settings of the user.
func Environment(home string) []string {
	env := []string{"HOME=" + home}
	for _, name := range []string{"PATH", "TMPDIR", "GIT_EXEC_PATH"} {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	return env
}
