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
	for _, k := range controllers.Known {
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
		code: "kubeconfig", kinds: appliers, steps: []failure.Step{failure.KubeConfig}, types: []failure.Type{""},
		message: "the kubeconfig in {secret} is invalid: {detail}",
		fixes:   []string{"correct the kubeconfig in {secret} (.spec.kubeConfig of {object})"},
	},
	{
		code: "artifact-unreachable", kinds: appliers, steps: []failure.Step{failure.Download}, types: []failure.Type{failure.Unreachable, failure.TimedOut},
		message: "{controller} cannot download the artifact of its source from {address}: {detail}",
		more:    serveArtifacts,
	},
	{
		code: "remote-cluster", kinds: appliers, types: []failure.Type{failure.Unreachable, failure.TimedOut, failure.Untrusted, failure.Expired},
		when:    func(s Subject) bool { return kubeConfig(s) != "" },
		message: "cannot reach the API server in the kubeconfig of {kubeconfig}: {detail}",
		fixes:   []string{"correct the server in {kubeconfig} (.spec.kubeConfig of {object}), or make it reachable from {controller}"},
	},
	{
		code: "api-missing", live: true, kinds: appliers, types: []failure.Type{failure.NoMatch},
		message: "the cluster does not serve {api}",
		more:    serve,
	},
	{
		code: "quota", live: true, kinds: appliers, types: []failure.Type{failure.Quota}, when: unspecified,
		message: "ResourceQuota {by} requires fields that {rejected} does not set: {detail}",
		fixes:   []string{"set these requests and limits in {rejected}{in file}, or add a LimitRange with defaults to namespace {rejected namespace}"},
	},
	{
		code: "quota", kinds: appliers, types: []failure.Type{failure.Quota},
		message: "ResourceQuota {by} exceeded by {rejected}: {detail}",
		fixes:   []string{"raise ResourceQuota {by} of namespace {rejected namespace}, or reduce the requests of {rejected}"},
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
			"wait until it is deleted; its conditions show what blocks the deletion: kubectl describe namespace {operand}",
			"recreate it, or remove its objects from the source",
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
		fixes:   []string{"start the webhook's pods; to find its Service, run: kubectl describe validatingwebhookconfigurations,mutatingwebhookconfigurations"},
	},
	{
		code: "account-missing", live: true, kinds: appliers, types: []failure.Type{failure.Unauthorized},
		when:    func(s Subject) bool { return s.Live.NoAccount },
		message: "{user} in .spec.serviceAccountName does not exist",
		fixes:   []string{"create {user} with a RoleBinding, or correct .spec.serviceAccountName of {object}"},
	},
	{
		code: "permission", kinds: appliers, types: []failure.Type{failure.Unauthorized},
		when:    func(s Subject) bool { return deniedUser(s) == s.Kind.Controller },
		message: "{user} is forbidden to {verb} {resource} {scope}",
		fixes: []string{
			"restore the ClusterRoleBinding of the controllers, with the flags of the original installation: flux install",
			"or, if the controllers must not have this permission, set .spec.serviceAccountName of {object}",
		},
	},
	{
		code: "permission", live: true, kinds: appliers, types: []failure.Type{failure.Unauthorized}, steps: []failure.Step{failure.Apply, failure.Unset},
		message: "{user} is forbidden to {verb} {resource} {scope}",
		fixes:   []string{`grant {user} the verb "{verb}" on {resource} with a RoleBinding or ClusterRoleBinding, or remove {rejected} from the source`},
	},
	{
		code: "permission", live: true, kinds: appliers, types: []failure.Type{failure.Unauthorized},
		message: "{user} is forbidden to {verb} {resource} {scope}",
		fixes:   []string{`grant {user} the verb "{verb}" on {resource} with a RoleBinding or ClusterRoleBinding`},
	},
	{
		code: "immutable", live: true, kinds: appliers, types: []failure.Type{failure.Invalid},
		when:    func(s Subject) bool { return s.failure.Immutable() },
		message: "field is immutable: {fields} of {rejected}",
		more:    recreate,
	},
	{
		code: "too-large", live: true, kinds: appliers, types: []failure.Type{failure.TooLarge},
		message: "{rejected} is larger than the API server accepts: {detail}",
		fixes:   []string{"split {rejected}{in file} into smaller objects"},
	},
	{
		code: "precondition", live: true, kinds: appliers, types: []failure.Type{failure.Precondition},
		message: "the manifest of {rejected} sets metadata.uid or metadata.resourceVersion: {detail}",
		fixes:   []string{"remove metadata.uid and metadata.resourceVersion from {rejected}{in file}"},
	},
	{
		code: "namespace-unset", live: true, kinds: appliers, steps: []failure.Step{failure.Unset},
		message: "{rejected} has no namespace, or the cluster does not serve its kind",
		fixes:   []string{"set metadata.namespace of {rejected}{in file}, or .spec.targetNamespace of {object}"},
	},
	{
		code: "api-missing", live: true, kinds: appliers, types: []failure.Type{failure.Unserved},
		message: "the cluster does not serve the kind of {rejected}",
		fixes:   []string{"install the CRD of {rejected} again"},
	},
	{
		code: "invalid", kinds: appliers, types: []failure.Type{failure.Invalid}, when: func(s Subject) bool { return commonMetadata(s) != "" },
		message: "API server rejected {rejected}: {problems}",
		fixes:   []string{"correct {common metadata} of {object}"},
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
		message: "another client changed {rejected} at the same time",
	},
	{
		code: "conflict", live: true, kinds: appliers, types: []failure.Type{failure.Conflict},
		message: "field manager {by} owns fields of {rejected}: {detail}",
		fixes:   []string{"remove the fields from {rejected}{in file}, or from the object that {by} applies"},
	},
	{
		code: "namespace-missing", kinds: []string{"HelmRelease"}, types: []failure.Type{failure.NotFound},
		when: func(s Subject) bool {
			return namesNamespace(s) && s.Text("spec.storageNamespace") == s.failure.Named.Name
		},
		message: "namespace {name} in .spec.storageNamespace does not exist",
		fixes:   []string{"create the namespace, or correct .spec.storageNamespace of {object}"},
	},
	{
		code: "namespace-missing", kinds: []string{"HelmRelease"}, types: []failure.Type{failure.NotFound}, when: namesNamespace,
		message: "namespace {name} does not exist",
		fixes:   []string{"set .spec.install.createNamespace of {object} to true, or add the Namespace to the source"},
	},
	{
		code: "namespace-missing", kinds: appliers, types: []failure.Type{failure.NotFound},
		when:    namesNamespace,
		message: "namespace {name} does not exist",
		fixes:   []string{"add the Namespace to the source, or add the Kustomization or HelmRelease that applies it to .spec.dependsOn of {object}"},
	},
	{
		code: "health", kinds: appliers, types: []failure.Type{failure.Unhealthy},
		message: "{unhealthy}",
		more:    heal,
	},
}
