package programs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/release/sigstore"
	"github.com/fluxkit/flux/test/support/testcluster"
)

const name = "flux-sandbox_1.0.0_linux_amd64.tar.gz"

// programs are the entries of an archive as sandbox/archive makes it.
func programs() []tar.Header {
	return []tar.Header{
		{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "./flux-sandbox", Typeflag: tar.TypeReg, Mode: 0o755},
		{Name: "./kubectl", Typeflag: tar.TypeReg, Mode: 0o755},
		{Name: "./controllers/source-controller", Typeflag: tar.TypeReg, Mode: 0o755},
		{Name: "./LICENSE", Typeflag: tar.TypeReg, Mode: 0o644},
	}
}

// packed returns an archive of files with their names as content. A header with a size has none.
func packed(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	w := tar.NewWriter(zipped)
	for _, h := range headers {
		content := ""
		if h.Typeflag == tar.TypeReg && h.Size == 0 {
			content = h.Name
			h.Size = int64(len(content))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := zipped.Close(); err != nil { // the end of the tar archive is missing after a header with a size
		t.Fatal(err)
	}
	return b.Bytes()
}

// server has the files of releases by path.
type server struct {
	*httptest.Server
	files    map[string][]byte
	requests atomic.Int32
	// broken are the paths of which half is sent.
	broken map[string]bool
}

func serve(t *testing.T, archive []byte) *server {
	t.Helper()
	s := &server{broken: map[string]bool{}, files: map[string][]byte{
		"/download/v1.0.0/" + name: archive,
	}}
	s.sign(fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(archive), name))
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		content, ok := s.files[r.URL.Path]
		switch {
		case !ok:
			http.NotFound(w, r)
		case s.broken[r.URL.Path]:
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			_, _ = w.Write(content[:len(content)/2]) // the client reports it
		default:
			_, _ = w.Write(content)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// release verifies that the bundle is signature.
func (s *server) release() Release {
	return Release{Version: "1.0.0", Address: s.URL, Agent: "flux/test", Now: time.Now, Started: func() {}, Verify: s.verify}
}

// signed is the signature of the checksums in tests; verifying real ones is tested with the verifier.
const signed = "signature of "

func (s *server) verify(_ context.Context, file, bundle []byte, by sigstore.Identity) error {
	if text := string(bundle); text != signed+string(file) || by != Signer("1.0.0") {
		return fmt.Errorf("invalid signature: %q by %v", text, by)
	}
	return nil
}

// sign replaces the checksums and their signature.
func (s *server) sign(checksums []byte) {
	const path = "/download/v1.0.0/flux_1.0.0_checksums.txt"
	s.files[path], s.files[path+".sigstore.json"] = checksums, []byte(signed+string(checksums))
}

func store(t *testing.T) Store {
	t.Helper()
	return Store{filepath.Join(t.TempDir(), "sandbox"), "linux_amd64"}
}

// left returns the names in the store.
func (s Store) left(t *testing.T) string {
	t.Helper()
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return strings.Join(names, " ")
}

func TestPull(t *testing.T) {
	t.Parallel()
	server, s := serve(t, packed(t, programs()...)), store(t)
	r := server.release()
	var sizes []int64
	r.Downloaded = func(done, total int64) { sizes = append(sizes, done, total) }
	if got := s.Find("1.0.0"); got != "" {
		t.Fatalf("an empty store has %s", got)
	}
	for _, want := range []bool{true, false} {
		if got, err := s.Pull(t.Context(), r); got != want || err != nil {
			t.Fatalf("downloaded %v, %v; want %v", got, err, want)
		}
	}
	if n := server.requests.Load(); n != 3 {
		t.Errorf("%d requests, want one for the checksums, one for their signature and one for the archive", n)
	}
	if last := len(sizes) - 1; last < 0 || sizes[last] != sizes[last-1] {
		t.Errorf("progress %v", sizes)
	}
	program := s.Find("1.0.0")
	info, err := os.Stat(program)
	if err != nil || info.Mode().Perm()&0o111 != 0o111 || program != filepath.Join(s.Dir, "1.0.0", "flux-sandbox") {
		t.Errorf("%s: %v %v", program, info, err)
	}
	if info, err := os.Stat(s.At("1.0.0")); err != nil || info.Mode().Perm()&0o700 != 0o700 {
		t.Errorf("%v %v", info, err)
	}
	if left := s.left(t); left != "1.0.0" {
		t.Errorf("the store has %s", left)
	}
}

// TestPullFails checks that nothing is left of what cannot be downloaded or verified, and that the same
// release can be pulled afterwards.
func TestPullFails(t *testing.T) {
	t.Parallel()
	const path, checksums = "/download/v1.0.0/" + name, "/download/v1.0.0/flux_1.0.0_checksums.txt"
	const bundle = checksums + ".sigstore.json"
	with := func(h tar.Header) func(*testing.T, *server) {
		return func(t *testing.T, s *server) {
			t.Helper()
			s.files[path] = packed(t, append(programs(), h)...)
			s.sign(fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(s.files[path]), name))
		}
	}
	for title, c := range map[string]struct {
		spoil        func(*testing.T, *server)
		want, remedy string
	}{
		"checksum": {func(_ *testing.T, s *server) { s.files[path][20] ^= 1 }, name + " does not match: expected ", "report it"},
		"checksum of another file": {func(_ *testing.T, s *server) {
			s.sign(fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(s.files[path]), "x"+name))
		}, "flux 1.0.0 has no sandbox for ", "make sandbox controllers"},
		"truncated":         {func(_ *testing.T, s *server) { s.files[path] = s.files[path][:len(s.files[path])-9] }, "does not match", "run the command again"},
		"half":              {func(_ *testing.T, s *server) { s.broken[path] = true }, "unexpected EOF", "--releases to a mirror"},
		"no signature":      {func(_ *testing.T, s *server) { delete(s.files, bundle) }, "flux 1.0.0 has no signature: ", "copy the file to it"},
		"changed checksums": {func(_ *testing.T, s *server) { s.files[checksums][0] ^= 1 }, "checksums.txt.sigstore.json: invalid signature", ""},
		"large signature": {func(_ *testing.T, s *server) {
			s.files[bundle] = bytes.Repeat([]byte("x"), bundleMax+1)
		}, "larger than 1 MiB", "mirror"},
		"half a signature": {func(_ *testing.T, s *server) { s.broken[bundle] = true }, "unexpected EOF", "--releases to a mirror"},
		"no release":       {func(_ *testing.T, s *server) { delete(s.files, checksums) }, "flux release 1.0.0 not found", "--version"},
		"no archive":       {func(_ *testing.T, s *server) { delete(s.files, path) }, "404", "--releases to a mirror"},
		"large checksums": {func(_ *testing.T, s *server) {
			s.files[checksums] = bytes.Repeat([]byte("x"), checksumsMax+1)
		}, "larger than 1 MiB", "mirror"},
		"outside":      {with(tar.Header{Name: "../outside", Typeflag: tar.TypeReg}), `"../outside"`, ""},
		"absolute":     {with(tar.Header{Name: "/outside", Typeflag: tar.TypeReg}), `"/outside"`, ""},
		"link outside": {with(tar.Header{Name: "link", Linkname: "/etc", Typeflag: tar.TypeSymlink}), `"link", which is neither a file nor a directory`, ""},
		"hard link":    {with(tar.Header{Name: "link", Linkname: "kubectl", Typeflag: tar.TypeLink}), `"link", which is neither`, ""},
		"large file":   {with(tar.Header{Name: "large", Typeflag: tar.TypeReg, Size: 2 << 30}), "larger than 1024 MiB", ""},
		"missing program": {func(t *testing.T, s *server) {
			t.Helper()
			s.files[path] = packed(t, programs()[:3]...)
			s.sign(fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(s.files[path]), name))
		}, "does not contain all sandbox binaries", ""},
		"no archive format": {func(_ *testing.T, s *server) {
			s.files[path] = []byte("<html>")
			s.sign(fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(s.files[path]), name))
		}, "unzipping the archive", ""},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			archive := packed(t, programs()...)
			server, s := serve(t, bytes.Clone(archive)), store(t)
			c.spoil(t, server)
			done, err := s.Pull(t.Context(), server.release())
			if done || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, %v; want %s", done, err, c.want)
			}
			var remedy *hint.Error
			if errors.As(err, &remedy) != (c.remedy != "") || c.remedy != "" && !strings.Contains(remedy.Hint, c.remedy) {
				t.Errorf("remedy of %v: %v", err, remedy)
			}
			if left := s.left(t); left != "" {
				t.Errorf("the store has %s", left)
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(s.Dir), "outside")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a file was written outside of the store: %v", err)
			}
			whole := serve(t, archive)
			if done, err := s.Pull(t.Context(), whole.release()); !done || err != nil {
				t.Errorf("afterwards: %v, %v", done, err)
			}
		})
	}
}

