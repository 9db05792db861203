package gitcommand

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"

	"github.com/fluxkit/flux/sandbox/internal/credentials"
	"github.com/fluxkit/flux/sandbox/internal/gitserver"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run runs a command with the input of a user and returns its output.
func run(t *testing.T, dir, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, conversation bytes.Buffer
	cmd := New(func() string { return dir })
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(args)
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(&conversation)
	err = cmd.ExecuteContext(t.Context())
	return out.String(), conversation.String(), err
}

// step is a command with its expected output. $DIR, $KEY and $PRIVATE are replaced by the directory and keys of the test.
type step struct {
	args, stdin    string
	stdout, stderr string
	fails          string
}

func play(t *testing.T, steps []step) (dir string) {
	t.Helper()
	dir = t.TempDir()
	public, private := writeKey(t, dir)
	fill := strings.NewReplacer("$DIR", dir, "$KEY", ssh.FingerprintSHA256(public), "$PRIVATE", private)
	for _, s := range steps {
		stdout, stderr, err := run(t, dir, s.stdin, strings.Fields(fill.Replace(s.args))...)
		got, want := step{stdout: stdout, stderr: stderr}, step{stdout: fill.Replace(s.stdout), stderr: fill.Replace(s.stderr)}
		if err != nil {
			got.fails = err.Error()
		}
		want.fails = fill.Replace(s.fails)
		if got != want {
			t.Errorf("git %s\n got: %+q\nwant: %+q", s.args, got, want)
		}
	}
	return dir
}

// writeKey creates a key pair in the files key and key.pub.
func writeKey(t *testing.T, dir string) (public ssh.PublicKey, privateFile string) {
	t.Helper()
	raw, private, err := ed25519.GenerateKey(rand.Reader)
	check(t, err)
	public, err = ssh.NewPublicKey(raw)
	check(t, err)
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public))) + " ada@laptop\n"
	check(t, os.WriteFile(filepath.Join(dir, "key.pub"), []byte(line), 0o600))
	block, err := ssh.MarshalPrivateKey(private, "")
	check(t, err)
	privateFile = filepath.Join(dir, "key")
	check(t, os.WriteFile(privateFile, pem.EncodeToMemory(block), 0o600))
	return public, privateFile
}

