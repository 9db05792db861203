package charts

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Stored returns the objects of the manifest that Helm stores for a release. Values that contain
// one of the secrets are marked as secret.
func Stored(hr *unstructured.Unstructured, manifest string, secrets []string) ([]build.Object, error) {
	var objects []build.Object
	err := sourcetree.Documents(strings.NewReader(manifest), func(document []byte) error {
		if err := budget.YAML("release manifest", document); err != nil {
			return err
		}
		text, err := yaml.YAMLToJSON(document)
		if err != nil {
			return errors.New("invalid release manifest") // the original error may quote the manifest
		}
		o := &unstructured.Unstructured{}
		if json.Unmarshal(text, &o.Object) == nil && len(o.Object) > 0 { // not only comments
			objects = append(objects, build.Object{Unstructured: o, Owner: controllers.IDOf(hr.Object), Secret: containing(o.Object, secrets)})
		}
		return nil
	})
	return objects, err
}

// containing returns the paths of values that equal or contain a secret.
func containing(object map[string]any, secrets []string) [][]string {
	var paths [][]string
	build.EachLeaf(object, func(path []string, leaf any) {
		switch leaf.(type) {
		case string, int64, float64:
		default:
			return
		}
		text := fmt.Sprint(leaf)
		if slices.ContainsFunc(secrets, func(secret string) bool {
			encoded := base64.StdEncoding.EncodeToString([]byte(secret))
			return text == secret || text == encoded || len(secret) >= build.Recognizable && strings.Contains(text, secret)
		}) {
			paths = append(paths, path)
		}
	})
	return paths
}
