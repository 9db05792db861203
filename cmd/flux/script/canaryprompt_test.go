package script_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/fluxkit/flux/test/support/testlimit"
	"github.com/fluxkit/flux/test/support/testterminal"
)

// promptCanary is the credential that is typed at prompts.
const promptCanary = "cnry-typed-7d1f"

// prompts are commands that prompt for a credential on a terminal.
var prompts = map[string]struct {
	// args may have ADDRESS, HOST, CA, KEY and OTHERKEY.
	args, question string
	// sent means that the credential is sent to the server, which sends it back.
	sent bool
	env  string
}{
	"password":              {"git --url=ADDRESS/fleet --username=me --token-auth --ca-file=CA", "Password or token of the Git repository: ", true, ""},
	"token of GitHub":       {"github --owner=o --repository=r --hostname=HOST --token-auth --ca-file=CA", "Token for HOST: ", true, ""},
	"token of GitLab":       {"gitlab --owner=o --repository=r --hostname=HOST --token-auth --ca-file=CA", "Token for HOST: ", true, ""},
	"token of Gitea":        {"gitea --owner=o --repository=r --hostname=HOST --token-auth --ca-file=CA", "Token for HOST: ", true, ""},
	"token of Bitbucket":    {"bitbucket-server --owner=o --repository=r --hostname=HOST --token-auth --ca-file=CA", "Token for HOST: ", true, ""},
	"passphrase":            {"git --url=ssh://git@127.0.0.1:1/fleet --private-key-file=KEY", "Passphrase of the SSH key: ", false, ""},
	"wrong passphrase":      {"git --url=ssh://git@127.0.0.1:1/fleet --private-key-file=OTHERKEY", "Passphrase of the SSH key: ", false, ""},
	"passphrase for GitHub": {"github --owner=o --repository=r --hostname=HOST --private-key-file=KEY --ca-file=CA", "Passphrase of the SSH key: ", false, "GITHUB_TOKEN=" + canaries["GITHUB_TOKEN"]},
}

// TestCanaryPrompts types a credential at each prompt as soon as it appears, with a server that
// sends all credentials back: the terminal does not echo it, and it is not printed or written, or
// given to a program.
func TestCanaryPrompts(t *testing.T) {
	t.Parallel()
	for name, p := range prompts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newChildren(t)
			var sent atomic.Bool
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, password, _ := r.BasicAuth()
				if strings.Contains(fmt.Sprint(r.Header)+password, promptCanary) {
					sent.Store(true)
				}
				echo(http.StatusForbidden).ServeHTTP(w, r)
			}))
			t.Cleanup(server.Close)
			files := t.TempDir()
			words := strings.NewReplacer("ADDRESS", server.URL, "HOST", strings.TrimPrefix(server.URL, "https://"),
				"CA", writeFile(t, files, "ca.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})),
				"OTHERKEY", writeFile(t, files, "other", encryptedKey(t, "another")), "KEY", writeFile(t, files, "key", encryptedKey(t, promptCanary)))
			kubeconfig := writeFile(t, files, "kubeconfig", fmt.Appendf(nil, canaryKubeconfig, server.URL, "token: cnry-kube-token"))
			args := append([]string{"bootstrap"}, strings.Fields(words.Replace(p.args))...)
			raw := c.types(t, words.Replace(p.question), []string{"KUBECONFIG=" + kubeconfig, p.env}, append(args, "--path=x", "--timeout=30s")...)
			for _, form := range []string{"cnry", base64.StdEncoding.EncodeToString([]byte(promptCanary)), base64.StdEncoding.EncodeToString([]byte("me:" + promptCanary))} {
				if strings.Contains(raw, form) {
					t.Errorf("the terminal shows a credential:\n%s", raw)
				}
			}
			if sent.Load() != p.sent {
				t.Errorf("the server was sent the credential: %t\n%s", sent.Load(), raw)
			}
			if record, err := os.ReadFile(c.record); err == nil && strings.Contains(string(record), promptCanary) {
				t.Errorf("a program is given the credential:\n%s", record)
			}
			withoutCanary(t, c.folder(t, "home"))
			withoutCanary(t, c.folder(t, "tmp"))
		})
	}
}

// types runs flux on a terminal, and types the canary at the prompt. It returns what was written to
// the terminal.
func (c children) types(t *testing.T, question string, env []string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testlimit.Wait)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "flux"), args...)
	cmd.Env = slices.Concat([]string{"HOME=" + c.folder(t, "home"), "TMPDIR=" + c.folder(t, "tmp"), "PATH=" + c.bin + ":" + os.Getenv("PATH"), "TERM=xterm"}, env)
	terminal, err := testterminal.Start(cmd, 300, 50)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = terminal.Wait() // the exit code is in ProcessState
	}()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for !strings.Contains(terminal.Raw(), question) {
		select {
		case <-look.C:
		case <-ended:
			t.Fatalf("flux %s does not prompt:\n%s", strings.Join(args, " "), terminal.Raw())
		}
	}
	if err := terminal.Type(promptCanary + "\n"); err != nil {
		t.Fatal(err)
	}
	<-ended
	if code := cmd.ProcessState.ExitCode(); code != 1 || ctx.Err() != nil {
		t.Errorf("flux %s: exit code %d\n%s", strings.Join(args, " "), code, terminal.Raw())
	}
	return terminal.Raw()
}

// folder makes a folder and returns its path.
func (c children) folder(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
	return path
}

func writeFile(t *testing.T, folder, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// encryptedKey returns an SSH key with a passphrase.
func encryptedKey(t *testing.T, passphrase string) []byte {
	t.Helper()
	block, err := ssh.MarshalPrivateKeyWithPassphrase(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), "", []byte(passphrase))
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(block)
}
