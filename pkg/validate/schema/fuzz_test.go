package schema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/pkg/validate/schema"
	"github.com/fluxkit/flux/pkg/validate/verdict"
)

// FuzzValidate checks that no definition and no object, which repositories and charts provide, ends
// the helper process.
func FuzzValidate(f *testing.F) {
	crds := strings.Split(string(read(f, "crds.yaml")), "---\n")
	for object := range strings.SplitSeq(string(read(f, "objects.yaml")), "---\n") {
		f.Add(crds[0], object)
	}
	v := schema.NewValidator()
	f.Fuzz(func(t *testing.T, crd, object string) {
		request := verdict.Request{Kubernetes: "1.36"}
		for _, text := range []string{crd, object} {
			encoded, err := yaml.YAMLToJSON([]byte(text))
			if err != nil || !strings.HasPrefix(string(encoded), "{") {
				return
			}
			request.Objects = append(request.Objects, json.RawMessage(encoded))
		}
		verdicts, err := v.Validate(t.Context(), request)
		if err != nil || len(verdicts) != len(request.Objects) {
			t.Errorf("%d verdicts on %d objects: %v", len(verdicts), len(request.Objects), err)
		}
	})
}
