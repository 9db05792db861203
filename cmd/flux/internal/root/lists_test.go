package root

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testflux"
)

// TestTruncatedLists checks that a truncated response is an error and that the
// output is not a complete document.
func TestTruncatedLists(t *testing.T) {
	t.Parallel()
	s := testflux.New(t)
	for _, k := range controllers.Kinds {
		list := func(w http.ResponseWriter, _ *http.Request) {
			text := `{"metadata":{},"items":[]}`
			if k.Kind == "Kustomization" {
				text = `{"metadata":{},"items":[{"metadata":{"name":"app","namespace":"apps"}},{"metadata":{"name":`
			}
			_, _ = io.WriteString(w, text)
		}
		s.Handle("GET "+fleetPath(k), list)
		if k.Portable != "" { // requested at the same time
			k.Version = k.Portable
			s.Handle("GET "+fleetPath(k), list)
		}
	}
	for _, line := range []string{
		"get ks -A -o json", "get ks -A -o yaml", "get all -A -o json", "export ks -A", "export ks -A -o json", "export all -A",
	} {
		got := flux(t.Context(), s, strings.Fields(line)...)
		reported := regexp.MustCompile(`^✗ reading the list of kustomizations: .*unexpected EOF.*: the output is incomplete\n$`).MatchString(got.Err)
		if got.Code != clierr.ExitFailed || !reported || strings.Contains(got.Out, "kind: List") || strings.Contains(got.Out, `"kind": "List"`) {
			t.Errorf("flux %s: %+v", line, got)
		}
	}
}
