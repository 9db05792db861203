package schema_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/validate/schema"
	"github.com/fluxkit/flux/pkg/validate/verdict"
	"github.com/fluxkit/flux/test/support/testcluster"
)

// TestVerdictsAreThoseOfTheServer compares the verdict on each object with that of an API server,
// which is asked for a dry run with strict field validation.
func TestVerdictsAreThoseOfTheServer(t *testing.T) {
	t.Parallel()
	cluster := sandboxes.Acquire(t, testcluster.Whole)
	if err := cluster.InstallCRDs(t.Context()); err != nil {
		t.Fatal(err)
	}
	crds, err := testcluster.Decode(read(t, "crds.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := kube.Apply(t.Context(), cluster.Client, crds); err != nil {
		t.Fatal(err)
	}
	request := verdict.Request{Kubernetes: "1.36"}
	for _, crd := range append(crds, fluxCRDs(t)...) {
		request.CRDs = append(request.CRDs, encode(t, crd.Object))
	}
	var names, texts []string
	for document := range strings.SplitSeq(string(read(t, "objects.yaml")), "---\n") {
		name, text, _ := strings.Cut(document, "\n")
		names, texts = append(names, strings.TrimPrefix(name, "# ")), append(texts, text)
		var decoded map[string]any
		if err := yaml.Unmarshal([]byte(text), &decoded); err != nil {
			t.Fatal(err)
		}
		request.Objects = append(request.Objects, encode(t, decoded))
	}
	verdicts, err := schema.NewValidator().Validate(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range verdicts {
		expected, name, _ := strings.Cut(names[i], ": ")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), filepath.Join(testcluster.Bin(), "kubectl"), "--kubeconfig", cluster.Kubeconfig,
				"create", "--dry-run=server", "--validate=strict", "-f", "-")
			cmd.Stdin = strings.NewReader(texts[i])
			out, err := cmd.CombinedOutput()
			if accepted := err == nil; accepted != (expected == "valid") {
				t.Errorf("the API server does not consider it %s:\n%s", expected, out)
			}
			if valid := len(v.Problems) == 0 && v.Unknown == ""; valid != (expected == "valid") {
				t.Errorf("got %+v, want %s; the API server:\n%s", v, expected, out)
			}
		})
	}
}

// fluxCRDs returns the CustomResourceDefinitions of Flux.
func fluxCRDs(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	options := manifests.Defaults()
	options.Components = controllers.Names(func(controllers.Controller) bool { return true })
	set, err := manifests.Render(options)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(set.Unstructured(), func(o *unstructured.Unstructured) bool { return o.GetKind() != "CustomResourceDefinition" })
}

func encode(t *testing.T, o map[string]any) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestVersions compares the versions that the command knows with the generated files.
func TestVersions(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		found = append(found, strings.TrimSuffix(entry.Name(), ".json.gz"))
	}
	slices.Reverse(found)
	if want := verdict.KubernetesVersions(); !slices.Equal(found, want) {
		t.Errorf("the generated files are those of %v, the versions are %v", found, want)
	}
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
