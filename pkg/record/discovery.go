package record

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/recording"
)

// documents records the version of the cluster and its resource types.
func (s *run) documents(ctx context.Context) error {
	s.Reading("the cluster API")
	read := map[string]func(context.Context, string) ([]byte, error){
		"/version": s.Client.Raw, "/api": s.Client.Discovery().Aggregated, "/apis": s.Client.Discovery().Aggregated,
	}
	s.served = map[schema.GroupVersionKind]kube.Resource{}
	for _, path := range []string{"/version", "/api", "/apis"} {
		body, err := read[path](ctx, path)
		d := recording.Document{Path: path, Body: body}
		if err == nil && path != "/version" {
			err = s.discover(body)
		}
		if err != nil {
			s.served = nil
			if d.Error, err = s.missed(path, err); err != nil {
				return err
			}
			d.Body = nil
		}
		if err := s.out.Write(recording.Line{Document: &d}); err != nil {
			return err
		}
	}
	return nil
}

func (s *run) discover(body []byte) error {
	groups, err := kube.ResourceTypes(body)
	if err != nil || s.served == nil {
		return err
	}
	for _, group := range groups {
		for _, version := range group.Versions {
			for kind, r := range kube.Applicable(group.Name, version) {
				s.served[schema.GroupVersionKind{Group: group.Name, Version: version.Version, Kind: kind}] = r
			}
		}
	}
	return nil
}

// resource returns the resource of a kind in the given or another served version, false if the
// cluster does not serve the kind.
func (s *run) resource(gvk schema.GroupVersionKind) (kube.Resource, bool) {
	if r, ok := s.served[gvk]; ok || s.served == nil {
		if !ok {
			r = kube.ResourceFor(gvk)
		}
		return r, true
	}
	var versions []string
	for other := range s.served {
		if other.GroupKind() == gvk.GroupKind() {
			versions = append(versions, other.Version)
		}
	}
	if len(versions) == 0 {
		return kube.Resource{}, false
	}
	return s.served[gvk.GroupKind().WithVersion(slices.Min(versions))], true
}
