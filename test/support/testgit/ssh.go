// Package testgit serves Git repositories over SSH for tests, and injects faults.
package testgit

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
)

// The stages of a Git command over SSH.
const (
	// Connect is a connection before the handshake.
	Connect = "connect"
	// Authenticate is the public-key authentication.
	Authenticate = "authenticate"
	// Command is the request to run git-upload-pack or git-receive-pack.
	Command = "command"
	// References is the reference list of the server.
	References = "references"
	// Transfer is the transfer of objects, after its first bytes.
	Transfer = "transfer"
	// Done is the end of a command, before its exit status is sent.
	Done = "done"
)

// Point is a stage of one command.
type Point struct {
	// Service is git-upload-pack or git-receive-pack, "" before Command.
	Service, Stage string
}

// Fault is the behavior of the server at a point.
type Fault int

// Faults.
const (
	// None continues.
	None Fault = iota
	// Stall sends nothing more and keeps the connection open.
	Stall
	// Drop closes the connection.
	Drop
	// Fail ends the command with an error message.
	Fail
	// Garbage sends bytes that violate the protocol and ends the command.
	Garbage
	// Endless sends endless valid output.
	Endless
)

// SSH is an SSH server for the Git repositories in a directory.
type SSH struct {
	*Server
	// URL is the URL of the directory.
	URL string

	root  string
	fault func(Point) Fault
}

// StartSSH starts a server that accepts all keys. It calls fault at each point.
func StartSSH(t testing.TB, root string, fault func(Point) Fault) *SSH {
	t.Helper()
	s := &SSH{root: root, fault: fault}
	var err error
	if s.Server, err = Listen(Handler{Serves: s.serves, Key: s.authenticate, Exec: s.exec}); err != nil {
		t.Fatal(err)
	}
	s.URL = "ssh://git@" + s.Addr()
	s.Serve()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *SSH) serves(net.Conn) bool {
	fault := s.fault(Point{Stage: Connect})
	if fault == Stall {
		<-s.Closed()
	}
	return fault == None
}

func (s *SSH) authenticate(ssh.PublicKey) (*ssh.Permissions, error) {
	if s.fault(Point{Stage: Authenticate}) != None {
		<-s.Closed()
	}
	return &ssh.Permissions{}, nil
}

func (s *SSH) exec(session *Session) {
	c := &running{Session: session, SSH: s}
	if c.faulty(Command) {
		return
	}
	session.Accept()
	status := c.git()
	if !c.faulty(Done) {
		session.Exit(status)
	}
}

// running is a Git command of a client.
type running struct {
	*Session
	*SSH

	mu sync.Mutex
	// asked is set when the client has sent something.
	asked bool
	// header is the header of a message whose content has not been written yet.
	header []byte
}

// faulty applies the fault at a stage. It returns false if there is none.
func (c *running) faulty(stage string) bool {
	switch c.fault(Point{c.Service, stage}) {
	case Stall:
		<-c.SSH.Closed()
	case Drop:
		_ = c.Conn.Close()
	case Fail:
		_, _ = fmt.Fprintln(c.Channel.Stderr(), "fatal: out of disk space")
		c.Exit(128)
		_ = c.Channel.Close()
	case Garbage:
		_, _ = io.WriteString(c.Channel, "Welcome to the appliance\r\n")
		c.Exit(0)
		_ = c.Channel.Close()
	case Endless:
		c.endless(stage)
	default:
		return false
	}
	return true
}

// endless sends references or progress messages until the client disconnects.
func (c *running) endless(stage string) {
	line := strings.Repeat("1", 40) + " refs/heads/branch-%09d\x00report-status\n"
	if stage == Transfer {
		line = "\x02remote: %09d\n"
	}
	var chunk strings.Builder
	for n := 0; ; n++ {
		chunk.Reset()
		for i := range 1000 {
			text := fmt.Sprintf(line, 1000*n+i)
			fmt.Fprintf(&chunk, "%04x%s", len(text)+4, text)
		}
		if _, err := io.WriteString(c.Channel, chunk.String()); err != nil {
			return
		}
	}
}

// git runs Git and copies data between Git and the client, with the fault.
func (c *running) git() uint32 {
	if c.faulty(References) {
		return 1
	}
	cmd := exec.Command("git", strings.TrimPrefix(c.Service, "git-"), filepath.Join(c.root, filepath.FromSlash(c.Repository)))
	cmd.Stdout, cmd.Stderr = c, c.Channel.Stderr()
	input, err := cmd.StdinPipe()
	if err != nil {
		return 1
	}
	if err := cmd.Start(); err != nil {
		return 1
	}
	c.SSH.Go(func() { // ends when the channel is closed
		buffer := make([]byte, 4096)
		for {
			n, err := c.Channel.Read(buffer)
			if n > len("0000") { // a flush packet means that there is nothing to do
				c.mu.Lock()
				c.asked = true
				c.mu.Unlock()
			}
			if c.Service == "git-receive-pack" && n > len("0000") && c.faulty(Transfer) {
				break
			}
			if _, failed := input.Write(buffer[:n]); err != nil || failed != nil {
				break
			}
		}
		_ = input.Close()
	})
	if cmd.Wait() != nil {
		return 1 // Git has reported the error to the client
	}
	return 0
}

// Write sends output of Git to the client. Git writes the header and the content of a message
// separately: a header is retained until its content follows.
func (c *running) Write(p []byte) (int, error) {
	size := len(p)
	c.mu.Lock()
	p, c.header = append(c.header, p...), nil
	start := -1
	if c.asked && c.Service == "git-upload-pack" {
		if end := len(p) - headerSize; end >= 0 && contentHeader.Match(p[end:]) {
			p, c.header = p[:end], bytes.Clone(p[end:])
		}
		start = bytes.Index(p, []byte("PACK"))
	}
	c.mu.Unlock()
	fault := None
	if start >= 0 {
		fault = c.fault(Point{c.Service, Transfer})
	}
	if fault == None {
		if _, err := c.Channel.Write(p); err != nil {
			return 0, err
		}
		return size, nil
	}
	part := p[:start+(len(p)-start)/2]
	if fault == Endless {
		part = p[:max(start-headerSize, 0)] // whole messages of the protocol
	}
	if _, err := c.Channel.Write(part); err != nil {
		return 0, err
	}
	c.faulty(Transfer)
	return 0, io.ErrClosedPipe
}

// headerSize is the size of a message header: the length and the channel.
const headerSize = len("0000\x01")

// contentHeader matches the header of a message with pack data.
var contentHeader = regexp.MustCompile("^[0-9a-f]{4}\x01$")
