package export

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/pkg/controllers"
)

// chunks keeps what each write brings.
type chunks []string

// Write implements io.Writer.
func (c *chunks) Write(p []byte) (int, error) {
	*c = append(*c, string(p))
	return len(p), nil
}

// TestExportBreaksOffBetweenDocuments checks that output that ends early has no incomplete
// document, which would be a valid manifest with fewer fields.
func TestExportBreaksOffBetweenDocuments(t *testing.T) {
	t.Parallel()
	var out chunks
	a := &app.App{Out: &out}
	w := newManifestWriter(a, "yaml", false)
	for i, size := range []int{10, 1000, 3000, 2000, 9000, 500, 4000, 10} {
		o := controllers.Object{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprintf("c%d", i)},
			"data": map[string]any{"text": strings.Repeat("x", size), "zz": "end"},
		}
		if err := w.add(o); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.flush(); err != nil {
		t.Fatal(err)
	}
	if len(out) < 3 || strings.Count(strings.Join(out, ""), "---\n") != 8 {
		t.Fatalf("%d writes: %q", len(out), out)
	}
	for _, chunk := range out {
		if !strings.HasPrefix(chunk, "---\n") || strings.Count(chunk, "---\n") != strings.Count(chunk, "name: c") || !strings.Contains(chunk[max(0, len(chunk)-60):], "name: c") {
			t.Errorf("a write is not of whole documents: %.40q … %.60q", chunk, chunk[max(0, len(chunk)-60):])
		}
	}
}
