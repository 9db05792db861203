package record

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/artifact"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
)

// flux records the Flux objects.
func (s *run) flux(ctx context.Context) error {
	installed := false
	for _, k := range controllers.Known {
		s.Reading(k.Resource)
		s.whole[schema.GroupResource{Group: k.Group, Resource: k.Resource}] = true
		for _, namespace := range s.namespaces() {
			line, version := listOf(kube.Of(k), namespace), ""
			err := s.Client.WithServedVersion(ctx, k, func(r kube.Resource) (err error) {
				line.Version = r.Version
				version, err = s.Client.List(ctx, r, kube.Selection{Namespace: namespace}, func(o controllers.Object) error {
					s.want(k, o)
					return s.write(r, o)
				})
				return err
			})
			var absent *kube.MissingKindError
			if errors.As(err, &absent) {
				continue // the recorded discovery shows that the kind is not served
			}
			installed = true
			if err := s.end(line, version, err); err != nil {
				return err
			}
		}
	}
	if !installed {
		s.out.Unknown("Flux resources: " + kube.ErrNotInstalled.Error())
		s.Missed("Flux resources", kube.ErrNotInstalled)
	}
	return nil
}

// want selects the objects that a Flux object applies, the Secrets that it refers to, and the artifact
// with the manifest of an object that the API server rejects.
func (s *run) want(k controllers.Kind, o controllers.Object) {
	if source, ok := diagnose.Searched(k, o); ok {
		s.searched[source] = true
	}
	if a, ok := artifact.Of(o); ok {
		s.artifacts[k.IDOf(o)] = a
	}
	for _, e := range controllers.Inventory(o) {
		if r, ok := s.resource(e.GroupVersionKind()); ok {
			s.add(r, e.ID.Namespace, e.ID.Name)
		}
	}
	for _, ref := range controllers.SecretsOf(o) {
		s.add(secrets(), controllers.Namespace(o), ref.Name)
	}
}

func (s *run) add(r kube.Resource, namespace, name string) {
	if s.applied[r] == nil {
		s.applied[r] = map[string]bool{}
	}
	if s.Namespace == "" || namespace == "" || slices.Contains(s.namespaces(), namespace) {
		s.applied[r][namespace+"/"+name] = true
	}
}

func secrets() kube.Resource { return kube.BuiltIn("v1", controllers.Secret) }
