package testopenapi

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/fluxkit/flux/test/support/testcluster"
)

// GitHub returns GitHub's description of the given operations of GitHub Enterprise
// Server. The file is in the directory of the sandbox binaries.
func GitHub(operations []string) (*Description, error) {
	name := filepath.Join(testcluster.Bin(), "github.openapi.json")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("no OpenAPI description of GitHub: run 'make descriptions': %w", err)
	}
	return Parse(text, "/api/v3", "basic-error", operations)
}
