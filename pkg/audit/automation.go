package audit

import (
	"cmp"
	"strings"

	"github.com/fluxkit/flux/pkg/controllers"
)

// The rules about image automation and flux-operator.

func imageFilters(_ *state, o *Object) []hit {
	return when(fluxKind(o) == "ImagePolicy" && !has(o, "spec.filterTags"), hit{
		field: "spec", message: "any tag may be selected", fix: "set spec.filterTags.pattern",
	})
}

// pushBranches finds image automation that pushes to the branch that it checks out.
func pushBranches(s *state, o *Object) []hit {
	if fluxKind(o) != "ImageUpdateAutomation" || has(o, "spec.git.push.refspec") {
		return nil
	}
	checkout := text(o, "spec.git.checkout.ref.branch")
	if k, _ := o.ID.Flux(); checkout == "" {
		for _, id := range k.Source.Targets(o.Unstructured.Object) {
			if source := s.byID[id]; source != nil {
				checkout = text(source, "spec.ref.branch")
			}
		}
	}
	push := cmp.Or(text(o, "spec.git.push.branch"), checkout)
	return when(push == checkout && push != "", hit{
		field: "spec.git", message: "pushes to the deployed branch: " + push, fix: "set spec.git.push.branch to another branch",
	})
}

func clusterSizes(_ *state, o *Object) []hit {
	return when(o.ID.IsFluxInstance() && text(o, "spec.cluster.size") == "", hit{
		field: "spec", message: "the controllers have the default concurrency and resource limits", fix: "set spec.cluster.size: small, medium or large",
	})
}

// The rules about workloads that package review does not contain.

func mutableImages(s *state, o *Object) []hit {
	if s.ofFlux(o) {
		return nil
	}
	var found []hit
	for _, pod := range controllers.PodSpecs(o.Unstructured.Object) {
		for _, container := range controllers.Containers(pod) {
			image := container.Text("image")
			if tag := controllers.ImageTag(image); image == "" || strings.Contains(image, "@") || !isPlain(image) || tag != "" && tag != "latest" {
				continue
			}
			found = append(found, hit{
				severity: ofChart(o), field: container.Field + ".image", value: image, message: "no fixed version: " + image, fix: "use a version or a digest",
			})
		}
	}
	return found
}

func writableRoots(_ *state, o *Object) []hit {
	const readOnly = "securityContext.readOnlyRootFilesystem"
	var found []hit
	for _, pod := range controllers.PodSpecs(o.Unstructured.Object) {
		for _, container := range controllers.Containers(pod) {
			if container.Text(readOnly) == "false" && ofChart(o) == "" {
				found = append(found, hit{
					field: container.Field + "." + readOnly, value: "false", message: "the container may write to its root filesystem", fix: "set it to true",
				})
			}
		}
	}
	return found
}
