package audit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
	"github.com/fluxkit/flux/pkg/validate"
)

// The rules about Kustomizations and HelmReleases.

// prunes finds Kustomizations that do not prune. A missing field is invalid.
func prunes(_ *state, o *Object) []hit {
	return when(build.IsKustomization(o.Unstructured) && text(o, "spec.prune") == "false", hit{
		field: "spec.prune", message: "objects that are removed from Git stay on the cluster", fix: "set spec.prune: true",
	})
}

func waits(s *state, o *Object) []hit {
	dependent, depends := s.dependents[o.ID]
	return when(build.IsKustomization(o.Unstructured) && !waiting(o) && depends, hit{
		field: "spec.wait", message: dependent.String() + " depends on it, and starts before its objects are ready", fix: "set spec.wait: true, or spec.healthChecks",
	})
}

func waiting(o *Object) bool { return text(o, "spec.wait") == "true" || has(o, "spec.healthChecks") }

// longInterval is the longest interval that is also suitable as the timeout and the retry interval.
const longInterval = 10 * time.Minute

func timeouts(_ *state, o *Object) []hit {
	k, _ := o.ID.Flux()
	interval := controllers.IntervalOf(k, o.Unstructured.Object)
	return when(build.IsKustomization(o.Unstructured) && waiting(o) && !has(o, "spec.timeout") && interval > longInterval, hit{
		field: "spec.timeout", message: fmt.Sprintf("a failed rollout is reported after %s", span(interval)), fix: "set spec.timeout, such as 5m",
	})
}

func retryIntervals(_ *state, o *Object) []hit {
	k, _ := o.ID.Flux()
	interval := controllers.IntervalOf(k, o.Unstructured.Object)
	return when(build.IsKustomization(o.Unstructured) && !has(o, "spec.retryInterval") && interval > longInterval, hit{
		field: "spec.retryInterval", message: fmt.Sprintf("a failure is retried after %s", span(interval)), fix: "set spec.retryInterval, such as 1m",
	})
}

