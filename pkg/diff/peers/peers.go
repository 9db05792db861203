// Package peers compares the Flux objects and the versions of the controllers of several clusters.
package peers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// ErrNoControllers is the reason in State.Missed for a cluster whose Flux version is unknown.
var ErrNoControllers = errors.New("no Flux controllers found")

// The fields of a Difference that are not fields of the object.
const (
	// Exists is "true" in the clusters that have the object, else "false".
	Exists = "exists"
	// Version is the tag of the image of a controller.
	Version = "version"
)

// State is the state of a cluster.
type State struct {
	// Flux is the version of the installed distribution, or "" if it is unknown.
	Flux string
	// Objects holds, for each object, the values of its fields by path.
	Objects map[controllers.ID]map[string]string
	// Missed holds the errors of the kinds that could not be listed, and ErrNoControllers for Deployments if there are none.
	Missed map[string]error
}

// Difference is a field that has different values.
type Difference struct {
	Object controllers.ID `json:"object"`
	// Field is Exists, Version, "suspended", "ready", the name of a column such as "revision", or the path of a field of the spec.
	Field string `json:"field"`
	// Values holds the value in each cluster, in the order of the states. A missing value is nil.
	Values []*string `json:"values"`
}

// Options selects the objects that Read reads.
type Options struct {
	// FluxNamespace is the namespace of the controllers.
	FluxNamespace string
	// Namespace is "" for all namespaces, and Labels a label selector.
	Namespace, Labels string
}

// Read reads the state of a cluster.
func Read(ctx context.Context, client *kube.Client, o Options) (*State, error) {
	s := &State{Objects: map[controllers.ID]map[string]string{}}
	selection := kube.Selection{Namespace: o.Namespace, Labels: o.Labels, Without: []string{"status.inventory", "status.history"}}
	objects, missed, err := client.ListAll(ctx, selection, apierrors.IsForbidden, nil)
	if err != nil {
		return nil, err
	}
	s.Missed = missed
	for _, object := range objects {
		id := controllers.IDOf(object)
		if k, ok := id.Flux(); ok {
			s.Objects[id] = fields(k, object)
		}
	}
	if len(objects)+len(missed) == 0 {
		resources, _, err := client.Discovery().AllApplicable(ctx)
		if err := cmp.Or(err, kube.CheckInstalled(resources)); err != nil {
			return nil, err
		}
	}
	installed, err := kube.InstalledVersions(ctx, client, o.FluxNamespace)
	switch {
	case apierrors.IsForbidden(err):
		s.Missed[deployment] = err
	case err != nil:
		return nil, fmt.Errorf("listing the controllers: %w", err)
	case len(installed.Controllers) == 0:
		s.Missed[deployment] = ErrNoControllers
	}
	s.Flux = installed.Flux
	for name, tag := range installed.Controllers {
		s.Objects[controllers.ID{Group: "apps", Kind: deployment, Namespace: o.FluxNamespace, Name: name}] = map[string]string{Version: tag}
	}
	return s, nil
}

// deployment is the kind of the controllers.
const deployment = "Deployment"

// fields returns the values that are compared. It excludes labels, annotations, and conditions other than Ready.
func fields(k controllers.Kind, o controllers.Object) map[string]string {
	values := map[string]string{"ready": k.Ready(o).Status, "suspended": strconv.FormatBool(k.Suspension.Is(o))}
	for _, c := range k.Columns {
		if len(c.Field) > 0 && strings.HasPrefix(c.Field[0], "status.") {
			values[strings.ToLower(c.Header)] = c.Field.String(o)
		}
	}
	spec, _ := o["spec"].(map[string]any)
	flatten(values, "spec", spec)
	delete(values, "spec.suspend") // part of "suspended"
	return values
}

// longestPath is the length at which flatten stops extending a path: otherwise, a long key could be repeated for each of many
// fields below it.
const longestPath = 512

// flatten adds the leaves of a value by their paths. Empty maps and lists are leaves, and so are values with long paths.
func flatten(values map[string]string, path string, value any) {
	if len(path) > longestPath {
		text, _ := json.Marshal(value) // decoded from JSON
		values[path] = string(text)
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for key, v := range value {
			if strings.ContainsAny(key, ".[]\"") {
				flatten(values, path+"["+strconv.Quote(key)+"]", v)
			} else {
				flatten(values, path+"."+key, v)
			}
		}
		if len(value) > 0 || path == "spec" {
			return
		}
	case []any:
		for i, v := range value {
			flatten(values, fmt.Sprintf("%s[%d]", path, i), v)
		}
		if len(value) > 0 {
			return
		}
	case string:
		values[path] = value
		return
	}
	text, _ := json.Marshal(value) // decoded from JSON
	values[path] = string(text)
}

// Compare returns the differences between clusters, sorted by object and field. Kinds that could not be listed in one of the
// clusters are not compared.
func Compare(states []*State) []Difference {
	all, skipped := map[controllers.ID]bool{}, map[string]bool{}
	for _, s := range states {
		for id := range s.Objects {
			all[id] = true
		}
		for kind := range s.Missed {
			skipped[kind] = true
		}
	}
	var differences []Difference
	for _, id := range slices.SortedFunc(maps.Keys(all), controllers.ID.Compare) {
		if !skipped[id.Kind] {
			differences = append(differences, differing(states, id)...)
		}
	}
	return differences
}

// differing returns the fields of an object that differ. For an object that does not exist in a cluster, only its existence is a
// difference.
func differing(states []*State, id controllers.ID) []Difference {
	exists := Difference{Object: id, Field: Exists, Values: make([]*string, len(states))}
	everywhere, names := true, map[string]bool{}
	for i, s := range states {
		values, ok := s.Objects[id]
		text := strconv.FormatBool(ok)
		exists.Values[i] = &text
		everywhere = everywhere && ok
		for name := range values {
			names[name] = true
		}
	}
	if !everywhere {
		return []Difference{exists}
	}
	var differences []Difference
	for _, name := range slices.Sorted(maps.Keys(names)) {
		d := Difference{Object: id, Field: name, Values: make([]*string, len(states))}
		same := true
		for i, s := range states {
			if value, ok := s.Objects[id][name]; ok {
				d.Values[i] = &value
			}
			same = same && equal(d.Values[0], d.Values[i])
		}
		if !same {
			differences = append(differences, d)
		}
	}
	return differences
}

func equal(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }
