package tree_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

func kindObject(t *testing.T, kind, namespace, name string) controllers.ID {
	t.Helper()
	k, ok := controllers.FindKind(kind)
	if !ok {
		t.Fatalf("no kind %s", kind)
	}
	return k.ID(namespace, name)
}

// TestRecorded checks that the output for inventories equals the recorded output of Flux 2.9.
func TestRecorded(t *testing.T) {
	t.Parallel()
	recorded := recordedAnswers(t)
	for command, c := range map[string]struct {
		root    controllers.ID
		options tree.Options
		print   func(io.Writer, *tree.Node) error
		waves   []int
	}{
		"flux tree kustomization flux-system": {
			kindObject(t, "Kustomization", "flux-system", "flux-system"), tree.Options{InventoryOnly: true}, tree.Text, []int{1, 1},
		},
		"flux tree ks flux-system --compact": {
			kindObject(t, "Kustomization", "flux-system", "flux-system"), tree.Options{FluxOnly: true}, tree.Text, []int{1, 1},
		},
		"flux tree ks flux-system -o json": {
			kindObject(t, "Kustomization", "flux-system", "flux-system"), tree.Options{InventoryOnly: true}, tree.InventoryJSON, []int{1, 1},
		},
		"flux tree ks flux-system -o yaml": {
			kindObject(t, "Kustomization", "flux-system", "flux-system"), tree.Options{InventoryOnly: true}, tree.InventoryYAML, []int{1, 1},
		},
		"flux tree artifact generator composer -n apps": {
			kindObject(t, "ArtifactGenerator", "apps", "composer"), tree.Options{}, tree.Text, []int{1},
		},
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			s := &server{objects: load(t, "../../test/compat/objects.yaml"), waves: c.waves}
			got, err := tree.Build(t.Context(), s.start(t), c.root, c.options)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := c.print(&out, got.Root); err != nil {
				t.Fatal(err)
			}
			want, ok := recorded[command]
			if !ok {
				t.Fatalf("%q is not recorded", command)
			}
			if diff := cmp.Diff(want, out.String()); diff != "" {
				t.Errorf("output differs from the record (-want +got):\n%s", diff)
			}
			if len(got.Gaps) > 0 {
				t.Errorf("gaps: %v", got.Gaps)
			}
		})
	}
}

func recordedAnswers(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile("../../test/compat/recorded.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct{ Command, Stdout string }
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{}
	for _, a := range all {
		answers[a.Command] = a.Stdout
	}
	return answers
}