// span formats a duration as in manifests.
func span(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// forces finds owners that replace objects. Helm ignores the field with server-side apply.
func forces(_ *state, o *Object) []hit {
	if build.IsKustomization(o.Unstructured) {
		return when(text(o, "spec.force") == "true", hit{
			field: "spec.force", message: "objects with changed immutable fields are deleted and recreated", fix: "remove the field once the change is applied",
		})
	}
	var found []hit
	for _, field := range []string{"spec.upgrade.force", "spec.rollback.force"} {
		if build.IsHelmRelease(o.Unstructured) && text(o, field) == "true" {
			found = append(found, hit{
				severity: validate.Note, field: field, message: "client-side apply replaces objects and drops the fields of other field managers",
				fix: "remove the field once the change is applied",
			})
		}
	}
	return found
}

func suspensions(_ *state, o *Object) []hit {
	k, ok := o.ID.Flux()
	if !ok || !k.Suspension.Possible() || !k.Suspension.Is(o.Unstructured.Object) || controllers.SuspensionReason(o.Unstructured.Object) != "" {
		return nil
	}
	field := "spec.suspend"
	if k.Suspension.Annotation != "" {
		field = "metadata.annotations"
	}
	return []hit{{field: field, message: "suspended without a reason", fix: "resume it, or set the annotation " + controllers.SuspendReasonAnnotation}}
}

// overlappingPaths finds Kustomizations whose directory contains the directory of another one, if both apply objects.
func overlappingPaths(s *state, o *Object) []hit {
	if !build.IsKustomization(o.Unstructured) || controllers.IsRemote(o.Unstructured.Object) {
		return nil
	}
	outer := sourcetree.Clean(text(o, "spec.path"))
	var found []hit
	for id, n := range s.shared[o.ID] {
		other := s.byID[id]
		if other == nil || !build.IsKustomization(other.Unstructured) || build.SourceOf(other.Unstructured) != build.SourceOf(o.Unstructured) {
			continue
		}
		if inner := sourcetree.Clean(text(other, "spec.path")); outer == "." || strings.HasPrefix(inner, outer+"/") {
			found = append(found, hit{
				field: "spec.path", message: fmt.Sprintf("contains %s of %s: both apply %d objects", inner, id, n),
				fix: "exclude " + inner + " in " + outer + "/kustomization.yaml, or remove one of the Kustomizations",
			})
		}
	}
	slices.SortFunc(found, func(a, b hit) int { return strings.Compare(a.message, b.message) })
	return found
}

func remediations(_ *state, o *Object) []hit {
	if !build.IsHelmRelease(o.Unstructured) {
		return nil
	}
	var lacking []string
	for _, action := range []string{"install", "upgrade"} {
		retries := text(o, "spec."+action+".remediation.retries")
		name := text(o, "spec."+action+".strategy.name")
		if (retries == "" || retries == "0") && name != "RetryOnFailure" {
			lacking = append(lacking, "spec."+action)
		}
	}
	return when(len(lacking) > 0, hit{
		field: "spec", message: "a failure is not retried: no strategy or remediation in " + strings.Join(lacking, " and "),
		fix: "set " + strings.Join(lacking, ".strategy.name: RetryOnFailure, and ") + ".strategy.name: RetryOnFailure",
	})
}

func driftDetections(_ *state, o *Object) []hit {
	k, ok := o.ID.Flux()
	mode := k.Drift.String(o.Unstructured.Object)
	return when(ok && len(k.Drift) > 0 && (mode == "" || mode == "disabled"), hit{
		field: "spec.driftDetection", message: "changes outside Flux are not detected", fix: "set spec.driftDetection.mode: enabled",
	})
}

func createdNamespaces(_ *state, o *Object) []hit {
	return when(build.IsHelmRelease(o.Unstructured) && text(o, "spec.install.createNamespace") == "true", hit{
		field: "spec.install.createNamespace", message: "Helm creates the namespace without labels, and does not delete it", fix: "add the Namespace to Git",
	})
}

func storageNamespaces(_ *state, o *Object) []hit {
	target := text(o, "spec.targetNamespace")
	return when(build.IsHelmRelease(o.Unstructured) && target != "" && target != o.ID.Namespace && text(o, "spec.storageNamespace") == "", hit{
		field: "spec.targetNamespace", message: "the release is stored in " + o.ID.Namespace + ", and its objects are in " + target, fix: "set spec.storageNamespace: " + target,
	})
}

func defaultNamespaces(_ *state, o *Object) []hit {
	release := build.IsHelmRelease(o.Unstructured)
	namespace := o.ID.Namespace
	if release {
		if target := text(o, "spec.targetNamespace"); target != "" {
			namespace = target
		}
	}
	deployed := release || len(controllers.PodSpecs(o.Unstructured.Object)) > 0 && ofChart(o) == ""
	return when(deployed && namespace == "default", hit{field: "metadata.namespace", message: "deployed to the default namespace", fix: "use a dedicated namespace"})
}

const watchLabel = "reconcile.fluxcd.io/watch"

// setting is a reference of a Kustomization or HelmRelease to a ConfigMap or Secret with values.
type setting struct {
	id    controllers.ID
	field string
}

func settingsOf(o *Object) []setting {
	var found []setting
	for _, list := range []string{"spec.valuesFrom", "spec.postBuild.substituteFrom"} {
		if !build.IsHelmRelease(o.Unstructured) && !build.IsKustomization(o.Unstructured) {
			continue
		}
		for _, reference := range (controllers.Part{Object: o.Unstructured.Object}).Elements(list) {
			found = append(found, setting{controllers.ID{Kind: reference.Text("kind"), Namespace: o.ID.Namespace, Name: reference.Text("name")}, reference.Field})
		}
	}
	return found
}

// watchLabels finds ConfigMaps and Secrets with values. It skips generated objects, because their names change with
// their data.
func watchLabels(s *state, o *Object) []hit {
	reader, read := s.readers[o.ID]
	if by, misplaced := s.misplaced[o.ID]; misplaced && !read && o.GetLabels()[watchLabel] != "Enabled" {
		wanted := o.ID
		wanted.Namespace = by.Namespace
		return when(s.byID[wanted] == nil, hit{
			field: "metadata.labels", message: fmt.Sprintf("%s reads %s, which is not in Git: this object is in its target namespace", by, wanted),
			fix: fmt.Sprintf("move it to the namespace %s, and set the label %s: Enabled", by.Namespace, watchLabel),
		})
	}
	return when(read && o.GetLabels()[watchLabel] != "Enabled" && !repository.Generated(o.ID.Name), hit{
		field: "metadata.labels", message: "changes are applied only at the next reconciliation of " + reader.String(), fix: "set the label " + watchLabel + ": Enabled",
	})
}
