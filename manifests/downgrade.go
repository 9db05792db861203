package manifests

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// CheckDowngrade returns an error if a newer version of Flux is installed, and the cluster stores
// objects at an API version that the CRDs in the manifests do not contain: the API server would
// reject these CRDs after others were replaced. The argument installed is the CRD kube.InstalledCRD
// of the cluster, or nil.
func (s *Set) CheckDowngrade(ctx context.Context, client *kube.Client, installed controllers.Object) error {
	newer := kube.Label(installed, kube.VersionLabel)
	if !isOlder(s.Version, newer) {
		return nil
	}
	own := map[string][]string{}
	for _, object := range s.objects {
		if object.GetKind() == "CustomResourceDefinition" {
			own[object.GetName()] = kube.ServedVersions(object.Object)
		}
	}
	missing := ""
	_, err := client.List(ctx, kube.CRDs(), kube.Selection{Labels: kube.PartOfFlux, Without: []string{"spec"}}, func(crd controllers.Object) error {
		versions, replaced := own[controllers.Name(crd)]
		for _, stored := range (controllers.Path{"status.storedVersions"}).Strings(crd) {
			if replaced && missing == "" && !slices.Contains(versions, stored) {
				missing = fmt.Sprintf("%s has no version %s, at which the cluster stores objects", controllers.Name(crd), stored)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("listing the CustomResourceDefinitions: %w", err)
	}
	if missing == "" {
		return nil
	}
	return hint.Errorf(fmt.Sprintf("keep Flux %s or later; to downgrade, run 'flux uninstall' first: it deletes the Flux resources and keeps what they have applied", newer),
		"Flux %s cannot replace Flux %s: its CustomResourceDefinition %s", s.Version, newer, missing)
}

// isOlder reports whether a version is known to be older than another.
func isOlder(v, other string) bool {
	one, err := version.ParseGeneric(v)
	if err != nil {
		return false
	}
	two, err := version.ParseGeneric(other)
	return err == nil && one.LessThan(two)
}
