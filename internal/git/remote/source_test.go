package remote

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/test/support/testgithost"
)

// TestSubmodules checks that with Submodules, nested submodules are fetched, also by relative URLs;
// without it, none are.
func TestSubmodules(t *testing.T) {
	t.Parallel()
	host, err := testgithost.OpenGitHub()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := host.Set("classic", "s3cret", "ada", "repo"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"acme/fleet", "acme/lib", "acme/deep"} {
		for _, words := range [][]string{{"repository", name, "private", "ada=pull"}, {"commit", name, "main", "own.yaml", name}} {
			if err := host.Set(words...); err != nil {
				t.Fatal(err)
			}
		}
	}
	link(t, host, "acme/lib", "vendor/deep", "https://"+host.Hostname+"/acme/deep", "acme/deep")
	link(t, host, "acme/fleet", "lib", "../lib", "acme/lib")

	source := Source{
		URL:    "https://" + host.Hostname + "/acme/fleet",
		Secret: map[string][]byte{"username": []byte("ada"), "password": []byte("s3cret"), "ca.crt": host.CA},
	}
	want := map[string]string{".gitmodules": "", "own.yaml": "acme/fleet\n"}
	if diff := cmp.Diff(want, files(t, source)); diff != "" {
		t.Errorf("without submodules (-want +got):\n%s", diff)
	}
	source.Submodules = true
	want["lib/own.yaml"], want["lib/.gitmodules"], want["lib/vendor/deep/own.yaml"] = "acme/lib\n", "", "acme/deep\n"
	if diff := cmp.Diff(want, files(t, source)); diff != "" {
		t.Errorf("with submodules (-want +got):\n%s", diff)
	}
}

// link adds the newest commit of a repository as a submodule of another one.
func link(t *testing.T, host *testgithost.GitHub, of, at, address, to string) {
	t.Helper()
	run := func(folder string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "git", append([]string{"-C", folder, "-c", "user.name=ada", "-c", "user.email=ada@example.com"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	commit := run(host.Git.Path(to), "rev-parse", "main")
	work := t.TempDir()
	run(work, "clone", "--quiet", host.Git.Path(of), ".")
	text := "[submodule \"" + at + "\"]\n\tpath = " + at + "\n\turl = " + address + "\n"
	if err := os.WriteFile(filepath.Join(work, ".gitmodules"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run(work, "add", ".gitmodules")
	run(work, "update-index", "--add", "--cacheinfo", "160000,"+commit+","+at)
	run(work, "commit", "--quiet", "--message=Link")
	run(work, "push", "--quiet", "origin", "HEAD:main")
}

// files returns the contents of the fetched files, without .gitmodules, which
// has the address of the host.
func files(t *testing.T, source Source) map[string]string {
	t.Helper()
	fetched, err := source.Fetch(t.Context(), git.Revision{Name: "main"})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	err = fs.WalkDir(fetched.Tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(fetched.Tree, name)
		if entry.Name() == ".gitmodules" {
			content = nil
		}
		found[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, has := range map[string]bool{"own.yaml": true, "own": false, "lib": true, "lib/own.yaml": source.Submodules, "lib/none": false} {
		if fetched.Tree.Has(name) != has {
			t.Errorf("%s exists: %v", name, !has)
		}
	}
	if err := fetched.Close(); err != nil {
		t.Fatal(err)
	}
	return found
}

// TestCredentialsOnlyForSourceHost checks that another host gets no password, token or client
// certificate, and local files and programs are rejected as URLs.
func TestCredentialsOnlyForSourceHost(t *testing.T) {
	t.Parallel()
	source := Source{URL: "https://git.example.com/acme/fleet", Secret: map[string][]byte{
		"username": []byte("ada"), "password": []byte("s3cret"), "tls.crt": []byte("cert"), "tls.key": []byte("key"),
	}}
	for address, known := range map[string]bool{
		"https://git.example.com/acme/lib":      true,
		"https://git.example.com:444/acme/lib":  false,
		"http://git.example.com/acme/lib":       false,
		"https://other.example.com/acme/lib":    false,
		"https://git.example.com.evil.com/acme": false,
	} {
		remote, err := source.repository(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		if shown := remote.Auth != nil || remote.Key != nil; shown != known {
			t.Errorf("%s: credentials are sent: %v, want %v", address, shown, known)
		}
	}
	for _, address := range []string{"file:///etc", "/etc", "ext::sh -c touch", "git://git.example.com/acme/lib"} {
		if remote, err := source.repository(t.Context(), address); err == nil {
			t.Errorf("%s is accepted as %v", address, remote)
		}
	}
}

// TestResolveURL checks that URLs in .gitmodules are resolved.
func TestResolveURL(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"../lib.git":                   "ssh://git@example.com:2222/acme/lib.git",
		"./lib":                        "ssh://git@example.com:2222/acme/fleet/lib",
		"git@other.example.com:a/lib":  "ssh://git@other.example.com/a/lib",
		"https://example.com/acme/lib": "https://example.com/acme/lib",
	} {
		if got := resolveURL("ssh://git@example.com:2222/acme/fleet", address); got != want {
			t.Errorf("%s is %s, want %s", address, got, want)
		}
	}
}
