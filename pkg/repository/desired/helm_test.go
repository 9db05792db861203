package desired

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxkit/flux/test/support/testcluster"
)

// TestAssumedKubernetes checks that AssumedKubernetes matches the client-go
// version in go.mod.
func TestAssumedKubernetes(t *testing.T) {
	t.Parallel()
	modules, err := os.ReadFile(filepath.Join(testcluster.Root(), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	minor := strings.TrimSuffix(strings.TrimPrefix(AssumedKubernetes, "v1."), ".0")
	if !strings.Contains(string(modules), "k8s.io/client-go v0."+minor+".") {
		t.Errorf("the k8s.io/client-go version in go.mod does not match AssumedKubernetes %s", AssumedKubernetes)
	}
}
