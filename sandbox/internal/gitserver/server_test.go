package gitserver

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestRunStopsWithOpenConnections(t *testing.T) {
	t.Parallel()
	h, mine := startHost(t, "demo"), newSSHKey(t)

	connections := map[string]net.Conn{}
	for name, base := range map[string]string{"http": h.HTTP, "https": h.HTTPS, "ssh": h.SSH} {
		connections[name] = connect(t, base) // sends nothing
	}
	connections["tls"] = tls.Client(connect(t, h.HTTPS), &tls.Config{InsecureSkipVerify: true})
	check(t, connections["tls"].(*tls.Conn).HandshakeContext(t.Context()))

	// A push that never finishes: the child waits for the rest.
	body, unfinished := io.Pipe()
	pushed := make(chan error, 1)
	go func() {
		response, err := http.Post(h.URL("http", "demo")+"/git-receive-pack", "application/x-git-receive-pack-request", body)
		if err == nil {
			_, err = io.Copy(io.Discard, response.Body)
			err = errors.Join(err, response.Body.Close())
		}
		pushed <- err
	}()
	_, err := unfinished.Write([]byte("00"))
	check(t, err)
	h.log.await(t, "POST demo git-receive-pack")

	// A clone that sends nothing: the child waits for the wanted commits.
	session, err := dial(t, h, mine).NewSession()
	check(t, err)
	output, err := session.StdoutPipe()
	check(t, err)
	input, err := session.StdinPipe()
	check(t, err)
	check(t, session.Start("git-upload-pack '/demo.git'"))
	_, err = io.ReadFull(output, make([]byte, 4))
	check(t, err)

	if err := h.stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
	for name, connection := range connections {
		check(t, connection.SetReadDeadline(time.Now().Add(bound)))
		_, err := io.Copy(io.Discard, connection)
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			t.Errorf("the silent %s connection is still open", name)
		}
	}
	if err := session.Wait(); err == nil {
		t.Error("the interrupted clone succeeded")
	}
	_ = unfinished.Close()
	if err := <-pushed; err == nil {
		t.Error("the interrupted push succeeded")
	}
	_ = input.Close()
	awaitNoProcesses(t, h.root)
	if _, err := Running(h.root); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Running after Run has returned: %v, want ErrNotRunning", err)
	}
}

// A client that requests much and reads little keeps the children writing until they are stopped.
func TestRunStopsDuringAClone(t *testing.T) {
	t.Parallel()
	h, c := startHost(t, "demo"), newClient(t)
	work := c.worktree(t)
	noise := make([]byte, 8<<20) // larger than the socket buffers
	_, _ = rand.Read(noise)
	check(t, os.WriteFile(filepath.Join(c.home, work, "noise"), noise, 0o600))
	c.must(t, "-C", work, "add", ".")
	c.must(t, "-C", work, "commit", "--quiet", "--message=noise")
	c.must(t, "-C", work, "push", "--quiet", h.URL("http", "demo"), "main")
	commit := strings.TrimSpace(c.must(t, "-C", work, "rev-parse", "HEAD"))

	request := fmt.Sprintf("0032want %s\n00000009done\n", commit)
	response, err := http.Post(h.URL("http", "demo")+"/git-upload-pack", "application/x-git-upload-pack-request", strings.NewReader(request))
	check(t, err)
	defer func() { _ = response.Body.Close() }()
	_, err = io.ReadFull(response.Body, make([]byte, 64))
	check(t, err)
	if err := h.stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
	awaitNoProcesses(t, h.root)
	if got, err := io.Copy(io.Discard, response.Body); err == nil {
		t.Errorf("the interrupted clone succeeded after %d more bytes", got)
	}
}

// Run waits for a push that has begun to change the repository, and for its hooks.
func TestRunWaitsForHooks(t *testing.T) {
	t.Parallel()
	h, c := startHost(t, "demo"), newClient(t)
	folder := h.repositories.folder("demo")
	started, release := pipe(t, filepath.Join(folder, "started")), pipe(t, filepath.Join(folder, "release"))
	hook := "#!/bin/sh\necho >started\nread line <release\necho \"$line\" >finished\n"
	check(t, os.WriteFile(filepath.Join(folder, "hooks", "post-receive"), []byte(hook), 0o700))
	work := c.worktree(t)
	pushed := make(chan error, 1)
	go func() {
		_, err := c.git(t, "-C", work, "push", h.URL("http", "demo"), "main")
		pushed <- err
	}()
	_, err := started.Read(make([]byte, 1))
	check(t, err)

	stopped := make(chan error, 1)
	go func() { stopped <- h.stop() }()
	if err := <-pushed; err == nil { // so the server has closed the connection
		t.Error("the interrupted push succeeded")
	}
	select {
	case err := <-stopped:
		t.Fatalf("Run returned (%v) while the hook was waiting", err)
	default:
	}
	_, err = release.WriteString("well\n")
	check(t, err)
	check(t, <-stopped)
	finished, err := os.ReadFile(filepath.Join(folder, "finished"))
	if string(finished) != "well\n" {
		t.Errorf("the hook had not finished when Run returned: %q, %v", finished, err)
	}
}

