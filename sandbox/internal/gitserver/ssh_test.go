package gitserver

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// sshKey is a user's key pair on disk.
type sshKey struct {
	file   string
	public ssh.PublicKey
}

func newSSHKey(t *testing.T) sshKey {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	check(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	check(t, err)
	file := filepath.Join(t.TempDir(), "id_ed25519")
	check(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	wrapped, err := ssh.NewPublicKey(public)
	check(t, err)
	return sshKey{file, wrapped}
}

func knownHosts(t *testing.T, h *host) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "known_hosts")
	check(t, os.WriteFile(file, []byte(h.KnownHosts+"\n"), 0o600))
	return file
}

// sshPrograms returns the environments that make Git use the ssh client of the tests, and the real ssh if installed.
func sshPrograms(t *testing.T) map[string]func(keyFile, knownHosts string) []string {
	t.Helper()
	self, err := os.Executable()
	check(t, err)
	programs := map[string]func(string, string) []string{
		"stand-in": func(keyFile, knownHosts string) []string {
			return []string{
				"GIT_SSH_COMMAND='" + self + "'", "GIT_SSH_VARIANT=ssh",
				sshKeyVariable + "=" + keyFile, sshKnownHostsVariable + "=" + knownHosts,
			}
		},
	}
	if program, err := exec.LookPath("ssh"); err == nil {
		programs["openssh"] = func(keyFile, knownHosts string) []string {
			return []string{"GIT_SSH_COMMAND=" + program + " -F /dev/null -o BatchMode=yes -o IdentitiesOnly=yes" +
				" -o IdentityAgent=none -o StrictHostKeyChecking=yes -o GlobalKnownHostsFile=/dev/null" +
				" -o UserKnownHostsFile='" + knownHosts + "' -i '" + keyFile + "'"}
		}
	}
	return programs
}

func TestSSHKeys(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		configure   func(t *testing.T, h *host, mine ssh.PublicKey)
		clone, push string
	}{
		{"open server", func(*testing.T, *host, ssh.PublicKey) {}, "", ""},
		{"right key", func(t *testing.T, h *host, mine ssh.PublicKey) {
			check(t, h.credentials.AddKey(mine, "mine", false))
		}, "", ""},
		{"read-only key", func(t *testing.T, h *host, mine ssh.PublicKey) {
			check(t, h.credentials.AddKey(mine, "mine", true))
		}, "", "this key may read demo but not push to it"},
		{"wrong key", func(t *testing.T, h *host, _ ssh.PublicKey) {
			check(t, h.credentials.AddKey(newSSHKey(t).public, "theirs", false))
		}, "Could not read from remote repository", "Could not read from remote repository"},
		{"only passwords are configured", func(t *testing.T, h *host, _ ssh.PublicKey) {
			configure(t, h.credentials)
		}, "Could not read from remote repository", "Could not read from remote repository"},
	}
	for program, environment := range sshPrograms(t) {
		for _, test := range tests {
			t.Run(program+"/"+test.name, func(t *testing.T) {
				t.Parallel()
				h, mine := startHost(t, "demo"), newSSHKey(t)
				test.configure(t, h, mine.public)
				c := newClient(t, environment(mine.file, knownHosts(t, h))...)
				output, err := c.git(t, "clone", h.URL("ssh", "demo"), "clone")
				wantOutcome(t, "clone", output, err, test.clone)
				output, err = c.git(t, "-C", c.worktree(t), "push", h.URL("ssh", "demo"), "main")
				wantOutcome(t, "push", output, err, test.push)
				want := "refs/heads/main"
				if test.push != "" {
					want = ""
				}
				if got := h.refs(t, "demo"); got != want {
					t.Errorf("the server has refs %q, want %q", got, want)
				}
			})
		}
	}
}

func TestSSHRefusals(t *testing.T) {
	t.Parallel()
	h, mine := startHost(t, "demo"), newSSHKey(t)
	outside(t, h)
	tests := []struct{ name, command, want string }{
		{"unknown repository", "git-upload-pack '/nope.git'", `ERROR: Repository not found. ("nope")`},
		{"dots", "git-upload-pack '../outside.git'", "ERROR: Repository not found. ("},
		{"absolute path", "git-upload-pack '" + h.repositories.folder("demo") + "'", "ERROR: Repository not found. ("},
		{"link to the outside", "git-upload-pack '/link.git'", `ERROR: Repository not found. ("link")`},
		{"linked organization", "git-receive-pack '/linked/outside.git'", `ERROR: Repository not found. ("linked/outside")`},
		{"quote", `git-upload-pack '/demo'\''; id'`, "ERROR: Repository not found. ("},
		{"open quote", "git-upload-pack '/demo.git", "ERROR: Repository not found. (unbalanced quotes"},
		{"option", "git-upload-pack --help", "ERROR: Repository not found. ("},
		{"another program", "id", `ERROR: unknown service "id"`},
		{"another service", "git-upload-archive '/demo.git'", `ERROR: unknown service "git-upload-archive"`},
		{"no command", "", "ERROR: interactive shells are not supported"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			connection := dial(t, h, mine)
			session, err := connection.NewSession()
			check(t, err)
			var answer, complaint bytes.Buffer
			session.Stdout, session.Stderr = &answer, &complaint
			if test.command == "" {
				check(t, session.Shell())
				err = session.Wait()
			} else {
				err = session.Run(test.command)
			}
			var exit *ssh.ExitError
			if !errors.As(err, &exit) || exit.ExitStatus() != 1 {
				t.Errorf("returned %v, want exit status 1", err)
			}
			if answer.Len() > 0 || !strings.HasPrefix(complaint.String(), test.want) {
				t.Errorf("stdout %q and stderr %q, want only stderr %q", &answer, &complaint, test.want)
			}
		})
	}
}

func dial(t *testing.T, h *host, key sshKey) *ssh.Client {
	t.Helper()
	address, err := url.Parse(h.SSH)
	check(t, err)
	connection, err := sshDial("git", address.Host, key.file, knownHosts(t, h))
	check(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// Git's SSH clients can reuse a connection for later commands; a removed key must be rejected on it.
func TestSSHKeyRemovedOnOpenConnection(t *testing.T) {
	t.Parallel()
	h, mine := startHost(t, "demo"), newSSHKey(t)
	check(t, h.credentials.AddKey(mine.public, "", false))
	check(t, h.credentials.AddKey(newSSHKey(t).public, "", false))
	connection := dial(t, h, mine)
	removed, err := h.credentials.RemoveKey(ssh.FingerprintSHA256(mine.public))
	check(t, err)
	if !removed {
		t.Fatal("the key was not authorized")
	}
	session, err := connection.NewSession()
	check(t, err)
	output, err := session.CombinedOutput("git-upload-pack '/demo.git'")
	if got, want := string(output), "ERROR: this key is not authorized\n"; err == nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestSSHHostKeyIsKept(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	first := startHostIn(t, root)
	check(t, first.stop())
	second := startHostIn(t, root)
	_, was, _ := strings.Cut(first.KnownHosts, " ")
	_, is, _ := strings.Cut(second.KnownHosts, " ")
	if was != is || !strings.HasPrefix(is, "ssh-ed25519 ") {
		t.Errorf("host key %q became %q", was, is)
	}
}
