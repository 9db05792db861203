package testgithost

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/fluxkit/flux/test/support/testgit"
)

// Keyed is implemented by APIs with SSH keys.
type Keyed interface {
	// KeyAccess returns the access of a key, in authorized_keys format without a
	// comment, to a repository. For repository "" only Known is set.
	KeyAccess(key, repository string) Access
}

// sshServer serves Git over SSH.
type sshServer struct {
	*testgit.Server
	git  *Repositories
	keys Keyed
}

// keyExtension is the name of the permission extension with the key of a connection.
const keyExtension = "key"

func openSSH(git *Repositories, keys Keyed) (s *sshServer, err error) {
	s = &sshServer{git: git, keys: keys}
	if s.Server, err = testgit.Listen(testgit.Handler{Key: s.authenticate, Exec: s.exec}); err != nil {
		return nil, err
	}
	s.Serve()
	return s, nil
}

func (s *sshServer) authenticate(key ssh.PublicKey) (*ssh.Permissions, error) {
	text := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
	if !s.keys.KeyAccess(text, "").Known {
		return nil, errors.New("unknown key")
	}
	return &ssh.Permissions{Extensions: map[string]string{keyExtension: text}}, nil
}

// knownHosts returns the line of the server for a known_hosts file.
func (s *sshServer) knownHosts() string {
	host, port, _ := strings.Cut(s.Addr(), ":")
	return fmt.Sprintf("[%s]:%s %s", host, port, ssh.MarshalAuthorizedKey(s.HostKey))
}

func (s *sshServer) exec(session *testgit.Session) {
	session.Accept()
	session.Exit(s.run(session))
}

// run runs Git if the key has access to the repository.
func (s *sshServer) run(session *testgit.Session) uint32 {
	repository := strings.TrimSuffix(session.Repository, ".git")
	access := s.keys.KeyAccess(session.Permissions.Extensions[keyExtension], repository)
	writes := session.Service == "git-receive-pack"
	switch {
	case session.Service != "git-upload-pack" && !writes:
		_, _ = fmt.Fprintln(session.Channel.Stderr(), "Only Git is served here.")
		return 1
	case !access.Read || !s.git.exists(repository):
		_, _ = fmt.Fprintln(session.Channel.Stderr(), "ERROR: Repository not found.")
		return 1
	case writes && !access.Write:
		_, _ = fmt.Fprintln(session.Channel.Stderr(), "ERROR: The key you are authenticating with has been marked as read only.")
		return 1
	}
	cmd := exec.Command(s.git.git, strings.TrimPrefix(session.Service, "git-"), s.git.Path(repository))
	cmd.Env = s.git.environment()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = session.Channel, session.Channel, session.Channel.Stderr()
	if cmd.Run() != nil {
		return 1 // Git has reported the error to the client
	}
	return 0
}
