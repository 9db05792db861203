package diagnose

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// releaseRules holds the rules for Helm releases.
var releaseRules = []rule{
	{
		code: "values-missing", kinds: []string{"HelmRelease"}, types: []failure.Type{failure.NoValues},
		message: func(s subject) string {
			n := s.failure.Named
			if s.failure.Name != "" && s.failure.Detail != "" && !notFound(s.failure.Detail) {
				return fmt.Sprintf("key %s missing in %s of .spec.valuesFrom: %s", s.failure.Name, n, s.detail())
			}
			return fmt.Sprintf("values missing: %s of .spec.valuesFrom: %s", n, s.detail())
		},
		remedies: func(s subject) []string {
			return []string{fmt.Sprintf("create %s, or set optional: true on it in .spec.valuesFrom of %s", s.failure.Named, s), s.again()}
		},
	},
	{
		code: "template", kinds: []string{"HelmRelease"}, types: []failure.Type{failure.Template, failure.Schema},
		message: withDetail("the chart does not render with these values"),
		remedies: func(s subject) []string {
			return []string{"correct .spec.values or .spec.valuesFrom of " + s.String() + ", commit and push", s.again()}
		},
	},
	{
		code: "release-locked", kinds: []string{"HelmRelease"}, types: []failure.Type{failure.Locked},
		message: fixed("an operation on the Helm release is in progress, or was interrupted"),
		remedies: func(s subject) []string {
			return []string{
				"if another client operates on the release, wait until it has finished" + s.rejection().history(),
				// helm-controller recovers a release in a pending state.
				s.command("reconcile"),
			}
		},
	},
	{
		code: "release-ownership", kinds: []string{"HelmRelease"}, types: []failure.Type{failure.Owned},
		message: func(s subject) string {
			return fmt.Sprintf("%s exists, and belongs to another Helm release or to none: %s", s.failure.Named, s.detail())
		},
		remedies: func(s subject) []string {
			remedies := []string{fmt.Sprintf("rename %s in the chart, or add the label and the annotations that the message names to it", s.failure.Named)}
			for _, action := range []string{"spec.install", "spec.upgrade"} {
				if field := action + ".disableTakeOwnership"; s.text(field) == "true" {
					remedies = append(remedies, fmt.Sprintf("or remove .%s of %s, so that the release takes it over", field, s))
				}
			}
			return append(remedies, s.again())
		},
	},
	{
		code: "chart-version", kinds: []string{"HelmRelease"}, types: []failure.Type{failure.NoChart}, upstream: true,
		message: func(s subject) string { return "chart not found: " + s.detail() },
		remedies: func(s subject) []string {
			return []string{"correct .spec.chart.spec.chart and .spec.chart.spec.version of " + s.String() + ", or publish the chart", s.again()}
		},
	},
}

// history returns the command that prints the revisions of a release, with a
// leading colon, or "" if the release name is unknown.
func (s rejection) history() string {
	target, err := build.TargetOf(&unstructured.Unstructured{Object: s.object})
	if err != nil {
		return ""
	}
	return hint.Command(": helm history %s -n %s", target.Name, target.Storage)
}

// notFound reports whether a detail is a NotFound error of the API server.
func notFound(detail string) bool { return failure.Parse(detail).Type == failure.NotFound }

// imageRules holds the rules for image policies.
var imageRules = []rule{
	{
		code: "image-policy", kinds: []string{"ImagePolicy"}, reasons: []string{"InvalidPolicy"},
		message: withDetail("the policy is invalid"),
		remedies: func(s subject) []string {
			return []string{"correct .spec.policy or .spec.filterTags of " + s.String(), s.again()}
		},
	},
	{
		code: "image-none", kinds: []string{"ImagePolicy"}, types: []failure.Type{failure.NoTag},
		message: func(s subject) string { return "no tag matches the policy: " + s.detail() },
		remedies: func(s subject) []string {
			return []string{"correct .spec.policy or .spec.filterTags of " + s.String() + ", or push a tag that matches", hint.Command("flux get image repository -n %s", s.namespace())}
		},
	},
}
