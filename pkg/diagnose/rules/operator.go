package rules

import (
	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// operatorRules holds the rules for the kinds of flux-operator. Failures that all controllers report, such as rejected objects
// and unreachable servers, have common rules.
var operatorRules = []rule{
	{
		code: "template", kinds: []string{controllers.ResourceSet}, steps: []failure.Step{failure.Fill}, types: []failure.Type{failure.NoVariable},
		message: "{template} uses input {variable}, which is not set",
		fixes:   []string{"add {variable} to the inputs, or correct {template} of {object}"},
	},
	{
		code: "template", kinds: []string{controllers.ResourceSet}, steps: []failure.Step{failure.Fill},
		message: "{template} cannot be rendered: {text}",
		fixes:   []string{"correct {template} of {object}"},
	},
	{
		code: "expression", kinds: []string{controllers.ResourceSet}, reasons: []string{"InvalidCELExpression"},
		message: "invalid readyExpr in .spec.dependsOn: {detail}",
		fixes:   []string{"correct readyExpr in .spec.dependsOn of {object}"},
	},
	{
		code: "dependency-missing", kinds: []string{controllers.ResourceSet}, reasons: []string{"DependencyNotReady"}, when: func(s Subject) bool { return neededObject(s, "not found") != "" },
		message: "{needed} in .spec.dependsOn does not exist",
		fixes:   []string{"create it, or correct .spec.dependsOn of {object}"},
	},
	{
		code: "dependency", kinds: []string{controllers.ResourceSet}, reasons: []string{"DependencyNotReady"}, when: func(s Subject) bool { return neededObject(s, "") != "" },
		message: "{needed} in .spec.dependsOn is not ready",
		fixes:   []string{"find out why {needed} is not ready, or correct .spec.dependsOn of {object}"},
	},
	{
		code: "copy", kinds: []string{controllers.ResourceSet}, steps: []failure.Step{failure.Copy}, types: []failure.Type{failure.NotFound},
		message: "it copies {copied}, which does not exist",
		fixes:   []string{"create {copied}, or correct the annotation " + controllers.CopyAnnotation + " in {object}"},
	},
	{
		code: "distribution", kinds: []string{controllers.FluxInstance}, types: []failure.Type{failure.NoRevision}, reasons: []string{"BuildFailed"},
		message: "no Flux version matches .spec.distribution.version {distribution}",
		fixes:   []string{"correct .spec.distribution.version of {object}, or upgrade flux-operator"},
	},
	{
		code: "distribution", kinds: []string{controllers.FluxInstance}, steps: []failure.Step{failure.Pull},
		message: "cannot pull .spec.distribution.artifact: {detail}",
		fixes:   []string{"correct .spec.distribution.artifact and artifactPullSecret of {object}, or make the registry reachable from flux-operator"},
	},
	{
		code: "distribution", kinds: []string{controllers.FluxInstance}, reasons: []string{"BuildFailed"},
		message: "the Flux manifests do not build: {text}",
		fixes:   []string{"correct .spec.kustomize.patches and .spec.distribution of {object}"},
	},
}

// rendered matches the field that flux-operator could not render.
var rendered = lazy.Regexp(`^build failed: (?:step ("[^"]*"): )?failed to build (resources(?:\[\d+\])?): `)

// templateOf returns the field of a ResourceSet that could not be rendered.
func templateOf(s Subject) string {
	m := rendered().FindStringSubmatch(s.failed.Message)
	switch {
	case m == nil:
		return ".spec"
	case m[2] == "resources":
		m[2] = "resourcesTemplate"
	}
	if m[1] != "" {
		return m[2] + " of step " + m[1] + " in .spec.steps"
	}
	return ".spec." + m[2]
}

// awaitedBy matches the object that a ResourceSet waits for: its API version, kind, namespace unless it is cluster-scoped, name
// and problem.
var awaitedBy = lazy.Regexp(`dependency (?:[a-z0-9.-]+/)?v[a-z0-9]+/([A-Z][A-Za-z0-9]*/\S+) (not found|not ready)`)

// neededObject returns the object that a ResourceSet waits for if the object has the given problem; "" means any problem.
func neededObject(s Subject, problem string) string {
	m := awaitedBy().FindStringSubmatch(s.failed.Message)
	if m == nil || problem != "" && problem != m[2] {
		return ""
	}
	return m[1]
}

// copiedObject returns the object that a ResourceSet copies.
func copiedObject(s Subject) string {
	return s.failure.Object.Kind + "/" + s.failure.Object.Namespace + "/" + s.failure.Object.Name
}