// TestPullUnverified checks that a sandbox without a verified signature is replaced by one with it, and
// that an archive cannot bring a signature of its own.
func TestPullUnverified(t *testing.T) {
	t.Parallel()
	server, s := serve(t, packed(t, append(programs(), tar.Header{Name: "./" + signature, Typeflag: tar.TypeReg, Mode: 0o644})...)), store(t)
	r := server.release()
	skipped := r
	skipped.Verify = nil
	for _, c := range []struct {
		Release
		downloaded, verified bool
	}{{skipped, true, false}, {skipped, false, false}, {r, true, true}, {r, false, true}, {skipped, false, true}} {
		if got, err := s.Pull(t.Context(), c.Release); got != c.downloaded || err != nil || s.Verified("1.0.0") != c.verified {
			t.Errorf("downloaded %v, %v, verified %v; want %+v", got, err, s.Verified("1.0.0"), c)
		}
	}
	got, err := os.ReadFile(filepath.Join(s.At("1.0.0"), signature))
	if want := server.files["/download/v1.0.0/flux_1.0.0_checksums.txt.sigstore.json"]; err != nil || !bytes.Equal(got, want) {
		t.Errorf("the stored signature is %q, %v", got, err)
	}
	server.files["/download/v1.0.0/flux_1.0.0_checksums.txt.sigstore.json"] = []byte("other")
	unverified := store(t)
	if _, err := unverified.Pull(t.Context(), skipped); err != nil {
		t.Fatal(err)
	}
	if _, err := unverified.Pull(t.Context(), r); err == nil || unverified.Find("1.0.0") == "" {
		t.Errorf("%v; the sandbox is to be left as it was", err)
	}
}

