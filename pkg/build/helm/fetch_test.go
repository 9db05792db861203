package helm_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"

	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/build/helm"
)

// packed is a chart that renders its version.
func packed(t *testing.T, version string) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	archive := tar.NewWriter(zipped)
	for name, text := range map[string]string{
		"app/Chart.yaml":        "apiVersion: v2\nname: app\nversion: " + version + "\n",
		"app/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: v{{ .Chart.Version }}}\n",
	} {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// repository serves charts by an index, to who knows the password.
type repository struct {
	*httptest.Server
	charts    map[string][]byte
	downloads atomic.Int32
	indexes   atomic.Int32
	wrong     bool
}

func newRepository(t *testing.T, versions ...string) *repository {
	t.Helper()
	r := &repository{charts: map[string][]byte{}}
	for _, version := range versions {
		r.charts[version] = packed(t, version)
	}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *repository) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if user, password, ok := request.BasicAuth(); !ok || user != "me" || password != "hunter2" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if strings.HasSuffix(request.URL.Path, "/index.yaml") {
		r.indexes.Add(1)
		list := "entries:\n  app:\n"
		for version, chart := range r.charts {
			sum := digest(chart)
			if r.wrong {
				sum = digest([]byte("another"))
			}
			list += fmt.Sprintf("  - {version: %q, digest: %q, urls: [\"files/app-%s.tgz\"]}\n", version, sum, version)
		}
		send(w, []byte(list))
		return
	}
	r.downloads.Add(1)
	version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(request.URL.Path), "app-"), ".tgz")
	send(w, r.charts[version])
}

func send(w http.ResponseWriter, content []byte) {
	if _, err := w.Write(content); err != nil {
		log.Print(err)
	}
}

func rendered(t *testing.T, r *helm.Renderer, chart charts.Chart) string {
	t.Helper()
	got, err := r.Render(context.Background(), charts.Release{Chart: chart, Name: "r", Namespace: "n"})
	if err != nil {
		return "error: " + err.Error()
	}
	return got.Chart + " " + got.Version
}

func TestRepository(t *testing.T) {
	t.Parallel()
	repo := newRepository(t, "1.0.0", "1.2.0", "2.0.0-rc.1")
	cache := filepath.Join(t.TempDir(), "charts")
	r := &helm.Renderer{Cache: cache}
	access := charts.Access{Username: "me", Password: "hunter2"}
	for version, want := range map[string]string{
		"": "app 1.2.0", "1.0.0": "app 1.0.0", "1.x": "app 1.2.0", ">=1.0.0-0": "app 2.0.0-rc.1", "2.0.0-rc.1": "app 2.0.0-rc.1",
		"3.x":       `error: chart "app" in ` + repo.URL + `/charts: no version matches "3.x"`,
		"no number": `error: chart "app" in ` + repo.URL + `/charts: "no number" is not a valid version or version range: `,
	} {
		got := rendered(t, r, charts.Chart{URL: repo.URL + "/charts", Name: "app", Version: version, Access: access})
		if got != want && !(strings.HasPrefix(want, "error: ") && strings.HasPrefix(got, want)) {
			t.Errorf("version %q: %s, want %s", version, got, want)
		}
	}
	if repo.indexes.Load() != 1 || repo.downloads.Load() != 3 {
		t.Errorf("%d indexes and %d charts were fetched, want 1 and 3", repo.indexes.Load(), repo.downloads.Load())
	}
	again := rendered(t, &helm.Renderer{Cache: cache}, charts.Chart{URL: repo.URL + "/charts", Name: "app", Access: access})
	if again != "app 1.2.0" || repo.downloads.Load() != 3 {
		t.Errorf("from the cache: %s after %d downloads", again, repo.downloads.Load())
	}
	checkCache(t, cache, repo)
}

