package vendored

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/cloud/bucket"
	"github.com/fluxkit/flux/internal/git/filetree"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/helm"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository/mapped"
	"github.com/fluxkit/flux/pkg/testrun/sources"
	"github.com/fluxkit/flux/test/support/testcloud"
	"github.com/fluxkit/flux/test/support/testgithost"
	"github.com/fluxkit/flux/test/support/testregistry"
	"github.com/fluxkit/flux/test/support/testtemp"
)

func TestMain(m *testing.M) { os.Exit(testtemp.M{Tests: m}.Run()) }

// servers have a Git repository, a Helm repository and an OCI artifact.
type servers struct {
	*testing.T
	git      *testgithost.GitHub
	oci      *testregistry.Registry
	charts   *httptest.Server
	packed   map[string][]byte
	requests atomic.Int32
}

func start(t *testing.T) *servers {
	t.Helper()
	s := &servers{T: t, oci: testregistry.Start(), packed: map[string][]byte{}}
	t.Cleanup(s.oci.Close)
	var err error
	if s.git, err = testgithost.OpenGitHub(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.git.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, words := range [][]string{{"classic", "s3cret", "ada", "repo"}, {"repository", "acme/apps", "private", "ada=pull"}, {"commit", "acme/apps", "main", "deploy/app.yaml", "kind: ConfigMap\napiVersion: v1\nmetadata: {name: app}"}} {
		if err := s.git.Set(words...); err != nil {
			t.Fatal(err)
		}
	}
	for _, version := range []string{"1.0.0", "1.2.0", "2.0.0"} {
		s.packed["shop-"+version+".tgz"] = s.pack(map[string]string{"shop/Chart.yaml": "apiVersion: v2\nname: shop\nversion: " + version + "\n"})
	}
	s.charts = httptest.NewServer(s)
	t.Cleanup(s.charts.Close)
	if err := s.oci.Push("acme/config:1.0.0", s.pack(map[string]string{"settings.yaml": "kind: ConfigMap\napiVersion: v1\nmetadata: {name: settings}\n"})); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *servers) pack(files map[string]string) []byte {
	s.Helper()
	content := map[string][]byte{}
	for name, text := range files {
		content[name] = []byte(text)
	}
	packed, err := mapped.PackFiles(content)
	if err != nil {
		s.Fatal(err)
	}
	return packed
}

// ServeHTTP serves the Helm repository, and counts the requests for charts.
func (s *servers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if packed, ok := s.packed[name]; ok {
		s.requests.Add(1)
		_, _ = w.Write(packed)
		return
	}
	if name != "index.yaml" {
		http.NotFound(w, r)
		return
	}
	_, _ = fmt.Fprintln(w, "apiVersion: v1\nentries:\n  shop:")
	for _, file := range slices.Sorted(maps.Keys(s.packed)) {
		version := strings.TrimSuffix(strings.TrimPrefix(file, "shop-"), ".tgz")
		_, _ = fmt.Fprintf(w, "  - {name: shop, version: %s, urls: [%s], digest: %x}\n", version, file, sha256.Sum256(s.packed[file]))
	}
}

// repository has an application of another repository, an artifact and a release.
func (s *servers) repository(versions string, more ...string) *sources.Repository {
	s.Helper()
	ca := strings.ReplaceAll(strings.TrimSpace(string(s.git.CA)), "\n", "\n    ")
	r := &sources.Repository{Path: "cluster", Tree: inMemory(map[string][]byte{
		"cluster/secret.yaml": []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: git, namespace: apps}\nstringData:\n  username: ada\n  password: s3cret\n  ca.crt: |\n    " + ca + "\n"),
		"cluster/all.yaml": fmt.Appendf(nil, `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: apps}
spec: {path: deploy, prune: true, interval: 1h, sourceRef: {kind: GitRepository, name: apps}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: apps, namespace: apps}
spec: {interval: 1h, url: "https://%[1]s/acme/apps", ref: {branch: main}, secretRef: {name: git}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: config, namespace: apps}
spec: {interval: 1h, url: "oci://%[2]s/acme/config", insecure: true, ref: {semver: 1.x}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: shop, namespace: apps}
spec: {interval: 1h, url: "%[3]s/"}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: shop, namespace: apps}
spec: {interval: 1h, chart: {spec: {chart: shop, version: %[4]q, sourceRef: {kind: HelmRepository, name: shop}}}}
%[5]s`, s.git.Hostname, s.oci.Host(), s.charts.URL, versions, strings.Join(more, "")),
	})}
	if err := r.Load(s.Context()); err != nil {
		s.Fatal(err)
	}
	return r
}

