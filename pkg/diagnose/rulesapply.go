package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// applyRules are about what kustomize-controller and helm-controller apply: the
// errors of the API server, and those of the build before it.
var applyRules = []rule{
	{
		code: "api-missing", located: true, kinds: appliers, types: []failure.Type{failure.NoMatch},
		message: func(s subject) string {
			return "the cluster does not serve " + strings.TrimSuffix(s.failure.Named.Kind+" in version "+s.failure.Version, " in version ") + s.usedIn()
		},
		remedies: func(s subject) []string { return append(s.serveIt(), s.again()) },
	},
	{
		code: "quota", kinds: appliers, types: []failure.Type{failure.Quota},
		message: func(s subject) string {
			return fmt.Sprintf("ResourceQuota %s exceeded by %s: %s", s.failure.By, s.rejected(), s.detail())
		},
		remedies: func(s subject) []string {
			return []string{fmt.Sprintf("raise ResourceQuota %s of namespace %s, or request less", s.failure.By, s.rejectedIn()), s.again()}
		},
	},
	{
		code: "limit-range", located: true, kinds: appliers, types: []failure.Type{failure.LimitRange},
		message: func(s subject) string {
			return fmt.Sprintf("a LimitRange of namespace %s does not allow %s: %s", s.rejectedIn(), s.rejected(), s.detail())
		},
		remedies: func(s subject) []string {
			return []string{fmt.Sprintf("change the resources of %s%s, or the LimitRange: kubectl -n %s describe limitranges", s.rejected(), s.inFile(), s.rejectedIn()), s.again()}
		},
	},
	{
		code: "namespace-terminating", kinds: appliers, types: []failure.Type{failure.Terminating},
		message: func(s subject) string { return "namespace " + s.failure.Named.Name + " is being deleted" },
		remedies: func(s subject) []string {
			return []string{
				"wait until it is deleted; what it waits for is in its conditions: kubectl describe namespace " + s.failure.Named.Name,
				"create it again, or remove what is in it from the source", s.again(),
			}
		},
	},
	{
		code: "admission", located: true, kinds: appliers, types: []failure.Type{failure.PodSecurity},
		message: func(s subject) string {
			return fmt.Sprintf("%s violates PodSecurity %s: %s", s.rejected(), s.failure.By, s.detail())
		},
		remedies: func(s subject) []string {
			return []string{fmt.Sprintf("change %s%s, or the label pod-security.kubernetes.io/enforce of namespace %s", s.rejected(), s.inFile(), s.rejectedIn()), s.again()}
		},
	},
	{
		code: "admission", located: true, kinds: appliers, types: []failure.Type{failure.Admission, failure.Forbidden, failure.PriorityClass, failure.ServiceAccount},
		message: func(s subject) string {
			if s.failure.By == "" {
				return "API server rejected " + s.rejected() + ": " + s.detail()
			}
			return fmt.Sprintf("%s rejected %s: %s", s.failure.By, s.rejected(), s.detail())
		},
		remedies: func(s subject) []string {
			fix := "change " + s.rejected() + s.inFile()
			if s.failure.By != "" {
				fix += ", or the policy " + s.failure.By
			}
			return []string{fix, s.again()}
		},
	},
	{
		code: "webhook-down", kinds: appliers, steps: []failure.Step{failure.Call},
		message: func(s subject) string {
			return fmt.Sprintf("admission webhook %s cannot be called: %s", s.failure.By, oneLine(s.failure.Text))
		},
		remedies: func(s subject) []string {
			return []string{"start the pods of the webhook: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations shows its Service", s.again()}
		},
	},
	{
		code: "permission", kinds: appliers, types: []failure.Type{failure.Unauthorized},
		message: func(s subject) string {
			return strings.TrimSpace(fmt.Sprintf("%s is forbidden to %s %s %s", s.user(), s.failure.Verb, s.failure.Resource, s.failure.Scope))
		},
		remedies: func(s subject) []string {
			return []string{fmt.Sprintf("grant %s the verb %q on %s with a RoleBinding or ClusterRoleBinding, or remove %s from the source",
				s.user(), s.failure.Verb, s.failure.Resource, s.rejected()), s.again()}
		},
	},
	{
		code: "immutable", located: true, kinds: appliers, types: []failure.Type{failure.Invalid},
		when:     func(s subject) bool { return s.failure.Immutable() },
		message:  func(s subject) string { return fmt.Sprintf("field is immutable: %s of %s", s.fields(), s.rejected()) },
		remedies: func(s subject) []string { return append(s.recreate(), s.again()) },
	},
	{
		code: "invalid", located: true, kinds: appliers, types: []failure.Type{failure.Invalid},
		message: func(s subject) string { return "API server rejected " + s.rejected() + ": " + s.problems() },
		remedies: func(s subject) []string {
			return []string{fmt.Sprintf("fix %s of %s%s, commit and push", s.fields(), s.rejected(), s.inFile()), s.again()}
		},
	},
	{
		code: "invalid", located: true, kinds: appliers, types: []failure.Type{failure.Undecodable},
		message: func(s subject) string { return "API server rejected " + s.rejected() + ": " + s.detail() },
		remedies: func(s subject) []string {
			return []string{fmt.Sprintf("fix %s%s, commit and push", s.rejected(), s.inFile()), s.again()}
		},
	},
	{
		code: "conflict", located: true, kinds: appliers, types: []failure.Type{failure.Conflict},
		message: func(s subject) string {
			if s.failure.By == "" {
				return s.rejected() + " was changed by another client meanwhile"
			}
			return fmt.Sprintf("field manager %s owns fields of %s: %s", s.failure.By, s.rejected(), s.detail())
		},
		remedies: func(s subject) []string {
			if s.failure.By == "" {
				return []string{s.again()}
			}
			return []string{fmt.Sprintf("remove the fields from %s%s, or set its annotation kustomize.toolkit.fluxcd.io/ssa: Merge", s.rejected(), s.inFile()), s.again()}
		},
	},
	{
		code: "namespace-missing", kinds: appliers, types: []failure.Type{failure.NotFound},
		when:    func(s subject) bool { return s.failure.Named.Kind == "Namespace" },
		message: func(s subject) string { return "namespace " + s.failure.Named.Name + " does not exist" },
		remedies: func(s subject) []string {
			return []string{"add the Namespace to the source, or name what applies it in .spec.dependsOn of " + s.String(), s.again()}
		},
	},
	{
		code: "health", kinds: appliers, types: []failure.Type{failure.Unhealthy},
		message: func(s subject) string { return s.unhealthy() }, remedies: func(s subject) []string { return append(s.heal(), s.again()) },
	},
	{
		code: "decryption", kinds: []string{"Kustomization"}, types: []failure.Type{failure.Encrypted},
		message: func(s subject) string {
			return s.failure.Named.String() + " is encrypted with SOPS, and .spec.decryption is not set"
		},
		remedies: func(s subject) []string {
			return []string{"set .spec.decryption of " + s.String() + " to provider sops and the Secret with the key", s.again()}
		},
	},
	{
		code: "decryption", kinds: []string{"Kustomization"}, steps: []failure.Step{failure.Decrypt},
		message: func(s subject) string {
			if secret := s.text("spec.decryption.secretRef.name"); secret != "" && s.failure.Type == failure.Undecryptable {
				return fmt.Sprintf("the keys in Secret %s/%s do not decrypt the file: %s", s.namespace(), secret, s.detail())
			}
			return "decryption failed: " + s.detail()
		},
		remedies: func(s subject) []string {
			key := "the decryption key"
			if secret := s.text("spec.decryption.secretRef.name"); secret != "" {
				key = fmt.Sprintf("the decryption key to Secret %s/%s", s.namespace(), secret)
			}
			return []string{"add " + key + ", or encrypt the file for the key that the cluster has (sops updatekeys)", s.again()}
		},
	},
	{
		code: "substitution", kinds: []string{"Kustomization"}, steps: []failure.Step{failure.Substitute},
		message: func(s subject) string {
			switch s.failure.Type {
			case failure.NoVariable:
				return "variable not set: " + s.failure.Name
			case failure.NotFound:
				return fmt.Sprintf("%s/%s/%s of .spec.postBuild.substituteFrom does not exist", s.failure.Object.Kind, s.namespace(), s.failure.Named.Name)
			}
			return "post-build substitution failed: " + s.detail()
		},
		remedies: func(s subject) []string {
			switch s.failure.Type {
			case failure.NoVariable:
				return []string{fmt.Sprintf("set %s in .spec.postBuild of %s, or give it a default: ${%[1]s:-value}", s.failure.Name, s), s.again()}
			case failure.NotFound:
				return []string{fmt.Sprintf("create it, or set optional: true on it in .spec.postBuild.substituteFrom of %s", s), s.again()}
			}
			return []string{"correct the variables of .spec.postBuild of " + s.String(), s.again()}
		},
	},
	{
		code: "build-path", kinds: []string{"Kustomization"}, reasons: []string{"ArtifactFailed"}, steps: []failure.Step{failure.Path},
		message: func(s subject) string {
			return fmt.Sprintf("the source has no path %q, which .spec.path names", s.text("spec.path"))
		},
		remedies: func(s subject) []string {
			return []string{"push it, or correct .spec.path of " + s.String(), s.again()}
		},
	},
	{
		code: "build", kinds: []string{"Kustomization"}, reasons: []string{"BuildFailed"},
		message: withDetail("the manifests do not build"),
		remedies: func(s subject) []string {
			return []string{"see it here: flux build kustomization " + s.name() + " -n " + s.namespace() + " --path " + orElse(s.text("spec.path"), "."), s.again()}
		},
	},
}