// checkCache wants charts by digest, for their owner only; and a damaged one fetched again.
func checkCache(t *testing.T, cache string, repo *repository) {
	t.Helper()
	info, err := os.Stat(cache)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the cache folder is %v, %v", info.Mode(), err)
	}
	kept := map[string]fs.FileMode{}
	entries, err := os.ReadDir(cache)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		kept[entry.Name()] = info.Mode().Perm()
	}
	want := map[string]fs.FileMode{}
	for _, chart := range repo.charts {
		want[digest(chart)+".tgz"] = 0o600
	}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Error(diff)
	}
	if err := os.WriteFile(filepath.Join(cache, digest(repo.charts["1.2.0"])+".tgz"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := rendered(t, &helm.Renderer{Cache: cache}, charts.Chart{
		URL: repo.URL, Name: "app", Access: charts.Access{Username: "me", Password: "hunter2"},
	})
	if got != "app 1.2.0" || repo.downloads.Load() != 4 {
		t.Errorf("a damaged chart: %s after %d downloads", got, repo.downloads.Load())
	}
}

func TestRepositoryRefuses(t *testing.T) {
	t.Parallel()
	repo := newRepository(t, "1.0.0")
	r := &helm.Renderer{}
	got := rendered(t, r, charts.Chart{URL: repo.URL, Name: "app"})
	if !strings.Contains(got, "returned 401 Unauthorized") {
		t.Error(got)
	}
	access := charts.Access{Username: "me", Password: "hunter2"}
	got = rendered(t, r, charts.Chart{URL: repo.URL, Name: "other", Access: access})
	if got != `error: chart "other" not found in `+repo.URL {
		t.Error(got)
	}
	repo.wrong = true
	got = rendered(t, &helm.Renderer{}, charts.Chart{URL: repo.URL, Name: "app", Access: access})
	if !strings.Contains(got, "has digest "+digest(repo.charts["1.0.0"])) {
		t.Error(got)
	}
	got = rendered(t, r, charts.Chart{URL: "ftp://example.com", Name: "app"})
	if !strings.Contains(got, "must begin with https:// or oci://") {
		t.Error(got)
	}
}

// TestPasswordStaysWithItsHost follows an index to another host.
func TestPasswordStaysWithItsHost(t *testing.T) {
	t.Parallel()
	var given atomic.Value
	chart := packed(t, "1.0.0")
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		given.Store(password)
		send(w, chart)
	}))
	t.Cleanup(other.Close)
	repo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		send(w, fmt.Appendf(nil, "entries: {app: [{version: 1.0.0, urls: [%q]}]}\n", other.URL+"/app.tgz"))
	}))
	t.Cleanup(repo.Close)
	for pass, want := range map[bool]string{false: "", true: "hunter2"} {
		access := charts.Access{Username: "me", Password: "hunter2", PassCredentials: pass}
		got := rendered(t, &helm.Renderer{}, charts.Chart{URL: repo.URL, Name: "app", Access: access})
		if got != "app 1.0.0" || given.Load() != want {
			t.Errorf("%s, password %q, want %q", got, given.Load(), want)
		}
	}
}

// TestPasswordIsNotRedirected follows redirects of a repository to a server on another port of its host, for which
// net/http would send the password on.
func TestPasswordIsNotRedirected(t *testing.T) {
	t.Parallel()
	var given atomic.Value
	chart := packed(t, "1.0.0")
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		given.Store(password)
		send(w, chart)
	}))
	t.Cleanup(other.Close)
	repo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".tgz") {
			http.Redirect(w, r, other.URL, http.StatusFound)
			return
		}
		send(w, []byte("entries: {app: [{version: 1.0.0, urls: [app.tgz]}]}\n"))
	}))
	t.Cleanup(repo.Close)
	access := charts.Access{Username: "me", Password: "hunter2"}
	if got := rendered(t, &helm.Renderer{}, charts.Chart{URL: repo.URL, Name: "app", Access: access}); got != "app 1.0.0" || given.Load() != "" {
		t.Errorf("%s, password %q", got, given.Load())
	}
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	var blobs, requests atomic.Int32
	served := registry.New(registry.Logger(log.New(bytes.NewBuffer(nil), "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			blobs.Add(1)
		}
		requests.Add(1)
		served.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	var pinned string
	for _, version := range []string{"1.0.0", "1.2.0+build"} {
		layer := static.NewLayer(packed(t, version), "application/vnd.cncf.helm.chart.content.v1.tar+gzip")
		image, err := mutate.AppendLayers(empty.Image, static.NewLayer([]byte("signed"), "application/vnd.cncf.helm.chart.provenance.v1.prov"), layer)
		if err != nil {
			t.Fatal(err)
		}
		tag, err := name.NewTag(host + "/charts/app:" + strings.ReplaceAll(version, "+", "_"))
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(tag, image); err != nil {
			t.Fatal(err)
		}
		sum, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		if version == "1.0.0" {
			pinned = sum.String()
		}
	}
	cache := t.TempDir()
	before := blobs.Load()
	for _, c := range []struct {
		chart charts.Chart
		want  string
	}{
		{charts.Chart{URL: "oci://" + host + "/charts", Name: "app"}, "app 1.2.0+build"},
		{charts.Chart{URL: "oci://" + host + "/charts", Name: "app", Version: "1.0.x"}, "app 1.0.0"},
		{charts.Chart{URL: "oci://" + host + "/charts/app", Tag: "1.0.0"}, "app 1.0.0"},
		{charts.Chart{URL: "oci://" + host + "/charts/app", Tag: "1.2.0_build", Digest: pinned}, "app 1.0.0"},
	} {
		if got := rendered(t, &helm.Renderer{Cache: cache}, c.chart); got != c.want {
			t.Errorf("%+v: %s, want %s", c.chart, got, c.want)
		}
	}
	if got := blobs.Load() - before; got != 2 {
		t.Errorf("%d layers were fetched, want 2: the rest is in the cache", got)
	}
	// A chart that is rendered again is not requested again.
	renderer, chart := &helm.Renderer{Cache: cache}, charts.Chart{URL: "oci://" + host + "/charts", Name: "app"}
	first, sent := rendered(t, renderer, chart), requests.Load()
	if again := rendered(t, renderer, chart); again != first || requests.Load() != sent {
		t.Errorf("%s, then %s with %d more requests", first, again, requests.Load()-sent)
	}
	got := rendered(t, &helm.Renderer{}, charts.Chart{URL: "oci://" + host + "/charts/none", Tag: "1.0.0"})
	if !strings.HasPrefix(got, "error: fetching chart oci://"+host+"/charts/none: ") {
		t.Error(got)
	}
}
