package rules

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// releaseRules holds the rules for Helm releases.
var releaseRules = []rule{
	{
		code: "values-missing", kinds: []string{"HelmRelease"}, types: []failure.Type{failure.NoValues}, when: missesKey,
		message: "{named} (.spec.valuesFrom) has no key {variable}",
		fixes:   []string{"add key {variable} to {named}, or correct valuesKey in .spec.valuesFrom of {object}"},
	},
	{
		code: "values-invalid", kinds: []string{"HelmRelease"}, types: []failure.Type{failure.NoValues}, when: readsKey,
		message: "invalid value in key {variable} of {named} (.spec.valuesFrom): {detail}",
		fixes:   []string{"correct the value of key {variable} in {named}, or targetPath in .spec.valuesFrom of {object}"},
	},
	{
		code: "values-missing", kinds: []string{"HelmRelease"}, types: []failure.Type{failure.NoValues},
		message: "cannot read values from {named} (.spec.valuesFrom): {detail}",
		fixes:   []string{"create {named}, or set optional: true on it in .spec.valuesFrom of {object}"},
	},
	{
		code: "post-renderer", kinds: []string{"HelmRelease"}, steps: []failure.Step{failure.PostRender},
		message: "post-renderer failed: {detail}",
		fixes:   []string{"correct .spec.postRenderers of {object}, commit and push"},
	},
	{
		code: "chart-kube-version", kinds: []string{"HelmRelease"}, types: []failure.Type{failure.KubeVersion},
		message: "the chart requires Kubernetes {detail}, and the cluster runs {version}",
		fixes:   []string{"select a version of the chart that supports Kubernetes {version}, or upgrade the cluster"},
	},
	{
		code: "template", kinds: []string{"HelmRelease"}, types: []failure.Type{failure.Template}, when: func(s Subject) bool { return s.failure.Name != "" },
		message: "template {variable} of the chart does not render to valid YAML with these values: {detail}",
		fixes:   []string{"correct .spec.values or .spec.valuesFrom of {object}, or template {variable} of the chart"},
	},
	{
		code: "template", kinds: []string{"HelmRelease"}, types: []failure.Type{failure.Template, failure.Schema},
		message: "the chart does not render with these values: {detail}",
		fixes:   []string{"correct .spec.values or .spec.valuesFrom of {object}, commit and push"},
	},
	{
		code: "release-locked", kinds: []string{"HelmRelease"}, types: []failure.Type{failure.Locked},
		message: "an operation on the Helm release is in progress, or was interrupted",
		fixes:   []string{"if another client operates on the release, wait until it has finished{helm history}"},
		retry:   "{reconcile}", // helm-controller recovers a release in a pending state
	},
	{
		code: "release-ownership", kinds: []string{"HelmRelease"}, types: []failure.Type{failure.Owned},
		message: "{named} exists and does not belong to this Helm release: {detail}",
		fixes:   []string{"rename {named} in the chart, or add the label and annotations from the message to it"},
		more:    takeOver,
	},
	{
		code: "chart-version", kinds: []string{"HelmRelease"}, types: []failure.Type{failure.NoChart}, upstream: true,
		message: "chart not found: {detail}",
		fixes:   []string{"correct .spec.chart.spec.chart and .spec.chart.spec.version of {object}, or publish the chart"},
	},
}

// missesKey reports whether a key is missing in a ConfigMap or Secret that exists.
func missesKey(s Subject) bool { return readsKey(s) && s.failure.Detail == "key not found" }

// readsKey reports whether the ConfigMap or Secret with values exists and may be read.
func readsKey(s Subject) bool {
	typ := failure.Parse(s.failure.Detail).Type
	return s.failure.Name != "" && s.failure.Detail != "" && typ != failure.NotFound && typ != failure.Unauthorized
}

// takeOver returns the fixes for a release that is not allowed to take over objects.
func takeOver(s Subject) []string {
	var fixes []string
	for _, action := range []string{"spec.install", "spec.upgrade"} {
		if field := action + ".disableTakeOwnership"; s.Text(field) == "true" {
			fixes = append(fixes, "or remove ."+field+" of "+s.String()+", so that the release takes it over")
		}
	}
	return fixes
}

// helmHistory returns the command that prints the revisions of a release, with a leading colon, or "" if the release name is
// unknown.
func helmHistory(s Subject) string {
	target, err := charts.TargetOf(&unstructured.Unstructured{Object: s.Object})
	if err != nil {
		return ""
	}
	return hint.Command(": helm history %s -n %s", target.Name, target.Storage)
}

// imageRules holds the rules for image policies.
var imageRules = []rule{
	{
		code: "image-policy", kinds: []string{"ImagePolicy"}, reasons: []string{"InvalidPolicy"},
		message: "the policy is invalid: {detail}",
		fixes:   []string{"correct .spec.policy or .spec.filterTags of {object}"},
	},
	{
		code: "image-none", kinds: []string{"ImagePolicy"}, types: []failure.Type{failure.NoTag},
		message: "no tag matches the policy: {detail}",
		fixes:   []string{"correct .spec.policy or .spec.filterTags of {object}, or push a tag that matches"},
		retry:   "{image repositories}",
	},
}
