package charts

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Stored returns the objects of the manifest that Helm stores for a release. Values that contain
// one of the secrets are marked as secret.
func Stored(hr *unstructured.Unstructured, manifest string, secrets []string) ([]build.Object, error) {
	var objects []build.Object
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the manifest of the release: %w", err)
		}
		if err := budget.YAML("manifest of the release", document); err != nil {
			return nil, err
		}
		text, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, errors.New("reading the manifest of the release: it is malformed") // the original error may quote the manifest
		}
		o := &unstructured.Unstructured{}
		if json.Unmarshal(text, &o.Object) != nil || len(o.Object) == 0 {
			continue // only comments
		}
		objects = append(objects, build.Object{Unstructured: o, Owner: controllers.IDOf(hr.Object), Secret: containing(o.Object, secrets, nil)})
	}
}
