package testgithost

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// Keyed is an API with SSH keys.
type Keyed interface {
	// KeyAccess returns the access of a key, in authorized_keys format without a
	// comment, to a repository. For repository "" only Known is set.
	KeyAccess(key, repository string) Access
}

// sshServer serves Git over SSH.
type sshServer struct {
	git      *Repositories
	keys     Keyed
	listener net.Listener
	config   *ssh.ServerConfig
	hostKey  ssh.PublicKey
	serving  sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// keyExtension is the permission extension with the key of a connection.
const keyExtension = "key"

func openSSH(git *Repositories, keys Keyed) (*sshServer, error) {
	// The host key is constant, so that tests can expect its fingerprint.
	signer, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		return nil, err
	}
	s := &sshServer{git: git, keys: keys, hostKey: signer.PublicKey(), conns: map[net.Conn]bool{}}
	s.config = &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		text := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
		if !keys.KeyAccess(text, "").Known {
			return nil, errors.New("unknown key")
		}
		return &ssh.Permissions{Extensions: map[string]string{keyExtension: text}}, nil
	}}
	s.config.AddHostKey(signer)
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	s.serving.Go(s.accept)
	return s, nil
}

// knownHosts returns the line of the server for a known_hosts file.
func (s *sshServer) knownHosts() string {
	host, port, _ := strings.Cut(s.listener.Addr().String(), ":")
	return fmt.Sprintf("[%s]:%s %s", host, port, ssh.MarshalAuthorizedKey(s.hostKey))
}

func (s *sshServer) close() error {
	err := s.listener.Close()
	s.mu.Lock()
	for conn := range s.conns {
		_ = conn.Close() // the client may have closed it
	}
	s.mu.Unlock()
	s.serving.Wait()
	return err
}

func (s *sshServer) accept() {
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

func (s *sshServer) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	session, channels, requests, err := ssh.NewServerConn(conn, s.config)
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
		s.run(channel, asked, session.Permissions.Extensions[keyExtension])
	}
}

// run runs the command of a session.
func (s *sshServer) run(channel ssh.Channel, asked <-chan *ssh.Request, key string) {
	defer func() { _ = channel.Close() }()
	for request := range asked {
		var command struct{ Line string }
		if request.Type != "exec" || ssh.Unmarshal(request.Payload, &command) != nil {
			_ = request.Reply(request.Type == "env", nil)
			continue
		}
		_ = request.Reply(true, nil)
		status := struct{ Code uint32 }{s.exec(channel, command.Line, key)}
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
		return
	}
}

func (s *sshServer) exec(channel ssh.Channel, line, key string) uint32 {
	service, argument, _ := strings.Cut(line, " ")
	repository := strings.TrimSuffix(strings.Trim(argument, "'/"), ".git")
	access := s.keys.KeyAccess(key, repository)
	writes := service == "git-receive-pack"
	switch {
	case service != "git-upload-pack" && !writes:
		_, _ = fmt.Fprintln(channel.Stderr(), "Only Git is served here.")
		return 1
	case !access.Read || !s.git.exists(repository):
		_, _ = fmt.Fprintln(channel.Stderr(), "ERROR: Repository not found.")
		return 1
	case writes && !access.Write:
		_, _ = fmt.Fprintln(channel.Stderr(), "ERROR: The key you are authenticating with has been marked as read only.")
		return 1
	}
	cmd := exec.Command(s.git.git, strings.TrimPrefix(service, "git-"), s.git.Path(repository))
	cmd.Env = s.git.environment()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = channel, channel, channel.Stderr()
	if cmd.Run() != nil {
		return 1 // Git has reported the error to the client
	}
	return 0
}