// TestSigner checks that the identity and the name of the signature are those of the release workflow.
func TestSigner(t *testing.T) {
	t.Parallel()
	root := testcluster.Root()
	file, ref, _ := strings.Cut(strings.TrimPrefix(Signer("1.0.0").Subject, Signer("1.0.0").Repository+"/"), "@")
	workflow, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"    tags: [\"v*\"]\n", "      id-token: write\n", "      - run: make release\n"} {
		if !strings.Contains(string(workflow), line) {
			t.Errorf("%s lacks %q", file, line)
		}
	}
	if strings.Contains(string(workflow), "workflow_call") || ref != "refs/tags/v1.0.0" {
		t.Errorf("%s is called by other workflows, or does not run for %s", file, ref)
	}
	releases, err := os.ReadFile(filepath.Join(root, "goreleaser.yaml"))
	if want := `signature: "${artifact}` + bundleSuffix + `"`; err != nil || !strings.Contains(string(releases), want) {
		t.Errorf("goreleaser.yaml lacks %s: %v", want, err)
	}
}

// TestPullAddress checks that an archive is not downloaded without encryption.
func TestPullAddress(t *testing.T) {
	t.Parallel()
	s := store(t)
	for _, address := range []string{"http://releases.example.com", "ftp://127.0.0.1", "releases", "https://exa mple"} {
		r := Release{Version: "1.0.0", Address: address, Now: time.Now, Started: func() {}}
		if done, err := s.Pull(t.Context(), r); done || err == nil || !strings.Contains(err.Error(), "invalid releases address") {
			t.Errorf("%s: %v, %v", address, done, err)
		}
	}
}

