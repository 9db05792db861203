package kubelet

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxkit/flux/sandbox/internal/isolation"
	"github.com/fluxkit/flux/sandbox/internal/process"
)

// TestNightlyGnuPG generates a key and decrypts with it like kustomize-controller: with the file access of a controller, in
// a directory whose path is too long for the sockets of gpg-agent.
func TestNightlyGnuPG(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("gpg")
	if err != nil {
		t.Fatalf("%v: install GnuPG", err)
	}
	dir := filepath.Join(t.TempDir(), strings.Repeat("x", 60))
	programs, other := filepath.Join(dir, "programs"), filepath.Join(t.TempDir(), "other")
	if err := errors.Join(os.MkdirAll(programs, 0o700), os.Symlink(program, filepath.Join(programs, "gpg")), os.WriteFile(other, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	short, remove := temporary(dir)
	home := filepath.Join(short, filepath.Dir(gpgSocket))
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	access := isolation.Access{Write: []string{dir, os.DevNull}}
	allowGnuPG(&access, programs)
	starter := process.NewStarter(t.Context())
	run := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		child, err := starter.Start(t.Context(), process.Command{
			Path: filepath.Join(programs, "gpg"), Args: append([]string{"--homedir", home, "--batch", "--passphrase", ""}, args...), Dir: dir,
			Env: []string{"PATH=" + programs, "HOME=" + dir}, Output: &out, Restrict: func() error { return isolation.Files(access) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if <-child.Done(); child.Err() != nil && !strings.Contains(out.String(), "Permission denied") {
			t.Fatalf("gpg %q: %v\n%s", args, child.Err(), &out)
		}
		return out.String()
	}
	clear := filepath.Join(dir, "clear")
	if err := os.WriteFile(clear, []byte("the data key"), 0o600); err != nil {
		t.Fatal(err)
	}
	run("--quick-generate-key", "flux@example.com", "default", "default", "never")
	run("--recipient", "flux@example.com", "--output", clear+".gpg", "--encrypt", clear)
	if got := run("--decrypt", clear+".gpg"); !strings.Contains(got, "the data key") {
		t.Errorf("decrypted: %s", got)
	}
	if got := run("--import", other); !strings.Contains(got, "Permission denied") {
		t.Errorf("gpg has access to other files: %s", got)
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Dir(short)); !errors.Is(err, os.ErrNotExist) || short == dir {
		t.Errorf("%s is left: %v", short, err)
	}
	if kept, _ := temporary("/tmp/flux-4294967295/pods/01234567/tmp"); kept != "/tmp/flux-4294967295/pods/01234567/tmp" {
		t.Errorf("a link is used for a short path: %s", kept)
	}
}
