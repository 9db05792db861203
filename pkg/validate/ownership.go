package validate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
)

const toolkit = "kustomize.toolkit.fluxcd.io"

// checkLabels reports labels whose values are not strings.
func checkLabels(c *cluster) {
	for _, o := range c.objects {
		for _, key := range o.InvalidLabels {
			c.add(o, Finding{
				Severity: Invalid, Rule: RuleLabel, Field: "metadata.labels." + key,
				Message: "must be a string: kustomize-controller removes all labels of the object", Fix: "quote the value",
			})
		}
	}
}

// checkEncryption reports SOPS-encrypted Secrets that the Kustomization does not decrypt.
func checkEncryption(c *cluster) {
	for _, o := range c.objects {
		owner := o.side.Owner
		if !o.Encrypted || !o.ref.IsSecret() || !build.IsKustomization(owner) || isAssumed(c, owner) || o.GetAnnotations()[toolkit+"/decrypt"] == "disabled" {
			continue
		}
		if _, set, _ := unstructured.NestedMap(owner.Object, "spec", "decryption"); set {
			continue
		}
		name := controllers.IDOf(owner.Object).String()
		f := Finding{Severity: Invalid, Rule: RuleDecryption, Field: "sops", Message: "encrypted with SOPS, and " + name + " has no spec.decryption: kustomize-controller rejects it"}
		if _, whole := o.Object.Object["sops"]; !whole {
			f.Severity, f.Field, f.Message = Warning, "data", "contains a value that is encrypted with SOPS, and "+name+" has no spec.decryption: pods get the encrypted value"
		}
		f.Fix = "set spec.decryption of " + name
		c.add(o, f)
	}
}

// checkOverlaps reports the objects that two Kustomizations apply to the same cluster.
func checkOverlaps(c *cluster) {
	type key struct {
		id      controllers.ID
		cluster string
	}
	first := map[key]*object{}
	for _, o := range c.objects {
		if !applies(c, o) {
			continue
		}
		at := key{o.ref.ID, target(o.side.Owner)}
		other := first[at]
		if other == nil {
			first[at] = o
			continue
		}
		f := Finding{
			Severity: Invalid, Rule: RuleOwner,
			Message: fmt.Sprintf("applied by %s and %s, which overwrite and prune each other's objects", controllers.IDOf(other.side.Owner.Object), controllers.IDOf(o.side.Owner.Object)),
			Fix:     "remove it from one of the Kustomizations",
		}
		if o.ref.IsNamespace() {
			f.Severity = Warning // a common convention, which works until one of them removes it
		}
		c.add(o, f)
	}
}

// applies reports whether a Kustomization applies an object exclusively. It returns false if the object's name or the
// Kustomization is uncertain.
func applies(c *cluster, o *object) bool {
	owner := o.side.Owner
	suspended, _, _ := unstructured.NestedBool(owner.Object, "spec", "suspend")
	if !build.IsKustomization(owner) || suspended || isAssumed(c, owner) || shares(o) {
		return false
	}
	return len(c.graph.Lacking(controllers.IDOf(owner.Object))) == 0 && !strings.Contains(o.ref.Name+o.ref.Namespace, "${")
}

// isAssumed reports whether an owner is not in the repository, so that its spec is unknown.
func isAssumed(c *cluster, owner *unstructured.Unstructured) bool {
	return repository.RootAssumed(c.graph) && owner == c.graph.Root()
}

// shares reports whether an object has a label or an annotation that prevents its apply or merges it.
func shares(o *object) bool {
	for _, metadata := range []map[string]string{o.GetLabels(), o.GetAnnotations()} {
		if metadata[toolkit+"/reconcile"] == "disabled" || slices.Contains([]string{"Ignore", "IfNotPresent", "Merge"}, metadata[toolkit+"/ssa"]) {
			return true
		}
	}
	return false
}

// target returns a key of the cluster to which an owner applies its objects.
func target(owner *unstructured.Unstructured) string {
	config, set, _ := unstructured.NestedMap(owner.Object, "spec", "kubeConfig")
	if !set {
		return ""
	}
	text, err := json.Marshal(config)
	if err != nil {
		return controllers.IDOf(owner.Object).String()
	}
	return owner.GetNamespace() + string(text)
}

// checkDeadlocks reports custom resources whose CustomResourceDefinition is installed by a HelmRelease in the same
// Kustomization. On a new cluster, the dry run of the custom resource fails, so that the Kustomization applies nothing.
func checkDeadlocks(c *cluster) {
	type kind struct{ group, kind string }
	installers := map[kind][]*repository.Rendering{}
	for _, o := range c.objects {
		if o.ref.IsCRD() {
			k := kind{text(o.Object.Unstructured, "spec", "group"), text(o.Object.Unstructured, "spec", "names", "kind")}
			if !slices.Contains(installers[k], o.side) {
				installers[k] = append(installers[k], o.side)
			}
		}
	}
	for _, o := range c.objects {
		found := installers[kind{o.ref.Group, o.ref.Kind}]
		if len(found) != 1 || !build.IsHelmRelease(found[0].Owner) || controllers.IsRemote(found[0].Owner.Object) || !applies(c, o) || controllers.IsRemote(o.side.Owner.Object) {
			continue
		}
		id := controllers.IDOf(found[0].Owner.Object)
		if release := c.byRef[id]; release == nil || release.side != o.side {
			continue
		}
		f := Finding{
			Severity: Invalid, Rule: RuleDeadlock, Field: "kind",
			Message: fmt.Sprintf("%s installs the CustomResourceDefinition and is in the same Kustomization: on a new cluster, the dry run of this object fails, and nothing is applied", id),
			Fix:     fmt.Sprintf("move it to another Kustomization, with spec.dependsOn: [{name: %s}]", o.side.Owner.GetName()),
		}
		if !c.deployed.Complete {
			f.Severity, f.Message = Warning, f.Message+", unless an owner that was not rendered installs it"
		}
		c.add(o, f)
	}
}
