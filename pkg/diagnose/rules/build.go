package rules

import (
	"strings"

	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// buildRules holds the rules for the build of a Kustomization: decryption, substitution, and kustomize.
var buildRules = []rule{
	{
		code: "decryption", kinds: []string{"Kustomization"}, types: []failure.Type{failure.Encrypted},
		message: "{named} is encrypted with SOPS, and .spec.decryption is not set",
		fixes:   []string{"set .spec.decryption of {object} to provider sops and the Secret with the key"},
	},
	{
		code: "decryption", kinds: []string{"Kustomization"}, types: []failure.Type{failure.Undecryptable}, steps: []failure.Step{failure.Decrypt},
		when:    func(s Subject) bool { return decryptionSecret(s) != "" },
		message: "the keys in {decryption secret} do not decrypt the file: {detail}",
		fixes:   []string{"add the decryption key{to decryption secret}, or re-encrypt the file for the cluster's key (sops updatekeys)"},
	},
	{
		code: "decryption", kinds: []string{"Kustomization"}, steps: []failure.Step{failure.Decrypt},
		message: "decryption failed: {detail}",
		fixes:   []string{"add the decryption key{to decryption secret}, or re-encrypt the file for the cluster's key (sops updatekeys)"},
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
		code: "build-path", live: true, kinds: []string{"Kustomization"}, steps: []failure.Step{failure.Path}, when: func(s Subject) bool { return s.Live.Ignored != "" },
		message: "path {path} is not in the artifact of the source: {ignored} excludes it",
		fixes:   []string{"correct {ignored}, or .spec.path of {object}"},
	},
	{
		code: "build-path", live: true, kinds: []string{"Kustomization"}, reasons: []string{"ArtifactFailed"}, steps: []failure.Step{failure.Path},
		message: ".spec.path {path} does not exist in the source",
		fixes:   []string{"add {path} to the source, or correct .spec.path of {object}"},
	},
	{
		code: "build-path", kinds: []string{"Kustomization"}, types: []failure.Type{failure.NotDirectory},
		message: ".spec.path {path} is a file",
		fixes:   []string{"set .spec.path of {object} to the directory with the manifests"},
	},
	{
		code: "build", kinds: []string{"Kustomization"}, types: []failure.Type{failure.NoEntry}, when: func(s Subject) bool { return s.failure.Kustomization() != "" },
		message: "{kustomization file} lists {variable}, which does not exist",
		fixes:   []string{"add {variable}, or remove it from {kustomization file}, commit and push"},
	},
	{
		code: "build", kinds: []string{"Kustomization"}, types: []failure.Type{failure.NoEntry},
		message: "a kustomization.yaml below {path} lists {entry}, which does not exist",
		fixes:   []string{"add {entry}, or remove it from the kustomization.yaml, commit and push"},
	},
	{
		code: "build", kinds: []string{"Kustomization"}, types: []failure.Type{failure.NoBase},
		message: "the remote base {address} cannot be loaded: {detail}",
		fixes:   []string{"make {address} reachable from kustomize-controller, or copy its manifests into the source"},
	},
	{
		code: "build", kinds: []string{"Kustomization"}, types: []failure.Type{failure.Malformed},
		message: "{file} is not valid YAML: {detail}",
		fixes:   []string{"correct {file}, commit and push"},
	},
	{
		code: "build", kinds: []string{"Kustomization"}, types: []failure.Type{failure.NoTarget},
		message: "a patch has no target: the build contains no {named}",
		fixes:   []string{"correct the target of the patch in .spec.patches of {object} or in a kustomization.yaml below {path}"},
	},
	{
		code: "build", kinds: []string{"Kustomization"}, types: []failure.Type{failure.SameID}, when: func(s Subject) bool { return strings.HasPrefix(s.failure.Text, "namespace transformation") },
		message: "two objects become {named} in namespace {target namespace}",
		fixes:   []string{"rename one of them, or correct the namespace in .spec.targetNamespace of {object} or kustomization.yaml"},
	},
	{
		code: "build", kinds: []string{"Kustomization"}, types: []failure.Type{failure.SameID},
		message: "the build contains {named} twice",
		fixes:   []string{"remove or rename one of them", "reproduce the error in a clone of the source: {build}"},
	},
	{
		code: "build", kinds: []string{"Kustomization"}, types: []failure.Type{failure.Patch},
		message: "a JSON patch does not apply: {detail}",
		fixes:   []string{"correct the patch in .spec.patches of {object} or in a kustomization.yaml below {path}"},
	},
	{
		code: "build", kinds: []string{"Kustomization"}, types: []failure.Type{failure.Outside},
		message: "a kustomization.yaml below {path} lists {variable}, which is outside the source",
		fixes:   []string{"copy {variable} into the source, and correct the entry"},
	},
	{
		code: "build", kinds: []string{"Kustomization"}, types: []failure.Type{failure.Incomplete}, when: func(s Subject) bool { return s.failure.Address != "" },
		message: "{file} contains a manifest without metadata.name",
		fixes:   []string{"set metadata.name in {file}, commit and push"},
	},
	{
		code: "build", kinds: []string{"Kustomization"}, types: []failure.Type{failure.Incomplete},
		message: "a manifest has no apiVersion, kind or metadata.name: {detail}",
		fixes:   []string{"complete the manifest below {path}, or exclude the file with .spec.ignore of the source"},
	},
	{
		code: "build", kinds: []string{"Kustomization"}, types: []failure.Type{failure.Recursion},
		message: "the kustomization.yaml in {file} includes itself",
		fixes:   []string{"remove the entry that includes {file} from the kustomization.yaml"},
	},
	{
		code: "build", kinds: []string{"Kustomization"}, types: []failure.Type{failure.Unsupported},
		message: "a kustomization.yaml below {path} uses helmCharts, which Flux does not support",
		fixes:   []string{"replace helmCharts with a HelmRelease"},
	},
	{
		code: "build", kinds: []string{"Kustomization"}, reasons: []string{"BuildFailed"}, types: []failure.Type{failure.Template},
		message: "the kustomization.yaml in {path} is not valid YAML: {detail}",
		fixes:   []string{"correct the kustomization.yaml, commit and push"},
	},
	{
		code: "build", kinds: []string{"Kustomization"}, reasons: []string{"BuildFailed"},
		message: "the manifests do not build: {detail}",
		fixes:   []string{"reproduce the error in a clone of the source: {build}"},
	},
}

// expressionRules holds the rules for CEL expressions.
var expressionRules = []rule{
	{
		code: "expression", kinds: appliers, reasons: []string{"InvalidCELExpression"}, types: []failure.Type{failure.Expression},
		message: "invalid readyExpr for dependency {name}: {detail}",
		fixes:   []string{"correct readyExpr in .spec.dependsOn of {object}"},
	},
	{
		code: "expression", kinds: appliers, reasons: []string{"InvalidCELExpression"},
		message: "invalid CEL expression: {detail}",
		fixes:   []string{"correct .spec.healthCheckExprs of {object}"},
	},
	{
		code: "dependency-expression", kinds: appliers, reasons: []string{"DependencyNotReady"}, types: []failure.Type{failure.Expression},
		message: "the readyExpr for {dependency} in .spec.dependsOn is false",
		fixes:   []string{"correct {dependency}, or readyExpr in .spec.dependsOn of {object}"},
	},
}