// pipe creates a named pipe and opens both of its ends, so that opening it never blocks.
func pipe(t *testing.T, path string) *os.File {
	t.Helper()
	check(t, syscall.Mkfifo(path, 0o600))
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	check(t, err)
	t.Cleanup(func() { _ = file.Close() })
	return file
}

func connect(t *testing.T, base string) net.Conn {
	t.Helper()
	address, err := url.Parse(base)
	check(t, err)
	connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", address.Host)
	check(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// awaitNoProcesses returns when no program works in root. Run waits for the programs it has started, but a
// 'git pack-objects' that one of them has started ends at its next write, shortly after.
func awaitNoProcesses(t *testing.T, root string) {
	t.Helper()
	deadline := time.After(bound)
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for {
		left := processesIn(t, root)
		if len(left) == 0 {
			return
		}
		select {
		case <-poll.C:
		case <-deadline:
			t.Fatalf("programs still run after Run has returned: %q", left)
		}
	}
}

// processesIn lists the programs whose working directory is in root, on systems with /proc.
func processesIn(t *testing.T, root string) []string {
	t.Helper()
	var found []string
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	check(t, err)
	for _, link := range links {
		folder, err := os.Readlink(link)
		if err == nil && (folder == root || strings.HasPrefix(folder, root+"/")) {
			command, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
			found = append(found, strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return found
}

func TestRunRefusesAddresses(t *testing.T) {
	t.Parallel()
	tests := []struct{ address, want string }{
		{"0.0.0.0:0", `git over http: listen address "0.0.0.0:0" is reachable from other machines: use 127.0.0.1, [::1] or localhost`},
		{"[::]:0", `git over http: listen address "[::]:0" is reachable from other machines: use 127.0.0.1, [::1] or localhost`},
		{"192.0.2.1:0", `git over http: listen address "192.0.2.1:0" is reachable from other machines: use 127.0.0.1, [::1] or localhost`},
		{":0", `git over http: listen address ":0" has no host and would listen on all interfaces: set the host to 127.0.0.1, [::1] or localhost`},
		{"127.0.0.1", `git over http: reading listen address "127.0.0.1": address 127.0.0.1: missing port in address`},
		{"", "no address to listen on: set HTTPAddr, HTTPSAddr or SSHAddr"},
	}
	for _, test := range tests {
		t.Run(test.address, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), bound)
			defer cancel()
			err := Run(ctx, Config{Root: t.TempDir(), HTTPAddr: test.address})
			if got := fmt.Sprint(err); got != test.want {
				t.Errorf("Run: %s\nwant: %s", got, test.want)
			}
		})
	}
}

func TestRunOncePerRoot(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	err := Run(t.Context(), Config{Root: h.root, HTTPAddr: "127.0.0.1:0"})
	if err == nil || !strings.HasPrefix(err.Error(), "another git server already serves "+h.root) {
		t.Errorf("second Run: %v", err)
	}
	running, err := Running(h.root)
	check(t, err)
	if running != h.Addresses {
		t.Errorf("Running returns %+v, want %+v", running, h.Addresses)
	}
}

// The files of a server that was killed must not look like those of a running one.
func TestRunningAfterACrash(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	check(t, Addresses{HTTP: "http://127.0.0.1:1"}.write(root))
	if _, err := Running(root); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Running: %v, want ErrNotRunning", err)
	}
}

func TestSecretFilesArePrivate(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	configure(t, h.credentials)
	got := map[string]fs.FileMode{}
	for _, name := range []string{"ca.key", "ssh_host_ed25519_key", "credentials.json", "server.json"} {
		info, err := os.Stat(filepath.Join(h.root, name))
		check(t, err)
		got[name] = info.Mode().Perm()
	}
	for name, mode := range got {
		if mode != 0o600 {
			t.Errorf("%s has mode %o, want 600", name, mode)
		}
	}
	data, err := os.ReadFile(filepath.Join(h.root, "credentials.json"))
	check(t, err)
	for _, secret := range []string{"correct-horse", "look-only", "token-rw", "token-ro"} {
		if strings.Contains(string(data), secret) {
			t.Errorf("credentials.json contains %q in plain text", secret)
		}
	}
}

func TestConcurrentCallsGetTheSameCA(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	var askers sync.WaitGroup
	serials := make([]string, 8)
	for i := range serials {
		askers.Go(func() {
			if err := EnsureCA(root); err != nil {
				t.Error(err)
				return
			}
			certificate, err := os.ReadFile(CAFile(root))
			if err != nil {
				t.Error(err)
			}
			serials[i] = string(certificate)
		})
	}
	askers.Wait()
	if different := slices.Compact(serials); len(different) != 1 {
		t.Errorf("the calls returned %d different CAs", len(different))
	}
}
