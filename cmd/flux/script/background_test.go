package script_test

import (
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/test/support/testlimit"
	"github.com/fluxkit/flux/test/support/testterminal"
)

// background has the commands that run while a script continues.
type background struct {
	variables []string // the names of the environment
	jobs      map[string]*job
}

type job struct {
	cmd   *exec.Cmd
	ended chan struct{}
	// terminal is what it runs on, nil for files.
	terminal *testterminal.Terminal
}

// backgroundKey is the key of a script's background.
type backgroundKey struct{}

// newBackground records the names of a script's variables; their values are read
// when a job starts.
func newBackground(env *testscript.Env) {
	b := &background{variables: []string{"CI", "CLOCK", "COLUMNS", "FLUXCD_PLUGIN_CATALOG", "NO_COLOR", "SSL_CERT_FILE", "TERM"}, jobs: map[string]*job{}}
	for _, v := range env.Vars {
		name, _, _ := strings.Cut(v, "=")
		b.variables = append(b.variables, name)
	}
	env.Values[backgroundKey{}] = b
}

// begin starts a command in the background with its output in NAME.out and
// NAME.err: begin NAME COMMAND ARG…
func begin(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: begin NAME COMMAND ARG…")
	}
	b := ts.Value(backgroundKey{}).(*background)
	j := newJob(ts, b, args[1:])
	stdout, err := os.Create(ts.MkAbs(args[0] + ".out"))
	ts.Check(err)
	stderr, err := os.Create(ts.MkAbs(args[0] + ".err"))
	ts.Check(err)
	j.cmd.Stdout, j.cmd.Stderr = stdout, stderr
	ts.Check(j.cmd.Start())
	b.jobs[args[0]] = j
	go func() {
		defer close(j.ended)
		// The exit code is in ProcessState; the error is not needed.
		_ = j.cmd.Wait()
		_, _ = stdout.Close(), stderr.Close()
	}()
	ts.Defer(func() {
		_ = j.cmd.Process.Kill() // fails if it has exited, as in a correct script
		<-j.ended
	})
}

func newJob(ts *testscript.TestScript, b *background, args []string) *job {
	j := &job{cmd: exec.Command("env", args...), ended: make(chan struct{})}
	j.cmd.Dir = ts.MkAbs(".")
	for _, name := range b.variables {
		if value := ts.Getenv(name); value != "" {
			j.cmd.Env = append(j.cmd.Env, name+"="+value)
		}
	}
	return j
}

// waits waits until a file has a match of every pattern: waits FILE PATTERN…
func waits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: waits FILE PATTERN…")
	}
	deadline := time.NewTimer(testlimit.Wait)
	defer deadline.Stop()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for _, pattern := range args[1:] {
		re, err := regexp.Compile("(?m)" + pattern)
		ts.Check(err)
		for {
			data, err := os.ReadFile(ts.MkAbs(args[0]))
			if err == nil && re.Match(data) {
				break
			}
			select {
			case <-look.C:
			case <-deadline.C:
				ts.Fatalf("%s has no match of %s after %s:\n%s", args[0], pattern, testlimit.Wait, data)
			}
		}
	}
}

// expires runs a command whose --timeout passes as soon as stderr has a match of the pattern, so that the result does
// not depend on the speed of the machine: expires CODE PATTERN COMMAND ARG…
func expires(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: expires CODE PATTERN COMMAND ARG…")
	}
	const name = "expires"
	begin(ts, false, append([]string{name}, args[2:]...))
	waits(ts, false, []string{name + ".err", args[1]})
	ts.Check(jobOf(ts, name).cmd.Process.Signal(syscall.SIGUSR1))
	ends(ts, false, []string{name, args[0]})
	for file, to := range map[string]io.Writer{name + ".out": ts.Stdout(), name + ".err": ts.Stderr()} {
		_, err := io.WriteString(to, ts.ReadFile(file))
		ts.Check(err)
	}
}

// interrupt sends SIGINT; the command must exit with 130: interrupt NAME
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: interrupt NAME")
	}
	j := jobOf(ts, args[0])
	ts.Check(j.cmd.Process.Signal(os.Interrupt))
	j.ends(ts, args[0], clierr.ExitInterrupted)
}

// ends waits for the exit of a command and compares its exit code: ends NAME CODE
func ends(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: ends NAME CODE")
	}
	code, err := strconv.Atoi(args[1])
	ts.Check(err)
	jobOf(ts, args[0]).ends(ts, args[0], code)
}

func jobOf(ts *testscript.TestScript, name string) *job {
	j := ts.Value(backgroundKey{}).(*background).jobs[name]
	if j == nil {
		ts.Fatalf("nothing has begun under the name %s", name)
	}
	return j
}

func (j *job) ends(ts *testscript.TestScript, name string, code int) {
	deadline := time.NewTimer(testlimit.Wait)
	defer deadline.Stop()
	select {
	case <-j.ended:
	case <-deadline.C:
		ts.Fatalf("%s has not ended after %s", name, testlimit.Wait)
	}
	if got := j.cmd.ProcessState.ExitCode(); got != code {
		ts.Fatalf("%s exited with %d, want %d\n%s", name, got, code, j.printed(ts, name))
	}
}

// printed returns the output of a command so far.
func (j *job) printed(ts *testscript.TestScript, name string) string {
	if j.terminal != nil {
		screen, above := j.terminal.Shows()
		return above + screen
	}
	return "stdout:\n" + ts.ReadFile(name+".out") + "\nstderr:\n" + ts.ReadFile(name+".err")
}
