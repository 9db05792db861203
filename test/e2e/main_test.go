// Package e2e_test runs end-to-end workflows against a real Kubernetes API and the
// real Flux controllers.
package e2e_test

import (
	"os"
	"testing"

	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testtemp"
)

// sandboxes lists the sandboxes of all tests.
var sandboxes = testcluster.NewPool()

func TestMain(m *testing.M) { os.Exit(testtemp.M{Tests: sandboxes.Around(m)}.Run()) }
