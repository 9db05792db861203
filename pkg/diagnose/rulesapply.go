package diagnose

import (
	"fmt"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// applyRules holds the rules for applied objects: errors of the API server, and errors of the
// build.
var applyRules = []rule{
	{
		code: "access-denied", kinds: []string{"Kustomization", "HelmRelease", "ImagePolicy", "ImageUpdateAutomation"}, reasons: []string{"AccessDenied"},
		message: func(s subject) string { return oneLine(s.failed.Message) },
		remedies: func(s subject) []string {
			return []string{"refer to an object in namespace " + s.namespace() + " in the spec of " + s.String() + ", or run " + s.kind.Controller + " without --no-cross-namespace-refs", s.again()}
		},
	},
	{
		code: "api-missing", located: true, kinds: appliers, types: []failure.Type{failure.NoMatch},
		message: func(s subject) string {
			return "the cluster does not serve " + strings.TrimSuffix(s.failure.Named.Kind+" in version "+s.failure.Version, " in version ") + s.rejection().usedIn()
		},
		remedies: func(s subject) []string { return append(s.rejection().serveIt(), s.again()) },
	},
	{
		code: "quota", kinds: appliers, types: []failure.Type{failure.Quota},
		message: func(s subject) string {
			return fmt.Sprintf("ResourceQuota %s exceeded by %s: %s", s.failure.By, s.rejection().rejected(), s.detail())
		},
		remedies: func(s subject) []string {
			return []string{fmt.Sprintf("raise ResourceQuota %s of namespace %s, or request less", s.failure.By, s.rejection().rejectedIn()), s.again()}
		},
	},
	{
		code: "limit-range", located: true, kinds: appliers, types: []failure.Type{failure.LimitRange},
		message: func(s subject) string {
			return fmt.Sprintf("a LimitRange of namespace %s does not allow %s: %s", s.rejection().rejectedIn(), s.rejection().rejected(), s.detail())
		},
		remedies: func(s subject) []string {
			return []string{fmt.Sprintf("change the resources of %s%s, or the LimitRange: kubectl -n %s describe limitranges", s.rejection().rejected(), s.rejection().inFile(), hint.Quote(s.rejection().rejectedIn())), s.again()}
		},
	},
	{
		code: "namespace-terminating", kinds: appliers, types: []failure.Type{failure.Terminating},
		message: func(s subject) string { return "namespace " + s.failure.Named.Name + " is being deleted" },
		remedies: func(s subject) []string {
			return []string{
				"wait until it is deleted; what it waits for is in its conditions: kubectl describe namespace " + hint.Operand(s.failure.Named.Name),
				"create it again, or remove what is in it from the source", s.again(),
			}
		},
	},
	{
		code: "admission", located: true, kinds: appliers, types: []failure.Type{failure.PodSecurity},
		message: func(s subject) string {
			return fmt.Sprintf("%s violates PodSecurity %s: %s", s.rejection().rejected(), s.failure.By, s.detail())
		},
		remedies: func(s subject) []string {
			return []string{fmt.Sprintf("change %s%s, or the label pod-security.kubernetes.io/enforce of namespace %s", s.rejection().rejected(), s.rejection().inFile(), s.rejection().rejectedIn()), s.again()}
		},
	},
	{
		code: "admission", located: true, kinds: appliers, types: []failure.Type{failure.Admission, failure.Forbidden, failure.PriorityClass, failure.ServiceAccount},
		message: func(s subject) string {
			if s.failure.By == "" {
				return "API server rejected " + s.rejection().rejected() + ": " + s.detail()
			}
			return fmt.Sprintf("%s rejected %s: %s", s.failure.By, s.rejection().rejected(), s.detail())
		},
		remedies: func(s subject) []string {
			fix := "change " + s.rejection().rejected() + s.rejection().inFile()
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
			return []string{"start the pods of the webhook; see its Service: kubectl describe validatingwebhookconfigurations,mutatingwebhookconfigurations", s.again()}
		},
	},
	{
		code: "permission", kinds: appliers, types: []failure.Type{failure.Unauthorized},
		message: func(s subject) string {
			return strings.TrimSpace(fmt.Sprintf("%s is forbidden to %s %s %s", s.rejection().user(), s.failure.Verb, s.failure.Resource, s.failure.Scope))
		},
		remedies: func(s subject) []string {
			return []string{fmt.Sprintf("grant %s the verb %q on %s with a RoleBinding or ClusterRoleBinding, or remove %s from the source",
				s.rejection().user(), s.failure.Verb, s.failure.Resource, s.rejection().rejected()), s.again()}
		},
	},
	{
		code: "immutable", located: true, kinds: appliers, types: []failure.Type{failure.Invalid},
		when: func(s subject) bool { return s.failure.Immutable() },
		message: func(s subject) string {
			return fmt.Sprintf("field is immutable: %s of %s", s.rejection().fields(), s.rejection().rejected())
		},
		remedies: func(s subject) []string { return append(s.rejection().recreate(), s.again()) },
	},
	{
		code: "invalid", located: true, kinds: appliers, types: []failure.Type{failure.Invalid},
		message: func(s subject) string {
			return "API server rejected " + s.rejection().rejected() + ": " + s.rejection().problems()
		},
		remedies: func(s subject) []string {
			return []string{fmt.Sprintf("fix %s of %s%s, commit and push", s.rejection().fields(), s.rejection().rejected(), s.rejection().inFile()), s.again()}
		},
	},
	{
		code: "invalid", located: true, kinds: appliers, types: []failure.Type{failure.Undecodable},
		message: func(s subject) string { return "API server rejected " + s.rejection().rejected() + ": " + s.detail() },
		remedies: func(s subject) []string {
			return []string{fmt.Sprintf("fix %s%s, commit and push", s.rejection().rejected(), s.rejection().inFile()), s.again()}
		},
	},
	{
		code: "conflict", located: true, kinds: appliers, types: []failure.Type{failure.Conflict},
		message: func(s subject) string {
			if s.failure.By == "" {
				return s.rejection().rejected() + " was changed by another client meanwhile"
			}
			return fmt.Sprintf("field manager %s owns fields of %s: %s", s.failure.By, s.rejection().rejected(), s.detail())
		},
		remedies: func(s subject) []string {
			if s.failure.By == "" {
				return []string{s.again()}
			}
			return []string{fmt.Sprintf("remove the fields from %s%s, or from what %s applies", s.rejection().rejected(), s.rejection().inFile(), s.failure.By), s.again()}
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
		message: func(s subject) string { return s.rejection().unhealthy() }, remedies: func(s subject) []string { return append(s.rejection().heal(), s.again()) },
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
			return []string{"see it in a clone of the source: " + hint.Command("flux build kustomization %s -n %s --path %s", s.name(), s.namespace(), orElse(s.text("spec.path"), ".")), s.again()}
		},
	},
}
