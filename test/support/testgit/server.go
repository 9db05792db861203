package testgit

import (
	"crypto/ed25519"
	"net"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// Server is an SSH server on loopback.
type Server struct {
	// HostKey is the public key of the server. It is constant, so that tests can expect
	// its fingerprint.
	HostKey ssh.PublicKey

	handler  Handler
	listener net.Listener
	config   *ssh.ServerConfig
	closed   chan struct{}
	serving  sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// Handler holds the functions that a server calls.
type Handler struct {
	// Serves reports whether a new connection is served. Nil serves all.
	Serves func(net.Conn) bool
	// Key returns the permissions of a key, or an error that rejects it.
	Key func(ssh.PublicKey) (*ssh.Permissions, error)
	// Exec runs a command.
	Exec func(*Session)
}

// Session is the request to run a command.
type Session struct {
	*Server
	Conn        net.Conn
	Channel     ssh.Channel
	Permissions *ssh.Permissions
	// Service and Repository are the two words of the line. The repository has no
	// quotes and slashes around it.
	Service, Repository string

	request *ssh.Request
}

// Accept confirms to the client that the command is running.
func (s *Session) Accept() { _ = s.request.Reply(true, nil) }

// Exit sends the exit status to the client.
func (s *Session) Exit(status uint32) {
	_, _ = s.Channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{status}))
}

// Listen returns a server that listens. It accepts connections after Serve.
func Listen(handler Handler) (*Server, error) {
	signer, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		return nil, err
	}
	s := &Server{HostKey: signer.PublicKey(), handler: handler, closed: make(chan struct{}), conns: map[net.Conn]bool{}}
	s.config = &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) { return handler.Key(key) }}
	s.config.AddHostKey(signer)
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	return s, nil
}

// Serve starts to accept connections. The handler may be called from then on.
func (s *Server) Serve() { s.serving.Go(s.accept) }

// Addr returns the host and port of the server.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Closed is closed when the server is closed.
func (s *Server) Closed() <-chan struct{} { return s.closed }

// Go runs a function of a session. Close waits for it.
func (s *Server) Go(f func()) { s.serving.Go(f) }

// Close closes the connections and waits for the sessions.
func (s *Server) Close() error {
	close(s.closed)
	err := s.listener.Close()
	s.mu.Lock()
	for conn := range s.conns {
		_ = conn.Close() // the client may have closed it
	}
	s.mu.Unlock()
	s.serving.Wait()
	return err
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return // the server is closed
		}
		s.mu.Lock()
		s.conns[conn] = true
		s.mu.Unlock()
		s.serving.Go(func() {
			s.serve(conn)
			s.mu.Lock()
			delete(s.conns, conn)
			s.mu.Unlock()
		})
	}
}

func (s *Server) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	if s.handler.Serves != nil && !s.handler.Serves(conn) {
		return
	}
	client, channels, requests, err := ssh.NewServerConn(conn, s.config)
	if err != nil {
		return // the client has only read the host key, or failed to authenticate
	}
	s.serving.Go(func() { ssh.DiscardRequests(requests) })
	for offered := range channels {
		if offered.ChannelType() != "session" {
			_ = offered.Reject(ssh.UnknownChannelType, "only sessions")
			continue
		}
		channel, asked, err := offered.Accept()
		if err != nil {
			return
		}
		session := &Session{Server: s, Conn: conn, Channel: channel, Permissions: client.Permissions}
		s.serving.Go(func() { session.run(asked) })
	}
}

// run runs the first command of the session.
func (s *Session) run(asked <-chan *ssh.Request) {
	defer func() { _ = s.Channel.Close() }()
	for request := range asked {
		var command struct{ Line string }
		if request.Type != "exec" || ssh.Unmarshal(request.Payload, &command) != nil {
			_ = request.Reply(request.Type == "env", nil)
			continue
		}
		s.request = request
		s.Service, s.Repository, _ = strings.Cut(command.Line, " ")
		s.Repository = strings.Trim(s.Repository, "'/")
		s.handler.Exec(s)
		return
	}
}
