// Package testgit serves Git repositories over SSH to tests, with faults.
package testgit

import (
	"bytes"
	"crypto/ed25519"
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
	// Authenticate is the authentication with a key.
	Authenticate = "authenticate"
	// Command is the request to run git-upload-pack or git-receive-pack.
	Command = "command"
	// References is the list of references of the server.
	References = "references"
	// Transfer is the transfer of objects, after the first bytes of it.
	Transfer = "transfer"
	// Done is the end of a command before the client learns of it.
	Done = "done"
)

// Point is a stage of one command.
type Point struct {
	// Service is git-upload-pack or git-receive-pack, "" before Command.
	Service, Stage string
}

// Fault is what the server does at a point.
type Fault int

// The faults.
const (
	// None continues.
	None Fault = iota
	// Stall sends nothing more and keeps the connection open.
	Stall
	// Drop closes the connection.
	Drop
	// Fail ends the command with an error message.
	Fail
	// Garbage sends bytes that are not of the protocol, and ends the command.
	Garbage
	// Endless sends valid output without end.
	Endless
)

// SSH is an SSH server of the Git repositories in a folder.
type SSH struct {
	// URL is the URL of the folder.
	URL string
	// HostKey is the public key of the server.
	HostKey ssh.PublicKey

	root     string
	fault    func(Point) Fault
	listener net.Listener
	config   *ssh.ServerConfig
	closed   chan struct{}
	serving  sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// StartSSH starts a server that accepts all keys. It calls fault at each point.
func StartSSH(t testing.TB, root string, fault func(Point) Fault) *SSH {
	t.Helper()
	signer, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	s := &SSH{HostKey: signer.PublicKey(), root: root, fault: fault, closed: make(chan struct{}), conns: map[net.Conn]bool{}}
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	s.URL = "ssh://git@" + s.listener.Addr().String()
	s.config = &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
		if s.fault(Point{Stage: Authenticate}) != None {
			<-s.closed
		}
		return &ssh.Permissions{}, nil
	}}
	s.config.AddHostKey(signer)
	s.serving.Go(s.accept)
	t.Cleanup(func() {
		close(s.closed)
		if err := s.listener.Close(); err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		for conn := range s.conns {
			_ = conn.Close() // the client may have closed it
		}
		s.mu.Unlock()
		s.serving.Wait()
	})
	return s
}

func (s *SSH) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return // the server is closed
		}
		s.mu.Lock()
		s.conns[conn] = true
		s.mu.Unlock()
		s.serving.Go(func() { s.serve(conn) })
	}
}

func (s *SSH) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	switch s.fault(Point{Stage: Connect}) {
	case None:
	case Stall:
		<-s.closed
		return
	default:
		return
	}
	_, channels, requests, err := ssh.NewServerConn(conn, s.config)
	if err != nil {
		return // the client has only read the host key, or has gone
	}
	s.serving.Go(func() { ssh.DiscardRequests(requests) })
	for offered := range channels {
		channel, asked, err := offered.Accept()
		if err != nil {
			return
		}
		s.serving.Go(func() { s.run(conn, channel, asked) })
	}
}

func (s *SSH) run(conn net.Conn, channel ssh.Channel, asked <-chan *ssh.Request) {
	defer func() { _ = channel.Close() }()
	for request := range asked {
		var command struct{ Line string }
		if request.Type != "exec" || ssh.Unmarshal(request.Payload, &command) != nil {
			_ = request.Reply(request.Type == "env", nil)
			continue
		}
		service, argument, _ := strings.Cut(command.Line, " ")
		c := &running{SSH: s, conn: conn, channel: channel, service: service}
		if c.faulty(Command) {
			return
		}
		_ = request.Reply(true, nil)
		status := struct{ Code uint32 }{c.exec(strings.Trim(argument, "'/"))}
		if c.faulty(Done) {
			return
		}
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
		return
	}
}

// running is a Git command of a client.
type running struct {
	*SSH
	conn    net.Conn
	channel ssh.Channel
	service string

	mu sync.Mutex
	// asked is set when the client has sent something.
	asked bool
	// header is the header of a message whose content has not been written yet.
	header []byte
}

// faulty applies the fault at a stage. It returns false if there is none.
func (c *running) faulty(stage string) bool {
	switch c.fault(Point{c.service, stage}) {
	case Stall:
		<-c.closed
	case Drop:
		_ = c.conn.Close()
	case Fail:
		_, _ = fmt.Fprintln(c.channel.Stderr(), "fatal: out of disk space")
		_, _ = c.channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{128}))
		_ = c.channel.Close()
	case Garbage:
		_, _ = io.WriteString(c.channel, "Welcome to the appliance\r\n")
		_, _ = c.channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{0}))
		_ = c.channel.Close()
	case Endless:
		c.endless(stage)
	default:
		return false
	}
	return true
}

// endless sends references or progress messages until the client has gone.
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
		if _, err := io.WriteString(c.channel, chunk.String()); err != nil {
			return
		}
	}
}

// exec runs Git between the client and the fault.
func (c *running) exec(repository string) uint32 {
	if c.faulty(References) {
		return 1
	}
	cmd := exec.Command("git", strings.TrimPrefix(c.service, "git-"), filepath.Join(c.root, filepath.FromSlash(repository)))
	cmd.Stdout, cmd.Stderr = c, c.channel.Stderr()
	input, err := cmd.StdinPipe()
	if err != nil {
		return 1
	}
	if err := cmd.Start(); err != nil {
		return 1
	}
	c.serving.Go(func() { // ends when the channel is closed
		buffer := make([]byte, 4096)
		for {
			n, err := c.channel.Read(buffer)
			if n > len("0000") { // a flush means that there is nothing to do
				c.mu.Lock()
				c.asked = true
				c.mu.Unlock()
			}
			if c.service == "git-receive-pack" && n > len("0000") && c.faulty(Transfer) {
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

// Write sends output of Git to the client. Git writes the header of a message and its content one
// after the other: a header is kept until the content follows.
func (c *running) Write(p []byte) (int, error) {
	size := len(p)
	c.mu.Lock()
	p, c.header = append(c.header, p...), nil
	start := -1
	if c.asked && c.service == "git-upload-pack" {
		if end := len(p) - headerSize; end >= 0 && contentHeader.Match(p[end:]) {
			p, c.header = p[:end], bytes.Clone(p[end:])
		}
		start = bytes.Index(p, []byte("PACK"))
	}
	c.mu.Unlock()
	fault := None
	if start >= 0 {
		fault = c.fault(Point{c.service, Transfer})
	}
	if fault == None {
		if _, err := c.channel.Write(p); err != nil {
			return 0, err
		}
		return size, nil
	}
	part := p[:start+(len(p)-start)/2]
	if fault == Endless {
		part = p[:max(start-headerSize, 0)] // whole messages of the protocol
	}
	if _, err := c.channel.Write(part); err != nil {
		return 0, err
	}
	c.faulty(Transfer)
	return 0, io.ErrClosedPipe
}

// headerSize is the size of the header of a message: its length, and the channel.
const headerSize = len("0000\x01")

// contentHeader matches the header of a message with a part of the objects.
var contentHeader = regexp.MustCompile("^[0-9a-f]{4}\x01$")
