package kube

import (
	"context"
	"slices"
	"strings"

	"github.com/fluxkit/flux/pkg/controllers"
)

// NotFluxKindError is returned for a resource that does not extend Flux.
type NotFluxKindError struct{ Resource Resource }

func (e *NotFluxKindError) Error() string {
	return e.Resource.Kind + " of " + e.Resource.Group + " is not a Flux kind"
}

// Extension returns the row of a kind of a project that extends Flux, by its name as in Named. It requires permission to read
// its CustomResourceDefinition.
func Extension(ctx context.Context, c *Client, word string) (controllers.Kind, error) {
	r, err := c.Discovery().Named(ctx, word)
	if err != nil {
		return controllers.Kind{}, err
	}
	if controllers.IsBuiltInGroup(r.Group) {
		return controllers.Kind{}, &NotFluxKindError{r}
	}
	crd, err := c.Get(ctx, CRDs(), "", r.GroupResource().String())
	if err != nil {
		return controllers.Kind{}, err
	}
	if k, ok := extension(crd); ok {
		return k, nil
	}
	return controllers.Kind{}, &NotFluxKindError{r}
}

// Extensions returns the kinds of projects that extend Flux, those whose CustomResourceDefinition has the label
// app.kubernetes.io/part-of: flux. It reads the names of all such CustomResourceDefinitions and only those that are not of Flux.
func Extensions(ctx context.Context, c *Client) ([]controllers.Kind, error) {
	var names []string
	err := c.Metadata(ctx, CRDs(), Selection{Labels: PartOfFlux}, func(o controllers.Object) {
		name := controllers.Name(o)
		if !slices.ContainsFunc(controllers.Known, func(k controllers.Kind) bool { return k.CRD() == name }) {
			names = append(names, name)
		}
	})
	if err != nil {
		return nil, err
	}
	var found []controllers.Kind
	for _, name := range names {
		crd, err := c.Get(ctx, CRDs(), "", name)
		if err != nil {
			return nil, err
		}
		if k, ok := extension(crd); ok {
			found = append(found, k)
		}
	}
	return found, nil
}

// extension returns the row of a CustomResourceDefinition that extends Flux: one with the label app.kubernetes.io/part-of: flux, or with an
// API group below fluxcd.io.
func extension(crd controllers.Object) (controllers.Kind, bool) {
	if Label(crd, PartOfLabel) != "flux" && !strings.HasSuffix(controllers.Path{"spec.group"}.String(crd), ".fluxcd.io") {
		return controllers.Kind{}, false
	}
	return controllers.Extension(crd)
}
