package sources

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestChartsIn checks where charts are found, and that packed charts are what they were.
func TestChartsIn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := map[string]string{
		"charts/web/Chart.yaml":            "name: web\nversion: 1.0.0\n",
		"charts/web/templates/web.yaml":    "kind: ConfigMap\n",
		"charts/web/charts/db/Chart.yaml":  "name: db\nversion: 9.0.0\n",
		"charts/api/Chart.yaml":            "name: api\nversion: 2.0.0+build\n",
		"files/deploy/kustomization.yaml":  "",
		"files/deploy/templates/Chart.yml": "",
		"broken/web/Chart.yaml":            "name: ../web\nversion: 1.0.0\n",
	}
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := chartsIn(t.Context(), filepath.Join(dir, "charts"))
	if err != nil || len(found) != 2 {
		t.Fatalf("%d charts, want 2: %v", len(found), err)
	}
	packed := filepath.Join(dir, "web-1.0.0.tgz")
	if err := os.WriteFile(packed, found[1].packed, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]string{
		"charts": {"api 2.0.0+build", "web 1.0.0"}, "charts/web": {"web 1.0.0"}, "web-1.0.0.tgz": {"web 1.0.0"}, "files": nil,
	} {
		found, err := chartsIn(t.Context(), filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range found {
			got = append(got, c.name+" "+c.version)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has the charts %v, want %v", path, got, want)
		}
	}
	if _, err := chartsIn(t.Context(), filepath.Join(dir, "broken")); err == nil || !strings.Contains(err.Error(), "the chart needs a name and a version") {
		t.Errorf("the chart with a path as its name: %v", err)
	}
	if _, err := chartsIn(t.Context(), filepath.Join(dir, "files/deploy/kustomization.yaml")); err == nil {
		t.Error("an empty file is an archive")
	}
}

// TestRedirected checks which URLs a mapping concerns.
func TestRedirected(t *testing.T) {
	t.Parallel()
	m := Mapping{URL: "oci://ghcr.io/acme/charts", Path: "charts"}
	r := m.redirected(ociRepositories, m.URL+"/web", "oci://127.0.0.1:1/mapped-0/web", insecure, tagged("1.0.0"))
	text, err := strconv.Unquote(strings.TrimSuffix(strings.TrimPrefix(r.policy.When, "object.spec.url.matches("), ")"))
	if err != nil {
		t.Fatal(err)
	}
	pattern := regexp.MustCompile(text)
	for url, want := range map[string]bool{
		"oci://ghcr.io/acme/charts/web": true, "oci://ghcr.io/acme/charts/web/": true,
		"oci://ghcr.io/acme/charts/web2": false, "oci://ghcr.io/acme/charts": false, "oci://ghcrXio/acme/charts/web": false, "https://oci://ghcr.io/acme/charts/web": false,
	} {
		if got := pattern.MatchString(url); got != want {
			t.Errorf("%s is mapped: %t, want %t", url, got, want)
		}
	}
	for _, want := range []string{`"oci://127.0.0.1:1/mapped-0/web"`, `path: "/spec/verify"`, `path: "/spec/secretRef"`, `{"tag": "1.0.0"}`} {
		if !strings.Contains(r.policy.Patch, want) {
			t.Errorf("the patch lacks %s: %s", want, r.policy.Patch)
		}
	}
}

// TestServesBucket checks which Buckets a mapping concerns.
func TestServesBucket(t *testing.T) {
	t.Parallel()
	m := Mapping{URL: "https://s3.example.com:9000/assets", Ref: map[string]any{"prefix": "apps/"}}
	for _, c := range []struct {
		object map[string]any
		want   bool
	}{
		{map[string]any{"endpoint": "s3.example.com:9000", "bucketName": "assets"}, true},
		{map[string]any{"endpoint": "s3.example.com:9000", "bucketName": "assets", "insecure": true}, true},
		{map[string]any{"endpoint": "s3.example.com", "bucketName": "assets"}, false},
		{map[string]any{"endpoint": "s3.example.com:9000", "bucketName": "assets2"}, false},
	} {
		if got := m.Serves(t.Context(), "Bucket", BucketURL(map[string]any{"spec": c.object})); got != c.want {
			t.Errorf("%v is served: %t", c.object, got)
		}
	}
	r := m.bucket("mapped-0", "127.0.0.1:1")
	if want := `object.spec.endpoint + "/" + object.spec.bucketName == "s3.example.com:9000/assets" && (has(object.spec.prefix) ? object.spec.prefix : "") == "apps/"`; r.policy.When != want {
		t.Errorf("got %s", r.policy.When)
	}
	for _, want := range []string{`"127.0.0.1:1"`, `"mapped-0"`, `path: "/spec/sts"`, `path: "/spec/secretRef"`, `path: "/spec/insecure", value: true`} {
		if !strings.Contains(r.policy.Patch, want) {
			t.Errorf("the patch lacks %s: %s", want, r.policy.Patch)
		}
	}
}