// user is who lacks a permission.
func (s subject) user() string {
	rest, is := strings.CutPrefix(s.failure.User, "system:serviceaccount:")
	namespace, name, ok := strings.Cut(rest, ":")
	switch {
	case !is || !ok:
		return s.failure.User
	case name == s.kind.Controller:
		return name
	}
	return fmt.Sprintf("ServiceAccount %s/%s", namespace, name)
}

// rejectedIn is the namespace of the object that is rejected.
func (s subject) rejectedIn() string {
	return orElse(orElse(s.failure.Object.Namespace, s.failure.Named.Namespace), s.target())
}

// inFile is where the object is defined, as far as that is known.
func (s subject) inFile() string {
	if s.file != "" {
		return " in " + s.file
	}
	if chart := s.text("spec.chart.spec.chart"); chart != "" {
		return " in the values of " + s.String() + " or the templates of chart " + chart
	}
	return ""
}

func (s subject) usedIn() string {
	if s.file != "" {
		return ", which is used in " + s.file
	}
	return ""
}

// mostShown bounds how many fields or objects of one failure are shown.
const mostShown = 3

// fields are the paths of the fields that are rejected.
func (s subject) fields() string {
	var paths []string
	for _, f := range s.failure.Fields {
		if path := "." + f.Path; !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return shortened(paths)
}

// problems are the fields that are rejected, and why; those that would only be
// immutable are left to another attempt.
func (s subject) problems() string {
	var all []string
	for _, f := range s.failure.Fields {
		if !f.Immutable() {
			all = append(all, f.String())
		}
	}
	return shortened(all)
}

func shortened(all []string) string {
	if more := len(all) - mostShown; more > 0 {
		return strings.Join(all[:mostShown], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(all, ", ")
}

// recreate are the remedies for a field that cannot be changed: the one that
// destroys nothing first.
func (s subject) recreate() []string {
	o := s.failure.Object
	if o.Kind == "" || o.Name == "" {
		o = failure.Object{Kind: s.failure.Named.Kind, Namespace: s.target(), Name: s.failure.Named.Name}
	}
	revert := fmt.Sprintf("revert %s of %s%s", s.fields(), o, s.inFile())
	if s.kind.Kind == "Kustomization" {
		return []string{revert, fmt.Sprintf("or set annotation kustomize.toolkit.fluxcd.io/force: enabled on it, which deletes and recreates %s: %s", o, destroyed(o.Kind))}
	}
	resource := strings.ToLower(o.Kind)
	if s.failure.Named.Group != "" {
		resource += "." + s.failure.Named.Group
	}
	return []string{revert, fmt.Sprintf("or delete %s, which the next upgrade creates again: kubectl -n %s delete %s %s (%s)", o, orElse(o.Namespace, s.target()), resource, o.Name, destroyed(o.Kind))}
}

// destroyed is what is lost when an object of a kind is deleted.
func destroyed(kind string) string {
	switch kind {
	case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Pod":
		return "its pods are stopped"
	case "Job":
		return "its pods and their logs are lost"
	case "PersistentVolumeClaim", "PersistentVolume":
		return "the data of the volume is lost, unless its reclaim policy is Retain"
	case "CustomResourceDefinition":
		return "all custom resources of the kind are deleted"
	case "Namespace":
		return "everything in the namespace is deleted"
	case "Service":
		return "its cluster IP changes and it is not reachable meanwhile"
	default:
		return "it is gone until it is created again, with all that it owns"
	}
}

// serveIt are the remedies for a kind that the API server does not serve.
func (s subject) serveIt() []string {
	group, _ := groupVersion(s.failure)
	switch {
	case slices.Contains(s.served, s.failure.Version):
		return nil // the CRD has been installed since
	case slices.Contains(controllers.Groups(), group):
		folder := "FOLDER"
		if i := strings.LastIndexByte(s.file, '/'); i > 0 {
			folder = s.file[:i]
		}
		return []string{"in a clone of the source, rewrite the API versions: flux migrate -f " + folder, "or install the component of Flux that serves it: flux check shows which are installed"}
	case len(s.served) > 0:
		return []string{fmt.Sprintf("set apiVersion of %s to %s%s: the cluster serves no other version", s.failure.Named.Kind, strings.Join(s.served, " or "), s.inFile())}
	case len(s.providers) > 0:
		return []string{fmt.Sprintf("add %s, which applies CRDs of group %s, to .spec.dependsOn of %s", strings.Join(s.providers, " or "), group, s)}
	}
	return []string{fmt.Sprintf("install the CRD of kind %s of group %s", s.failure.Named.Kind, orElse(group, "core")), "if a Kustomization or HelmRelease installs it, name that in .spec.dependsOn of " + s.String()}
}

// unhealthy are the objects that did not become ready.
func (s subject) unhealthy() string {
	var all []string
	for _, h := range s.failure.Objects {
		switch {
		case h.Status == "NotFound":
			all = append(all, h.String()+" does not exist")
		case h.Detail != "":
			all = append(all, fmt.Sprintf("%s is not ready (%s): %s", h, h.Status, h.Detail))
		default:
			all = append(all, fmt.Sprintf("%s is not ready (%s)", h, h.Status))
		}
	}
	return shortened(all)
}

// heal are the remedies for objects that did not become ready. What an object has
// applied itself, it creates again.
func (s subject) heal() []string {
	var remedies []string
	for _, h := range s.failure.Objects[:min(len(s.failure.Objects), mostShown)] {
		switch {
		case h.Status != "NotFound":
			remedies = append(remedies, fmt.Sprintf("fix %s in the source, commit and push", h))
		case s.checks(h.Object):
			remedies = append(remedies, fmt.Sprintf("add %s to the source, or remove it from .spec.healthChecks of %s", h, s))
		}
	}
	return remedies
}

// checks reports whether .spec.healthChecks names an object.
func (s subject) checks(o failure.Object) bool {
	list, _ := controllers.Path{"spec.healthChecks"}.Lookup(s.object)
	items, _ := list.([]any)
	return slices.ContainsFunc(items, func(item any) bool {
		m, _ := item.(map[string]any)
		field := func(name string) string { return controllers.Path{name}.String(m) }
		return field("kind") == o.Kind && field("name") == o.Name && orElse(field("namespace"), o.Namespace) == o.Namespace
	})
}
