package build_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/fluxkit/flux/pkg/build"
)

// TestBuildsOfOneFolderAtOnce builds one folder on disk many times at once,
// in the two ways, and looks at the folder before and after.
func TestBuildsOfOneFolderAtOnce(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("../../test/compat/files")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "ks-web.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	before := fingerprint(t, folder)
	for _, path := range []string{"apps/production", "apps/base", "artifact"} { // artifact has no kustomization.yaml
		const builds = 20
		results := make([]string, builds)
		var wg sync.WaitGroup
		for i := range builds {
			wg.Go(func() {
				result, err := build.Kustomization(context.Background(), os.DirFS(folder), object(t, string(text)), build.Options{Path: path, Filter: true})
				if err != nil {
					t.Error(err)
					return
				}
				results[i] = show(t, result)
			})
		}
		wg.Wait()
		for _, result := range results {
			if result == "" || result != results[0] {
				t.Fatalf("%s: results differ:\n%s\n%s", path, results[0], result)
			}
		}
	}
	if after := fingerprint(t, folder); after != before {
		t.Errorf("the folder was %s, now %s", before, after)
	}
}

// fingerprint covers names, modes, times and content.
func fingerprint(t *testing.T, folder string) string {
	t.Helper()
	hash := sha256.New()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		hash.Write(fmt.Appendln(nil, path, info.Mode(), info.ModTime().UnixNano(), info.Size()))
		if entry.IsDir() {
			return nil
		}
		content, err := os.ReadFile(path)
		hash.Write(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", hash.Sum(nil))
}
