package controllers_test

import (
	"reflect"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	automationv1 "github.com/fluxcd/image-automation-controller/api/v1"
	reflectorv1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	swapi "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/pkg/controllers"
)

type typed struct {
	group  schema.GroupVersion
	object any
}

// types are the structs of the API modules, which the rows must match. Those of
// Flux 2.9 need no newer Go than flux; a test of package manifests compares the
// versions with those of all embedded distributions.
var types = map[string]typed{
	"GitRepository":         {sourcev1.GroupVersion, sourcev1.GitRepository{}},
	"OCIRepository":         {sourcev1.GroupVersion, sourcev1.OCIRepository{}},
	"Bucket":                {sourcev1.GroupVersion, sourcev1.Bucket{}},
	"HelmRepository":        {sourcev1.GroupVersion, sourcev1.HelmRepository{}},
	"HelmChart":             {sourcev1.GroupVersion, sourcev1.HelmChart{}},
	"ExternalArtifact":      {sourcev1.GroupVersion, sourcev1.ExternalArtifact{}},
	"ArtifactGenerator":     {swapi.GroupVersion, swapi.ArtifactGenerator{}},
	"Kustomization":         {kustomizev1.GroupVersion, kustomizev1.Kustomization{}},
	"HelmRelease":           {helmv2.GroupVersion, helmv2.HelmRelease{}},
	"Alert":                 {notificationv1beta3.GroupVersion, notificationv1beta3.Alert{}},
	"Provider":              {notificationv1beta3.GroupVersion, notificationv1beta3.Provider{}},
	"Receiver":              {notificationv1.GroupVersion, notificationv1.Receiver{}},
	"ImageRepository":       {reflectorv1.GroupVersion, reflectorv1.ImageRepository{}},
	"ImagePolicy":           {reflectorv1.GroupVersion, reflectorv1.ImagePolicy{}},
	"ImageUpdateAutomation": {automationv1.GroupVersion, automationv1.ImageUpdateAutomation{}},
}

func TestRowsMatchTheAPIModules(t *testing.T) {
	t.Parallel()
	if len(controllers.Kinds) != len(types) {
		t.Errorf("the catalog has %d kinds, the API modules %d", len(controllers.Kinds), len(types))
	}
	for _, k := range controllers.Kinds {
		t.Run(k.Kind, func(t *testing.T) {
			t.Parallel()
			want, ok := types[k.Kind]
			if !ok {
				t.Fatalf("no API module has a kind %s", k.Kind)
			}
			if got := controllers.PortableAPIVersion(k); got != want.group.String() {
				t.Errorf("group and version are %s, want %s", got, want.group)
			}
			for name, path := range pathsOf(k) {
				if len(path) == 0 {
					t.Errorf("%s is an empty path", name)
					continue
				}
				if err := resolve(reflect.TypeOf(want.object), path[0]); err != "" {
					t.Errorf("%s %q: %s", name, path[0], err)
				}
			}
			for _, ref := range k.AllRefs() {
				for _, target := range ref.Kinds {
					if _, ok := controllers.FindKind(target); !ok {
						t.Errorf("reference %s points to unknown kind %s", ref.Relation, target)
					}
				}
			}
			if _, ok := controllers.Find(k.Controller); !ok {
				t.Errorf("unknown controller %q", k.Controller)
			}
		})
	}
}

func pathsOf(k controllers.Kind) map[string]controllers.Path {
	paths := map[string]controllers.Path{}
	if k.Suspension.Annotation == "" {
		if k.Suspension.Possible() {
			paths["suspension"] = k.Suspension.Field
		}
	}
	if k.Result != nil {
		paths["result"] = k.Result
	}
	for _, attempt := range k.Attempts {
		paths["attempted of "+attempt.Of] = attempt.Path
	}
	if k.Inventory != nil {
		paths["inventory"] = k.Inventory
	}
	if k.Drift != nil {
		paths["drift correction"] = k.Drift
	}
	if k.Decryption != nil {
		paths["decryption"] = k.Decryption
	}
	for _, c := range k.Columns {
		if c.Field != nil {
			paths["column "+c.Header] = c.Field
		}
	}
	for _, r := range k.AllRefs() {
		paths["reference "+r.Relation] = r.Path
	}
	return paths
}

// resolve follows a dotted path through the JSON names of a struct.
func resolve(t reflect.Type, path string) string {
	for _, step := range strings.Split(path, ".") {
		name, index, list := strings.Cut(step, "[")
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		field, ok := fieldNamed(t, name)
		if !ok {
			return t.String() + " has no field " + name
		}
		t = field
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if list != (t.Kind() == reflect.Slice) && index != "" {
			return name + " is not a list"
		}
		if list {
			t = t.Elem()
		}
	}
	return ""
}

func fieldNamed(t reflect.Type, name string) (reflect.Type, bool) {
	if t.Kind() != reflect.Struct {
		return nil, false
	}
	for i := range t.NumField() {
		f := t.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == name {
			return f.Type, true
		}
		if options == "inline" || (f.Anonymous && tag == "") {
			inner := f.Type
			for inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if found, ok := fieldNamed(inner, name); ok {
				return found, true
			}
		}
	}
	return nil, false
}