func TestRepositories(t *testing.T) {
	t.Parallel()
	const unknown = `repository not found: "nope": see flux-sandbox git list, or create it with flux-sandbox git create`
	play(t, []step{
		{args: "list", stdout: "NAME  BRANCH  EMPTY  PROTECTED\n"},
		{args: "list -o json", stdout: "[]\n"},
		{args: "create demo", stderr: "✔ repository demo created\n"},
		{args: "create demo", stderr: "✔ repository demo already exists\n"},
		{args: "create acme/fleet.git --branch trunk", stderr: "✔ repository acme/fleet created\n"},
		{args: "create ..", fails: `invalid repository name "..": must consist of letters, digits, '.', '_' and '-', as in demo or org/demo`},
		{args: "create demo --branch a..b", fails: `invalid branch name "a..b": must be a name such as main or release/1.x`},
		{args: "protect demo main release/*", stderr: "✔ branch main of demo is now protected\n✔ branch release/* of demo is now protected\n"},
		{args: "protect demo main dev", stderr: "✔ branch main of demo was already protected\n✔ branch dev of demo is now protected\n"},
		{args: "unprotect demo dev other", stderr: "✔ branch dev of demo accepts pushes again\n✔ branch other of demo was not protected\n"},
		{args: "protect nope main", fails: unknown},
		{args: "unprotect nope main", fails: unknown},
		{args: "url nope", fails: unknown},
		{args: "url demo", fails: "the git server is not running in $DIR and has no address: start it with flux-sandbox up"},
		{args: "known-hosts", fails: "the git server is not running in $DIR and has no address: start it with flux-sandbox up"},
		{args: "list", stdout: "NAME        BRANCH  EMPTY  PROTECTED\nacme/fleet  trunk   True   \ndemo        main    True   main,release/*\n"},
		{args: "list -o json", stdout: `[
  {
    "name": "acme/fleet",
    "branch": "trunk",
    "empty": true
  },
  {
    "name": "demo",
    "branch": "main",
    "empty": true,
    "protectedBranches": [
      "main",
      "release/*"
    ]
  }
]
`},
		{args: "list -o xml", fails: `unknown output format "xml": must be json`},
	})
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	const together = "--username and --password-stdin must be used together, or --bearer-token-stdin alone"
	dir := play(t, []step{
		{args: "credentials clear", stderr: "✔ passwords and tokens cleared; the server requires no credentials\n"},
		{args: "credentials set --username ada --password-stdin", stdin: "forgotten", stderr: "✔ password of ada set\n"},
		{args: "credentials clear", stderr: "✔ passwords and tokens cleared; the server requires no credentials\n"},
		{args: "credentials set --username ada --password-stdin", stdin: "pass word\r\n", stderr: "✔ password of ada set\n"},
		{args: "credentials set --username bob --password-stdin --read-only", stdin: "b", stderr: "✔ password of bob set\n"},
		{args: "credentials set --bearer-token-stdin", stdin: "token\n", stderr: "✔ bearer token set\n"},
		{args: "credentials set --username ada --password-stdin", stdin: "\n", fails: "the password is empty"},
		{args: "credentials set --bearer-token-stdin", stdin: "", fails: "invalid bearer token: must not be empty or contain whitespace"},
		{args: "credentials set --password-stdin", stdin: "x", fails: together},
		{
			args: "credentials set --username ada", stdin: "x",
			fails: "at least one of the flags in the group [password-stdin bearer-token-stdin] is required",
		},
		{
			args: "credentials set --bearer-token-stdin", stdin: strings.Repeat("x", 64<<10+1),
			fails: "reading the secret from standard input: larger than 64 KiB",
		},
	})
	set, err := credentials.In(filepath.Join(dir, "git")).Load()
	check(t, err)
	got := fmt.Sprint(set.Password("ada", "pass word"), set.Password("bob", "b"), set.Token("token"), set.Password("ada", "forgotten"))
	if want := "read-write read-only read-write none"; got != want {
		t.Errorf("access %s, want %s", got, want)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	play(t, []step{
		{args: "keys list", stdout: "FINGERPRINT  TYPE  ACCESS  COMMENT\n"},
		{args: "keys list -o json", stdout: "[]\n"},
		{args: "keys add $PRIVATE", fails: "reading public keys from $DIR/key: this is a private key: use the public key, usually a file that ends in .pub"},
		{args: "keys add $DIR/none", fails: "reading public keys: open $DIR/none: no such file or directory"},
		{args: "keys add - --read-only", stdin: "junk", fails: `reading public keys from -: line "junk" is not an SSH public key such as "ssh-ed25519 AAAA… comment"`},
		{args: "keys add $DIR/key.pub --read-only", stderr: "✔ key $KEY authorized\n"},
		{args: "keys list -o json", stdout: `[
  {
    "fingerprint": "$KEY",
    "type": "ssh-ed25519",
    "access": "read-only",
    "comment": "ada@laptop"
  }
]
`},
		{args: "credentials clear", stderr: "✔ passwords and tokens cleared; the server accepts SSH keys only, not HTTP (allow HTTP with flux-sandbox git keys remove --all)\n"},
		{args: "keys remove", fails: "no keys given: specify fingerprints or public key files, or only --all"},
		{args: "keys remove --all $KEY", fails: "no keys given: specify fingerprints or public key files, or only --all"},
		{args: "keys remove $KEY", stderr: "✔ key $KEY removed\n✔ done; the server requires no credentials\n"},
		{args: "keys remove $DIR/key.pub", fails: "key $KEY is not authorized: see flux-sandbox git keys list"},
		{args: "keys add $DIR/key.pub", stderr: "✔ key $KEY authorized\n"},
		{args: "keys remove --all", stderr: "✔ key $KEY removed\n✔ done; the server requires no credentials\n"},
		{args: "keys remove --all", stderr: "✔ done; the server requires no credentials\n"},
	})
}

func TestAddressesOfARunningServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root := filepath.Join(dir, "git")
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan gitserver.Addresses, 1), make(chan error, 1)
	go func() {
		done <- gitserver.Run(ctx, gitserver.Config{
			Root: root, HTTPAddr: "127.0.0.1:0", SSHAddr: "127.0.0.1:0",
			Ready: func(a gitserver.Addresses) { ready <- a },
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	var addresses gitserver.Addresses
	select {
	case addresses = <-ready:
	case err := <-done:
		done <- err
		t.Fatal("the server stopped before it was ready")
	}
	_, _, err := run(t, dir, "", "create", "demo")
	check(t, err)
	_, _, err = run(t, dir, "", "ca")
	check(t, err)
	certificate, err := os.ReadFile(gitserver.CAFile(root))
	check(t, err)

	tests := []struct{ args, want, fails string }{
		{"url demo", addresses.HTTP + "/demo.git\n", ""},
		{"url demo.git --ssh", addresses.SSH + "/demo.git\n", ""},
		{"url demo --https", "", "the git server does not serve https"},
		{"url demo --https --ssh", "", "if any flags in the group [ssh https] are set none of the others can be; [https ssh] were all set"},
		{"known-hosts", addresses.KnownHosts + "\n", ""},
		{"ca", gitserver.CAFile(root) + "\n", ""},
		{"ca --pem", string(certificate), ""},
	}
	for _, test := range tests {
		got, _, err := run(t, dir, "", strings.Fields(test.args)...)
		fails := ""
		if err != nil {
			fails = err.Error()
		}
		if got != test.want || fails != test.fails {
			t.Errorf("git %s\n got: %q, %q\nwant: %q, %q", test.args, got, fails, test.want, test.fails)
		}
	}
}

// A user who sees the prompt for a secret must be able to interrupt it.
func TestReadingStopsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer, err := os.Pipe()
	check(t, err)
	t.Cleanup(func() { _, _ = writer.Close(), reader.Close() })
	cancel()
	if data, err := readAll(ctx, reader); err == nil {
		t.Errorf("read %q from an input without data", data)
	}
}

func TestEveryCommandIsDescribed(t *testing.T) {
	t.Parallel()
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Short == "" || cmd.Long == "" || cmd.Example == "" {
			t.Errorf("%s lacks a Short, Long or Example", cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(New(func() string { return "" }))
}
