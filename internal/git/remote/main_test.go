package remote

import (
	"os"
	"testing"

	"github.com/fluxkit/flux/test/support/testtemp"
)

func TestMain(m *testing.M) { os.Exit(testtemp.M{Tests: m}.Run()) }
