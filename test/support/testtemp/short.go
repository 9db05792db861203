package testtemp

import (
	"os"
	"testing"
)

// Short creates a temporary directory in which programs can create sockets: socket paths are limited to
// about 100 bytes, and t.TempDir contains the name of the test. The directory is removed at the end of
// the test.
func Short(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "s-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	return folder
}
