package sources

import (
	"io"
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxkit/flux/pkg/repository/mapped"
)

// TestServedFolder serves a folder as a Helm repository and as a bucket, and reads both: their files
// have the same names and different contents.
func TestServedFolder(t *testing.T) {
	t.Parallel()
	s := &Server{Now: time.Now}
	index, err := s.serveCharts(t.Context(), "mapped-0", []mapped.Chart{{Name: "web", Version: "1.0.0", Metadata: map[string]any{"name": "web", "version": "1.0.0"}, Packed: []byte("packed")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	folder := fstest.MapFS{"index.yaml": &fstest.MapFile{Data: []byte("of the folder"), Mode: 0o644}}
	bucket, err := s.serveBucket(t.Context(), mapped.Mapping{URL: "https://example.com/charts"}, fs.FS(folder), "mapped-0")
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		index + "/index.yaml":           "web-1.0.0.tgz",
		index + "/web-1.0.0.tgz":        "packed",
		bucket.address + "/index.yaml":  "of the folder",
		bucket.address + "?list-type=2": "<Key>index.yaml</Key>",
	} {
		if text := read(t, address); !strings.Contains(text, want) {
			t.Errorf("%s is %q, without %q", address, text, want)
		}
	}
}

func read(t *testing.T, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // read to its end
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
