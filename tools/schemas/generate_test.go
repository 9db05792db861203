package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/fluxkit/flux/test/support/testcluster"
)

// TestFilesAreGenerated compares the embedded file with the schemas that the API server of the
// sandbox publishes. Run "go run ./tools/schemas" to update the file.
func TestFilesAreGenerated(t *testing.T) {
	t.Parallel()
	version, content, err := generate(t.Context(), sandboxes.Acquire(t, testcluster.Whole).Client)
	if err != nil {
		t.Fatal(err)
	}
	embedded, err := os.ReadFile(filepath.Join(testcluster.Root(), folder, version+".json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(decompressed(t, embedded), decompressed(t, content)) {
		t.Errorf("the schemas of Kubernetes %s are not those that the API server publishes", version)
	}
}

func decompressed(t *testing.T, content []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
