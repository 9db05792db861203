//go:build linux

package confine_test

import (
	"bufio"
	"errors"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// trace contains the actions of a command and its processes, from strace.
type trace struct {
	output string
	code   int
	// executed lists the programs that they started, or tried to start, each with its first argument that is a word.
	executed map[string]bool
	// opened lists the files and directories that they opened, with resolved links.
	opened map[string]bool
	// connected lists the addresses and Unix sockets to which they opened connections. Connections in a network
	// namespace are excluded: all servers there are part of the sandbox.
	connected map[string]bool
}

// traced runs a command under strace. The command must exit by itself, with a code of flux.
func traced(t *testing.T, dir string, env []string, program string, args ...string) trace {
	t.Helper()
	log := filepath.Join(t.TempDir(), "strace.log")
	calls := "execve,execveat,connect,open,openat,openat2,creat,clone,clone3,fork,vfork,unshare"
	options := []string{"-f", "--seccomp-bpf", "-y", "-qq", "-s", "4096", "-e", "signal=none", "-e", "trace=?" + strings.ReplaceAll(calls, ",", ",?"), "-o", log, program}
	cmd := exec.CommandContext(t.Context(), "strace", slices.Concat(options, args)...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		t.Fatalf("%v: install strace, such as with apt-get install strace", err)
	}
	code := cmd.ProcessState.ExitCode()
	if code < 0 || code > 2 {
		t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
	done := evaluated(readCalls(t, log))
	done.output, done.code = string(out), code
	return done
}

// call is a system call of a thread.
type call struct{ thread, name, arguments, result string }

var (
	complete   = regexp.MustCompile(`^(\d+) +(\w+)\((.*)\) += (.+)$`)
	unfinished = regexp.MustCompile(`^(\d+) +(\w+)\((.*) <unfinished \.\.\.>$`)
	resumed    = regexp.MustCompile(`^(\d+) +<\.\.\. \w+ resumed>(.*)\) += (.+)$`)
	// opening is the result of a call that opened a file.
	opening = regexp.MustCompile(`^\d+<(.*)>$`)
	// program contains the path of a program, and its first argument that is a word.
	program = regexp.MustCompile(`^[^"]*"((?:[^"\\]|\\.)*)", \["[^"]*"(?:.*? "([a-z][a-z-]*)")?`)
	unix    = regexp.MustCompile(`sa_family=AF_UNIX, sun_path=(@?"[^"]+")`)
	// internet lists the arguments of a connection to a port.
	internet = regexp.MustCompile(`sa_family=AF_INET6?, sin6?_port=htons\((\d+)\), .*?"([^"]+)"`)
)

// readCalls reads a log of strace.
func readCalls(t *testing.T, log string) []call {
	t.Helper()
	file, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var calls []call
	begun := map[string]call{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		switch line := lines.Text(); {
		case complete.MatchString(line):
			m := complete.FindStringSubmatch(line)
			calls = append(calls, call{m[1], m[2], m[3], m[4]})
		case unfinished.MatchString(line):
			m := unfinished.FindStringSubmatch(line)
			begun[m[1]] = call{m[1], m[2], m[3], ""}
		case resumed.MatchString(line):
			m := resumed.FindStringSubmatch(line)
			c := begun[m[1]]
			calls = append(calls, call{m[1], c.name, c.arguments + m[2], m[3]})
			delete(begun, m[1])
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for _, c := range begun { // of threads that ended
		calls = append(calls, c)
	}
	return calls
}

// evaluated returns the actions of the calls.
func evaluated(calls []call) trace {
	done := trace{executed: map[string]bool{}, opened: map[string]bool{}, connected: map[string]bool{}}
	since := isolated(calls)
	for i, c := range calls {
		switch c.name {
		case "execve", "execveat":
			if m := program.FindStringSubmatch(c.arguments); m != nil {
				done.executed[strings.TrimSpace(m[1]+" "+m[2])] = true
			}
		case "connect":
			if m := unix.FindStringSubmatch(c.arguments); m != nil {
				done.connected[strings.ReplaceAll(m[1], `"`, "")] = true
			}
			if m := internet.FindStringSubmatch(c.arguments); m != nil {
				if first, is := since[c.thread]; is && i >= first {
					continue
				}
				done.connected[net.JoinHostPort(m[2], m[1])] = true
			}
		case "open", "openat", "openat2", "creat":
			if m := opening.FindStringSubmatch(c.result); m != nil {
				done.opened[m[1]] = true
			}
		}
	}
	return done
}

// isolated returns the threads that are in a network namespace of the command, with the index of the first call there.
func isolated(calls []call) map[string]int {
	since := map[string]int{}
	for known := -1; known < len(since); { // a process may be traced before the call that started it returns
		known = len(since)
		for i, c := range calls {
			switch c.name {
			case "unshare":
				if strings.Contains(c.arguments, "CLONE_NEWNET") && c.result == "0" {
					since[c.thread] = i
				}
			case "clone", "clone3", "fork", "vfork":
				// A thread that was killed has no result.
				if first, is := since[c.thread]; is && i > first && c.result != "" {
					since[strings.Fields(c.result)[0]] = 0
				}
			}
		}
	}
	return since
}

// TestTrace evaluates a log with calls that other threads interrupt, and with a process in a network namespace.
func TestTrace(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "strace.log")
	writeFile(t, log, `10 execve("/bin/flux", ["/bin/flux", "test"], 0x7ffe /* 9 vars */) = 0
10 openat(AT_FDCWD</work>, "a.yaml", O_RDONLY|O_CLOEXEC) = 3</work/a.yaml>
10 openat(AT_FDCWD</work>, "missing", O_RDONLY|O_CLOEXEC) = -1 ENOENT (No such file or directory)
10 clone(child_stack=NULL, flags=CLONE_VM|CLONE_NEWUSER|SIGCHLD <unfinished ...>
11 execve("hooks/update", ["hooks/update", "refs/heads/main"], 0x7ffe /* 9 vars */ <unfinished ...>
10 <... clone resumed>) = 11
11 <... execve resumed>) = 0
11 connect(3<socket:[1]>, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("192.0.2.1")}, 16) = -1 EINPROGRESS (Operation now in progress)
11 unshare(CLONE_NEWNET) = 0
11 connect(3<socket:[2]>, {sa_family=AF_INET, sin_port=htons(81), sin_addr=inet_addr("127.0.0.1")}, 16) = 0
11 clone3({flags=CLONE_VM|CLONE_VFORK, exit_signal=SIGCHLD}, 88) = 12
11 clone(child_stack=NULL, flags=CLONE_VM|SIGCHLD <unfinished ...>
12 execve("/usr/bin/git", ["git", "-c", "a.b=c", "fetch", "origin"], 0x7ffe /* 9 vars */) = -1 EACCES (Permission denied)
12 connect(3<socket:[3]>, {sa_family=AF_INET6, sin6_port=htons(82), sin6_flowinfo=htonl(0), inet_pton(AF_INET6, "::1", &sin6_addr), sin6_scope_id=0}, 28) = 0
12 connect(3<socket:[4]>, {sa_family=AF_UNIX, sun_path="/run/agent.sock"}, 110) = 0
10 connect(4<socket:[5]>, {sa_family=AF_INET6, sin6_port=htons(83), sin6_flowinfo=htonl(0), inet_pton(AF_INET6, "::1", &sin6_addr), sin6_scope_id=0}, 28 <unfinished ...>
`)
	done := evaluated(readCalls(t, log))
	for name, sets := range map[string][2][]string{
		"executed":  {slices.Sorted(maps.Keys(done.executed)), {"/bin/flux test", "/usr/bin/git fetch", "hooks/update"}},
		"opened":    {slices.Sorted(maps.Keys(done.opened)), {"/work/a.yaml"}},
		"connected": {slices.Sorted(maps.Keys(done.connected)), {"/run/agent.sock", "192.0.2.1:80", "[::1]:83"}},
	} {
		if diff := cmp.Diff(sets[1], sets[0]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
