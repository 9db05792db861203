package mapped

import (
	"os"
	"path/filepath"
	"slices"
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
	found, err := ChartsIn(t.Context(), filepath.Join(dir, "charts"))
	if err != nil || len(found) != 2 {
		t.Fatalf("%d charts, want 2: %v", len(found), err)
	}
	packed := filepath.Join(dir, "web-1.0.0.tgz")
	if err := os.WriteFile(packed, found[1].Packed, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]string{
		"charts": {"api 2.0.0+build", "web 1.0.0"}, "charts/web": {"web 1.0.0"}, "web-1.0.0.tgz": {"web 1.0.0"}, "files": nil,
	} {
		found, err := ChartsIn(t.Context(), filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range found {
			got = append(got, c.Name+" "+c.Version)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has the charts %v, want %v", path, got, want)
		}
	}
	if _, err := ChartsIn(t.Context(), filepath.Join(dir, "broken")); err == nil || !strings.Contains(err.Error(), "the chart requires a valid name and a version") {
		t.Errorf("the chart with a path as its name: %v", err)
	}
	if _, err := ChartsIn(t.Context(), filepath.Join(dir, "files/deploy/kustomization.yaml")); err == nil {
		t.Error("an empty file is an archive")
	}
}
