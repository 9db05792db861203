package lifecycle

import (
	"strings"
	"testing"

	"github.com/fluxkit/flux/sandbox/internal/state"
)

// TestReachOnlyLoopback checks that only loopback addresses can be made available in an isolated
// sandbox.
func TestReachOnlyLoopback(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"10.0.0.1:80", "169.254.169.254:80", "0.0.0.0:80", "example.com:80", "127.0.0.1", "127.0.0.1:0", "localhost:80"} {
		err := Reach(t.Context(), state.Folder(t.TempDir()), address)
		if err == nil || !strings.Contains(err.Error(), "must be a loopback address with a port") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
