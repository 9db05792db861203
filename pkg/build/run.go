package build

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	kustomize "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/fluxkit/flux/internal/budget"
)

// oneAtATime is held while kustomize builds: it keeps the schema of the kinds
// in variables of its own package, which two builds would write at once.
var oneAtATime sync.RWMutex //nolint:gochecknoglobals // guards globals of kustomize

// run builds a folder: by itself where that is simple, else by kustomize.
func (f *files) run(folder string) ([]Object, error) {
	objects, err := (&plain{files: f}).folder(folder)
	if err == nil {
		err = distinct(objects)
	}
	switch {
	case f.refused != nil:
		return nil, f.refused
	case err == nil:
		return objects, nil
	}
	objects, err = f.runKustomize(folder)
	if f.refused != nil {
		return nil, f.refused
	}
	return objects, err
}

func (f *files) runKustomize(folder string) ([]Object, error) {
	built, err := f.kustomize("/" + inside(folder))
	if err != nil {
		return nil, err
	}
	objects := make([]Object, 0, built.Size())
	for _, resource := range built.Resources() {
		content, err := resource.MarshalJSON()
		if err != nil {
			return nil, err
		}
		o := &unstructured.Unstructured{}
		if err := json.Unmarshal(content, &o.Object); err != nil {
			return nil, fmt.Errorf("reading %s: %w", resource.CurId(), err)
		}
		if err := f.account(o, content); err != nil {
			return nil, err
		}
		objects = append(objects, Object{Unstructured: o})
	}
	return objects, nil
}

// account counts an object that kustomize has returned.
func (f *files) account(o *unstructured.Unstructured, content []byte) error {
	name := describe(o)
	if err := f.budget.Write(name, int64(len(content))); err != nil {
		return f.refuse(err)
	}
	return f.refuse(f.budget.Add(name, 1, budget.Nodes(content)))
}

func (f *files) kustomize(folder string) (built resmap.ResMap, err error) {
	oneAtATime.Lock()
	defer oneAtATime.Unlock()
	defer func() {
		// A panic about one odd file must not end a tool that builds many folders.
		if problem := recover(); problem != nil {
			err = fmt.Errorf("kustomize gave up: %v", problem)
		}
		if f.schema {
			openapi.ResetOpenAPI()
		}
	}()
	// As in the controller, files from anywhere in the source may be used, and plugins may not.
	options := &krusty.Options{
		LoadRestrictions: kustomize.LoadRestrictionsNone,
		PluginConfig:     kustomize.DisabledPluginConfig(),
	}
	return krusty.MakeKustomizer(options).Run(f, folder)
}
