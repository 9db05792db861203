package root

import (
	"os"
	"testing"

	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testtemp"
)

var sandboxes = testcluster.NewPool()

func TestMain(m *testing.M) { os.Exit(testtemp.M{Tests: sandboxes.Around(m)}.Run()) }
