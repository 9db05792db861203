package rules

import (
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// appliers lists the kinds that apply objects.
var appliers = kindsWith(controllers.Kind.Applies) //nolint:gochecknoglobals // taken from the catalog

// kindsWith returns the names of the kinds in the catalog that keep accepts.
func kindsWith(keep func(controllers.Kind) bool) []string {
	var names []string
	for _, k := range controllers.Kinds {
		if keep(k) {
			names = append(names, k.Kind)
		}
	}
	return names
}

// applyRules holds the rules for applied objects: errors of the API server, and errors of the build.
var applyRules = []rule{
	{
		code: "access-denied", kinds: []string{"Kustomization", "HelmRelease", "ImagePolicy", "ImageUpdateAutomation"}, reasons: []string{"AccessDenied"},
		message: "{message}",
		fixes:   []string{"refer to an object in namespace {namespace} in the spec of {object}, or run {controller} without --no-cross-namespace-refs"},
	},
	{
		code: "api-missing", live: true, kinds: appliers, types: []failure.Type{failure.NoMatch},
		message: "the cluster does not serve {api}",
		more:    serve,
	},
	{
		code: "quota", kinds: appliers, types: []failure.Type{failure.Quota},
		message: "ResourceQuota {by} exceeded by {rejected}: {detail}",
		fixes:   []string{"raise ResourceQuota {by} of namespace {rejected namespace}, or request less"},
	},
	{
		code: "limit-range", live: true, kinds: appliers, types: []failure.Type{failure.LimitRange},
		message: "a LimitRange of namespace {rejected namespace} does not allow {rejected}: {detail}",
		fixes:   []string{"change the resources of {rejected}{in file}, or the LimitRange: {kubectl} describe limitranges"},
	},
	{
		code: "namespace-terminating", kinds: appliers, types: []failure.Type{failure.Terminating},
		message: "namespace {name} is being deleted",
		fixes: []string{
			"wait until it is deleted; what it waits for is in its conditions: kubectl describe namespace {operand}",
			"create it again, or remove what is in it from the source",
		},
	},
	{
		code: "admission", live: true, kinds: appliers, types: []failure.Type{failure.PodSecurity},
		message: "{rejected} violates PodSecurity {by}: {detail}",
		fixes:   []string{"change {rejected}{in file}, or the label pod-security.kubernetes.io/enforce of namespace {rejected namespace}"},
	},
	{
		code: "admission", live: true, kinds: appliers, types: []failure.Type{failure.Admission, failure.Forbidden, failure.PriorityClass, failure.ServiceAccount},
		message: "{rejecter} rejected {rejected}: {detail}",
		fixes:   []string{"change {rejected}{in file}{or policy}"},
	},
	{
		code: "webhook-down", kinds: appliers, steps: []failure.Step{failure.Call},
		message: "admission webhook {by} cannot be called: {text}",
		fixes:   []string{"start the pods of the webhook; see its Service: kubectl describe validatingwebhookconfigurations,mutatingwebhookconfigurations"},
	},
	{
		code: "permission", kinds: appliers, types: []failure.Type{failure.Unauthorized},
		message: "{user} is forbidden to {verb} {resource} {scope}",
		fixes:   []string{`grant {user} the verb "{verb}" on {resource} with a RoleBinding or ClusterRoleBinding, or remove {rejected} from the source`},
	},
	{
		code: "immutable", live: true, kinds: appliers, types: []failure.Type{failure.Invalid},
		when:    func(s Subject) bool { return s.failure.Immutable() },
		message: "field is immutable: {fields} of {rejected}",
		more:    recreate,
	},
	{
		code: "invalid", live: true, kinds: appliers, types: []failure.Type{failure.Invalid},
		message: "API server rejected {rejected}: {problems}",
		fixes:   []string{"fix {fields} of {rejected}{in file}, commit and push"},
	},
	{
		code: "invalid", live: true, kinds: appliers, types: []failure.Type{failure.Undecodable},
		message: "API server rejected {rejected}: {detail}",
		fixes:   []string{"fix {rejected}{in file}, commit and push"},
	},
	{
		code: "conflict", live: true, kinds: appliers, types: []failure.Type{failure.Conflict},
		when:    func(s Subject) bool { return s.failure.By == "" },
		message: "{rejected} was changed by another client meanwhile",
	},
	{
		code: "conflict", live: true, kinds: appliers, types: []failure.Type{failure.Conflict},
		message: "field manager {by} owns fields of {rejected}: {detail}",
		fixes:   []string{"remove the fields from {rejected}{in file}, or from what {by} applies"},
	},
	{
		code: "namespace-missing", kinds: appliers, types: []failure.Type{failure.NotFound},
		when:    func(s Subject) bool { return s.failure.Named.Kind == "Namespace" },
		message: "namespace {name} does not exist",
		fixes:   []string{"add the Namespace to the source, or name what applies it in .spec.dependsOn of {object}"},
	},
	{
		code: "health", kinds: appliers, types: []failure.Type{failure.Unhealthy},
		message: "{unhealthy}",
		more:    heal,
	},
	{
		code: "decryption", kinds: []string{"Kustomization"}, types: []failure.Type{failure.Encrypted},
		message: "{named} is encrypted with SOPS, and .spec.decryption is not set",
		fixes:   []string{"set .spec.decryption of {object} to provider sops and the Secret with the key"},
	},
	{
		code: "decryption", kinds: []string{"Kustomization"}, types: []failure.Type{failure.Undecryptable}, steps: []failure.Step{failure.Decrypt},
		when:    func(s Subject) bool { return decryptionSecret(s) != "" },
		message: "the keys in {decryption secret} do not decrypt the file: {detail}",
		fixes:   []string{"add the decryption key{to decryption secret}, or encrypt the file for the key that the cluster has (sops updatekeys)"},
	},
	{
		code: "decryption", kinds: []string{"Kustomization"}, steps: []failure.Step{failure.Decrypt},
		message: "decryption failed: {detail}",
		fixes:   []string{"add the decryption key{to decryption secret}, or encrypt the file for the key that the cluster has (sops updatekeys)"},
	},
	{
		code: "substitution", kinds: []string{"Kustomization"}, types: []failure.Type{failure.NoVariable}, steps: []failure.Step{failure.Substitute},
		message: "variable not set: {variable}",
		fixes:   []string{"set {variable} in .spec.postBuild of {object}, or give it a default: {default}"},
	},
	{
		code: "substitution", kinds: []string{"Kustomization"}, types: []failure.Type{failure.NotFound}, steps: []failure.Step{failure.Substitute},
		message: "{substituted} of .spec.postBuild.substituteFrom does not exist",
		fixes:   []string{"create it, or set optional: true on it in .spec.postBuild.substituteFrom of {object}"},
	},
	{
		code: "substitution", kinds: []string{"Kustomization"}, steps: []failure.Step{failure.Substitute},
		message: "post-build substitution failed: {detail}",
		fixes:   []string{"correct the variables of .spec.postBuild of {object}"},
	},
	{
		code: "build-path", kinds: []string{"Kustomization"}, reasons: []string{"ArtifactFailed"}, steps: []failure.Step{failure.Path},
		message: "the source has no path {path}, which .spec.path names",
		fixes:   []string{"push it, or correct .spec.path of {object}"},
	},
	{
		code: "build", kinds: []string{"Kustomization"}, reasons: []string{"BuildFailed"},
		message: "the manifests do not build: {detail}",
		fixes:   []string{"see it in a clone of the source: {build}"},
	},
}