func TestPullCanceled(t *testing.T) {
	t.Parallel()
	server, s := serve(t, packed(t, programs()...)), store(t)
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	r := server.release()
	r.Started = func() { cancel(stopped) }
	if done, err := s.Pull(ctx, r); done || !errors.Is(err, stopped) {
		t.Errorf("%v, %v", done, err)
	}
	if left := s.left(t); left != "" {
		t.Errorf("the store has %s", left)
	}
}

// TestPullAtOnce checks that several processes may pull the same version.
func TestPullAtOnce(t *testing.T) {
	t.Parallel()
	server, s := serve(t, packed(t, programs()...)), store(t)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if _, err := s.Pull(t.Context(), server.release()); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if left := s.left(t); left != "1.0.0" || s.Find("1.0.0") == "" {
		t.Errorf("the store has %s", left)
	}
}

// TestPullAfterKill checks that the files of processes that were killed are removed, but not those of
// one that may be running, and that an incomplete version is replaced.
func TestPullAfterKill(t *testing.T) {
	t.Parallel()
	server, s := serve(t, packed(t, programs()...)), store(t)
	r := server.release()
	const old = 2 * abandoned
	for name, age := range map[string]struct{ dir, part time.Duration }{
		".pull-old": {old, old}, ".pull-new": {abandoned / 2, old}, ".pull-slow": {old, abandoned / 2}, "1.0.0": {},
	} {
		part := filepath.Join(s.Dir, name, "part")
		if err := os.MkdirAll(part, 0o750); err != nil {
			t.Fatal(err)
		}
		for path, age := range map[string]time.Duration{filepath.Dir(part): age.dir, part: age.part} {
			if at := time.Now().Add(-age); os.Chtimes(path, at, at) != nil {
				t.Fatal(path)
			}
		}
	}
	if done, err := s.Pull(t.Context(), r); !done || err != nil {
		t.Errorf("%v, %v", done, err)
	}
	if left := s.left(t); left != ".pull-new .pull-slow 1.0.0" || s.Find("1.0.0") == "" {
		t.Errorf("the store has %s", left)
	}
	if _, err := os.Stat(filepath.Join(s.At("1.0.0"), "part")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the incomplete version is still there: %v", err)
	}
	// The files are also removed if nothing has to be downloaded.
	r.Now = func() time.Time { return time.Now().Add(old) }
	if done, err := s.Pull(t.Context(), r); done || err != nil || s.left(t) != "1.0.0" {
		t.Errorf("%v, %v, the store has %s", done, err, s.left(t))
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	s := store(t)
	for _, version := range []string{"1.9.0", "1.10.0", "1.10.0-rc.1", "other", ".pull-1"} {
		dir := s.At(version)
		if err := os.MkdirAll(filepath.Join(dir, "controllers"), 0o750); err != nil {
			t.Fatal(err)
		}
		for _, program := range []string{"flux-sandbox", "kubectl"} {
			if err := os.WriteFile(filepath.Join(dir, program), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The newest one is incomplete.
	if err := os.MkdirAll(s.At("2.0.0"), 0o750); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{
		"1.9.0": "1.9.0", "1.10.0": "1.10.0", "1.10.0-rc.1": "1.10.0-rc.1",
		// A release uses no other version.
		"1.8.0": "", "1.11.0": "", "2.0.0": "", "1.10.0-rc.2": "",
		// A build of a commit uses the newest one.
		"0.1.0-dev": "1.10.0", "0.0.0-dev": "1.10.0", "1.9.0-5-gabcdef0": "1.10.0", "1.10.0-rc.1-2-gabcdef0": "1.10.0",
	} {
		if want != "" {
			want = filepath.Join(s.At(want), "flux-sandbox")
		}
		if got := s.Find(version); got != want {
			t.Errorf("%s: %q, want %q", version, got, want)
		}
	}
}

func TestNormalize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"1.0.0": "1.0.0", "v1.2.3-rc.1": "1.2.3-rc.1", "1.0": "", "latest": "", "../1.0.0": "", "": ""} {
		if got, err := Normalize(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}
