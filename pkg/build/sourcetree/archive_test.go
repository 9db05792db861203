package sourcetree_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"testing"
	"testing/fstest"

	"github.com/fluxkit/flux/pkg/build/sourcetree"
)

func TestArchive(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	for _, name := range []string{"./a.yaml", "apps/web/b.yaml", "../../etc/c.yaml"} {
		if err := archive.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(name)), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	tree, err := sourcetree.Archive(&packed)
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(tree, "a.yaml", "apps/web/b.yaml", "etc/c.yaml"); err != nil {
		t.Error(err)
	}
}