func (s *servers) fetch(folder string, repositories ...*sources.Repository) (*Result, error) {
	return s.fetchIn(s.Context(), folder, repositories...)
}

func (s *servers) fetchIn(ctx context.Context, folder string, repositories ...*sources.Repository) (*Result, error) {
	f := &Fetcher{Progress: func(string) {}, Buckets: bucket.Fetch, Charts: func(cache string) ClosingFetcher { return closing{&helm.Renderer{Cache: cache}} }}
	return f.Fetch(ctx, folder, repositories...)
}

type closing struct{ *helm.Renderer }

// Close implements ClosingFetcher.
func (closing) Close() error { return nil }

func (s *servers) mustFetch(folder, actions string, repositories ...*sources.Repository) *Result {
	s.Helper()
	r, err := s.fetch(folder, repositories...)
	if err != nil {
		s.Fatal(err)
	}
	if got := fmt.Sprint(r.Count(Fetched), r.Count(Kept), r.Count(Removed)); got != actions || len(r.Incomplete) > 0 {
		s.Fatalf("fetched, kept, removed: %s, want %s: %+v", got, actions, r)
	}
	return r
}

// contents returns the files of a folder.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(folder, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		relative, _ := filepath.Rel(folder, name)
		found[filepath.ToSlash(relative)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func nothing(string, string) bool { return false }

// TestFetch fetches all kinds of sources, keeps what has not changed without fetching it again, and
// removes what is no longer referenced.
func TestFetch(t *testing.T) {
	t.Parallel()
	s := start(t)
	folder := filepath.Join(t.TempDir(), "vendored")
	first := s.mustFetch(folder, "3 0 0", s.repository("1.x"))
	revisions := map[string]string{}
	for _, c := range first.Sources {
		revisions[c.Kind], _, _ = strings.Cut(c.Revision, "@")
	}
	if d := cmp.Diff(map[string]string{"GitRepository": "main", "OCIRepository": "1.0.0", "HelmRepository": "1.2.0"}, revisions); d != "" {
		t.Error(d)
	}
	before := contents(t, folder)
	s.mustFetch(folder, "0 3 0", s.repository("1.x"))
	if d := cmp.Diff(before, contents(t, folder)); d != "" || s.requests.Load() != 1 {
		t.Errorf("%d requests for charts, want 1; %s", s.requests.Load(), d)
	}
	s.check(folder, s.repository("1.x"), "")
	s.check(folder, s.repository(">=2"), "HelmRepository "+s.charts.URL+", chart shop, version >=2")

	// The charts of both revisions of an upgrade.
	s.mustFetch(folder, "1 3 0", s.repository("1.x"), s.repository(">=2"))
	s.check(folder, s.repository(">=2"), "")
	s.mustFetch(folder, "0 3 1", s.repository("1.x"))
	if d := cmp.Diff(before, contents(t, folder)); d != "" {
		t.Error(d)
	}

	// A new commit, and a tag that is moved.
	if err := s.git.Set("commit", "acme/apps", "main", "deploy/next.yaml", "kind: ConfigMap\napiVersion: v1\nmetadata: {name: next}"); err != nil {
		t.Fatal(err)
	}
	if err := s.oci.Push("acme/config:1.0.0", s.pack(map[string]string{"settings.yaml": "kind: ConfigMap\napiVersion: v1\nmetadata: {name: other}\n"})); err != nil {
		t.Fatal(err)
	}
	s.mustFetch(folder, "2 1 0", s.repository("1.x"))
	s.check(folder, s.repository("1.x"), "")
}

// check opens the folder and checks what it lacks.
func (s *servers) check(folder string, r *sources.Repository, missing string) {
	s.Helper()
	f, err := Open(folder)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	err = f.Prepare(s.Context(), r, build.Options{}, nothing)
	var hinted *hint.Error
	switch {
	case missing == "" && err != nil:
		s.Error(err)
	case missing != "" && (!errors.As(err, &hinted) || !strings.Contains(err.Error(), missing) || !strings.Contains(hinted.Hint, "flux test vendor")):
		s.Errorf("got %v, want %s", err, missing)
	}
	if err := f.Prepare(s.Context(), r, build.Options{}, func(kind, _ string) bool { return kind == controllers.HelmRepository }); err != nil {
		s.Errorf("what a mapping serves is missing: %v", err)
	}
}

// TestFailure checks that a source that cannot be fetched, and an interrupt, leave the folder as it is.
func TestFailure(t *testing.T) {
	t.Parallel()
	s := start(t)
	folder := filepath.Join(t.TempDir(), "vendored")
	if _, err := s.fetch(folder, s.repository(">=3")); err == nil || !strings.Contains(err.Error(), `no version matches ">=3"`) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of a failed command exists: %v", err)
	}
	s.mustFetch(folder, "3 0 0", s.repository("1.x"))
	before := contents(t, folder)
	if _, err := s.fetch(folder, s.repository(">=3")); err == nil {
		t.Error("a version that does not exist is fetched")
	}
	stop := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	if _, err := s.fetchIn(ctx, folder, s.repository("2.x")); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	if d := cmp.Diff(before, contents(t, folder)); d != "" {
		t.Error(d)
	}
	// What cannot be vendored is named, and does not keep the rest from being so.
	r, err := s.fetch(folder, s.repository("1.x", "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: Bucket\nmetadata: {name: b, namespace: apps}\nspec: {provider: azure}\n"))
	if err != nil || !slices.Equal(r.Incomplete, []string{"Bucket/apps/b: buckets of provider azure cannot be vendored"}) {
		t.Errorf("got %+v, %v", r, err)
	}
	// The files of others are not removed.
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.fetch(other, s.repository("1.x")); err == nil || !strings.Contains(err.Error(), "contains other files") {
		t.Errorf("got %v", err)
	}
}

