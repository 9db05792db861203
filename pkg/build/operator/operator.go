// Package operator renders the objects that flux-operator applies: for a ResourceSet, its templates are executed with each
// set of inputs; for a FluxInstance, the source and the Kustomization of spec.sync.
//
// The behavior follows https://fluxoperator.dev/docs/crd/. Data that only a cluster has is not rendered: the inputs that a
// provider fetches from another service must be set, IDs that the operator derives from the UID of an object are derived
// from its name instead, and the controllers of a FluxInstance are left out.
package operator

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Options configures a build.
type Options struct {
	// Select returns the input providers in a namespace whose labels match a selector, sorted by name.
	Select func(ctx context.Context, namespace string, selector *metav1.LabelSelector) ([]controllers.ID, error)
	// Find returns an input provider, or a ConfigMap or Secret that is copied, or build.ErrNotFound.
	Find func(ctx context.Context, wanted controllers.ID) (*unstructured.Unstructured, error)
	// Inputs overrides the inputs that providers export.
	Inputs map[controllers.ID][]map[string]any
	// Lookup returns the ConfigMaps and Secrets that the objects are filled from. It may be nil.
	Lookup build.Lookup
	// Missing is called for a ConfigMap or Secret that is not found. The object is rendered without its data if Missing
	// returns true. Nil returns false.
	Missing func(object controllers.ID, err error) bool
	// Kustomizer executes the templates, and applies the patches of a FluxInstance.
	Kustomizer build.Kustomizer
	// Twin is the Twin of the owner, if another build has rendered it.
	Twin *unstructured.Unstructured
}

// Renders reports whether Render supports the kind of an object.
func Renders(o *unstructured.Unstructured) bool {
	id := controllers.IDOf(o.Object)
	return id.IsResourceSet() || id.IsFluxInstance()
}

// UnknownError is returned for a ResourceSet whose inputs are available only on a cluster.
type UnknownError struct {
	// Provider is the provider of the inputs. If it has no name, the selector matches no provider in the namespace.
	Provider controllers.ID
	// Type is the type of the provider, or "" if it was not found.
	Type string
}

func (e *UnknownError) Error() string {
	remedy := "with --inputs " + hint.Quote(e.Provider.Namespace+"/"+e.Provider.Name) + "=FILE"
	switch {
	case e.Provider.Name == "":
		return "no ResourceSetInputProvider in the repository matches the selector in spec.inputsFrom"
	case e.Type == "":
		return fmt.Sprintf("%s is not in the repository: set its inputs %s", e.Provider, remedy)
	}
	return fmt.Sprintf("the inputs of %s (%s) are not in the repository: set them %s", e.Provider, e.Type, remedy)
}

// spec is the part of the spec of a ResourceSet that determines its objects.
type spec struct {
	CommonMetadata struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"commonMetadata"`
	Inputs        []map[string]any `json:"inputs"`
	InputsFrom    []reference      `json:"inputsFrom"`
	InputStrategy struct {
		Name         string `json:"name"`
		IncludeEmpty bool   `json:"includeEmptyProviders"`
	} `json:"inputStrategy"`
	step
	Steps []step `json:"steps"`
}

// step contains templates.
type step struct {
	Name              string           `json:"name"`
	Resources         []map[string]any `json:"resources"`
	ResourcesTemplate string           `json:"resourcesTemplate"`
}

// reference selects input providers, by name or by labels.
type reference struct {
	Name     string                `json:"name"`
	Selector *metav1.LabelSelector `json:"selector"`
}

// Render renders the objects of a ResourceSet or FluxInstance. Like build.Kustomization, it renders again if it has read
// secret values.
func Render(ctx context.Context, owner *unstructured.Unstructured, o Options) (*build.Result, error) {
	shadow := build.NewShadow(o.Twin)
	first := &rendering{ctx: ctx, owner: owner, options: o, shadow: shadow}
	first.options.Lookup, first.options.Find = shadow.Lookup(o.Lookup), shadow.Find(o.Find)
	result, err := first.run()
	if shadow.Secret && ctx.Err() == nil {
		twin, failed := first.repeat()
		if err != nil {
			err = shadow.Discreet(err, failed, nil)
		} else {
			build.Mark(result.Objects, twin)
		}
	}
	var unknown *UnknownError
	if err != nil && !errors.As(err, &unknown) {
		shown := build.Object{Unstructured: owner, Twin: o.Twin}.Alias()
		err = budget.Short(fmt.Errorf("building %s: %w", shown, err))
	}
	return result, err
}

// rendering is a build of an owner, or its repetition with other secret values.
type rendering struct {
	ctx     context.Context // of a single build
	owner   *unstructured.Unstructured
	options Options
	shadow  *build.Shadow
}

func (r *rendering) run() (*build.Result, error) {
	if controllers.IDOf(r.owner.Object).IsFluxInstance() {
		return r.sync()
	}
	return r.resources()
}

// resources returns the objects of a ResourceSet.
func (r *rendering) resources() (*build.Result, error) {
	var s spec
	if err := decode(r.owner.Object["spec"], &s); err != nil {
		return nil, fmt.Errorf("reading the spec: %w", err)
	}
	if len(s.Steps) > 0 && (len(s.Resources) > 0 || s.ResourcesTemplate != "") {
		return nil, errors.New("spec.steps is mutually exclusive with spec.resources and spec.resourcesTemplate")
	}
	inputs, err := r.inputs(&s)
	if err != nil {
		return nil, err
	}
	steps := append([]step{s.step}, s.Steps...)
	templates, err := templatesOf(steps)
	if err != nil || len(templates) == 0 || len(inputs) == 0 {
		return &build.Result{}, err
	}
	texts, err := r.options.Kustomizer.Execute(r.ctx, templates, inputs)
	if err != nil {
		return nil, err
	}
	result, err := r.objects(templates, texts)
	if err != nil {
		return nil, err
	}
	return result, r.finish(result.Objects, &s)
}

// repeat renders again with other secret values and without reading anything.
func (r *rendering) repeat() ([]build.Object, error) {
	r.shadow.Repeating = true
	again := *r
	if r.options.Missing != nil {
		again.options.Missing = func(controllers.ID, error) bool { return true } // the first build has called it
	}
	if r.options.Twin != nil {
		again.owner = r.options.Twin
	}
	result, err := again.run()
	if err != nil {
		return nil, err
	}
	return result.Objects, nil
}

// templatesOf returns the templates of all steps, in order: each resource is a template.
func templatesOf(steps []step) ([]build.Template, error) {
	var all []build.Template
	for n, s := range steps {
		field := "spec"
		if n > 0 {
			field = fmt.Sprintf("spec.steps[%d]", n-1)
		}
		for i, resource := range s.Resources {
			text, err := yaml.Marshal(resource)
			if err != nil {
				return nil, err
			}
			all = append(all, build.Template{Name: fmt.Sprintf("%s.resources[%d]", field, i), Text: string(text)})
		}
		if s.ResourcesTemplate != "" {
			all = append(all, build.Template{Name: field + ".resourcesTemplate", Text: s.ResourcesTemplate})
		}
	}
	return all, nil
}