// TestOpen checks that files that are not those of the index are found, and repaired by fetching.
func TestOpen(t *testing.T) {
	t.Parallel()
	s := start(t)
	folder := filepath.Join(t.TempDir(), "vendored")
	s.mustFetch(folder, "3 0 0", s.repository("1.x"))
	good := contents(t, folder)
	chart := ""
	for name := range good {
		if strings.HasSuffix(name, ".tgz") {
			chart = name
		}
	}
	outside := filepath.Join(t.TempDir(), "chart.tgz")
	if err := os.WriteFile(outside, []byte(good[chart]), 0o600); err != nil {
		t.Fatal(err)
	}
	write := func(name, content string) error {
		return os.WriteFile(filepath.Join(folder, filepath.FromSlash(name)), []byte(content), 0o600)
	}
	remove := func(name string) error { return os.Remove(filepath.Join(folder, filepath.FromSlash(name))) }
	for want, change := range map[string]func() error{
		"has the digest sha256:":                     func() error { return write(chart, good[chart]+"x") },
		"no such file":                               func() error { return remove(chart) },
		"more-1.0.0.tgz is not listed in index.json": func() error { return write(strings.Replace(chart, "shop-1.2.0", "more-1.0.0", 1), good[chart]) },
		"is not a regular file": func() error {
			return errors.Join(remove(chart), os.Symlink(outside, filepath.Join(folder, filepath.FromSlash(chart))))
		},
		`invalid path "helm/../../chart.tgz"`: func() error {
			return write(indexFile, strings.Replace(good[indexFile], `"`+chart+`": `, `"helm/../../chart.tgz": "sha256:0", "`+chart+`": `, 1))
		},
		"has an unexpected file": func() error {
			return write(indexFile, strings.Replace(good[indexFile], `"file": "`+chart, `"file": "../`+chart, 1))
		},
		"apiVersion": func() error { return write(indexFile, "{}") },
		"JSON input": func() error { return write(indexFile, good[indexFile][:100]) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		f, err := Open(folder)
		if err == nil {
			_ = f.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if _, err := s.fetch(folder, s.repository("1.x")); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(good, contents(t, folder)); d != "" {
			t.Errorf("after %s and fetching: %s", want, d)
		}
	}
	if _, err := Open(filepath.Join(folder, "gone")); err == nil {
		t.Error("a folder that does not exist is opened")
	}
}

// TestDependencies fetches the charts that charts in Git depend on, and adds them to what is served.
func TestDependencies(t *testing.T) {
	t.Parallel()
	s := start(t)
	folder := filepath.Join(t.TempDir(), "vendored")
	release := "---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: apps}\n" +
		"spec: {interval: 1h, chart: {spec: {chart: ./web, sourceRef: {kind: GitRepository, name: apps}}}}\n"
	chart := func(file, content string) {
		t.Helper()
		if file == "Chart.yaml" {
			content = "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n" + content
		}
		if err := s.git.Set("commit", "acme/apps", "main", "web/"+file, content); err != nil {
			t.Fatal(err)
		}
	}
	chart("near/Chart.yaml", "apiVersion: v2\nname: near\nversion: 1.0.0\n")
	depends := func(version, more string) string {
		return fmt.Sprintf("- {name: shop, version: %q, repository: %q%s}\n", version, s.charts.URL+"/", more)
	}
	near := "- {name: near, version: 1.x, repository: \"file://near\"}\n"
	for _, c := range []struct {
		file, dependencies string
		want               []string
		incomplete         string
	}{
		{"Chart.yaml", near, nil, ""},
		{"Chart.yaml", depends("1.x", "") + near, []string{"web/charts/shop-1.2.0.tgz"}, ""},
		{"Chart.yaml", depends("1.x", ", alias: a") + depends("1.x", ", alias: b"), []string{"web/charts/a-shop-1.2.0.tgz", "web/charts/b-shop-1.2.0.tgz"}, ""},
		{"Chart.yaml", depends("1.x", ", alias: a") + near, nil, "has an alias, and another dependency is local"},
		{"Chart.lock", "dependencies:\n" + depends("1.0.0", ""), []string{"web/charts/shop-1.0.0.tgz"}, ""},
	} {
		chart(c.file, c.dependencies)
		name := c.file + " with " + c.dependencies
		result, err := s.fetch(folder, s.repository("2.x", release))
		if err != nil || (c.incomplete == "") != (len(result.Incomplete) == 0) || !strings.Contains(strings.Join(result.Incomplete, ""), c.incomplete) {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
		f, err := Open(folder)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Prepare(t.Context(), s.repository("2.x", release), build.Options{}, nothing); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		added := f.Mappings(nothing)[0].Added
		if got := slices.Sorted(maps.Keys(added)); !slices.Equal(got, c.want) {
			t.Errorf("%s: added %v, want %v", name, got, c.want)
		}
		for path, content := range added {
			if want := s.packed[path[strings.Index(path, "shop-"):]]; string(content) != string(want) {
				t.Errorf("%s: %s is not the chart", name, path)
			}
		}
		_ = f.Close()
	}
	s.mustFetch(folder, "0 4 0", s.repository("2.x", release))
	// One that is missing, also if a mapping serves the repository: source-controller does not use it.
	f, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	f.Sources = slices.DeleteFunc(f.Sources, func(source Source) bool { return source.Version == "1.0.0" })
	err = f.Prepare(t.Context(), s.repository("2.x", release), build.Options{}, func(kind, _ string) bool { return kind == controllers.HelmRepository })
	if want := "HelmRepository " + s.charts.URL + ", chart shop, version 1.0.0"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestBuckets fetches the objects of buckets, and no objects again that have not changed.
func TestBuckets(t *testing.T) {
	t.Parallel()
	s := start(t)
	upstream := testcloud.StartBucket("assets")
	t.Cleanup(upstream.Close)
	objects := func(prefix, key string) string {
		return fmt.Sprintf(`---
apiVersion: v1
kind: Secret
metadata: {name: keys, namespace: apps}
stringData: {accesskey: %[1]s, secretkey: %[2]s}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: Bucket
metadata: {name: assets, namespace: apps}
spec: {interval: 1h, endpoint: %[3]q, bucketName: assets, insecure: true, prefix: %[4]q, secretRef: {name: keys}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: assets, namespace: apps}
spec: {path: deploy, prune: true, interval: 1h, sourceRef: {kind: Bucket, name: assets}}
`, upstream.AccessKey, key, upstream.Endpoint(), prefix)
	}
	repository := func() *sources.Repository { return s.repository("1.x", objects("", upstream.SecretKey)) }
	upstream.Put("deploy/more.yaml", "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: more, namespace: apps}\nspec: {interval: 1h, url: https://charts.example.com}\n")
	upstream.Put("deploy/a b+c%.txt", "text")
	upstream.Put("folder/", "")
	upstream.Put(".sourceignore", "*.txt")
	folder := filepath.Join(t.TempDir(), "vendored")
	first := s.mustFetch(folder, "5 0 0", repository())
	got := first.Sources[0]
	if got.URL != "http://"+upstream.Endpoint()+"/assets" || len(got.ETags) != 3 || !strings.HasPrefix(got.Revision, "sha256:") || upstream.Reads() != 3 {
		t.Errorf("%d objects read: %+v", upstream.Reads(), got)
	}
	before := contents(t, folder)
	s.mustFetch(folder, "0 5 0", repository())
	if d := cmp.Diff(before, contents(t, folder)); d != "" || upstream.Reads() != 3 {
		t.Errorf("%d objects read: %s", upstream.Reads(), d)
	}
	s.check(folder, repository(), "")
	upstream.Put("deploy/next.yaml", "")
	s.mustFetch(folder, "1 4 0", repository())

	f, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	below := s.repository("1.x", objects("deploy/", upstream.SecretKey))
	if err := f.Prepare(t.Context(), below, build.Options{}, nothing); err == nil || !strings.Contains(err.Error(), "Bucket http://"+upstream.Endpoint()+"/assets, prefix deploy/") {
		t.Errorf("got %v", err)
	}
	if m := f.Mappings(nothing)[0]; m.Kind != "Bucket" || len(m.ETags) != 4 {
		t.Errorf("%+v", m)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	// With a prefix, the ignore file is read nevertheless.
	result := s.mustFetch(folder, "1 4 1", below)
	at := slices.IndexFunc(result.Sources, func(c Changed) bool { return c.Kind == "Bucket" && c.Action == Fetched })
	packed := result.Sources[at].File
	if got := slices.Sorted(maps.Keys(result.Sources[at].ETags)); len(got) != 4 || got[0] != ".sourceignore" {
		t.Errorf("%v", got)
	}
	after := contents(t, folder)
	if err := os.WriteFile(filepath.Join(folder, packed), []byte(after[packed]+"x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(folder); err == nil || !strings.Contains(err.Error(), "has the digest sha256:") {
		t.Errorf("got %v", err)
	}
	s.mustFetch(folder, "1 4 0", below)
	upstream.Put("../x", "")
	for want, other := range map[string]string{"Bucket/apps/assets: SignatureDoesNotMatch": objects("", "wrong"), "object \"../x\": the key is not a valid file path": objects("../", upstream.SecretKey)} {
		if _, err := s.fetch(folder, s.repository("1.x", other)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if d := cmp.Diff(after, contents(t, folder)); d != "" {
			t.Error(d)
		}
	}
}

// TestMappings checks what is served for which sources.
func TestMappings(t *testing.T) {
	t.Parallel()
	s := start(t)
	folder := filepath.Join(t.TempDir(), "vendored")
	s.mustFetch(folder, "4 0 0", s.repository("1.x"), s.repository("2.x"))
	f, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var kinds []string
	for _, m := range f.Mappings(nothing) {
		kinds = append(kinds, m.Kind)
		if _, err := os.Stat(m.Path); err != nil {
			t.Error(err)
		}
	}
	if want := []string{controllers.GitRepository, controllers.HelmRepository, controllers.OCIRepository}; !slices.Equal(kinds, want) {
		t.Errorf("%v, want %v", kinds, want)
	}
	if rest := f.Mappings(func(kind, _ string) bool { return kind == controllers.OCIRepository }); len(rest) != 2 {
		t.Errorf("%v is served although another mapping does so", rest)
	}
}

// inMemory returns a tree of files.
func inMemory(files map[string][]byte) *filetree.Tree {
	tree, err := filetree.InMemory(files)
	if err != nil {
		panic(err)
	}
	return tree
}
