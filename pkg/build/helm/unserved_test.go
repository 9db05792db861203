package helm

import (
	"slices"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
)

// TestUnserved finds the API versions that templates check for, but no text that would be part of a printed command.
func TestUnserved(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{{ if .Capabilities.APIVersions.Has "a.io/v1" }}`:            "a.io/v1",
		`{{ if $.Capabilities.APIVersions.Has ("a.io/v1/Kind") }}`:    "a.io/v1/Kind",
		"{{ $caps.Has `a.io/v1` }}":                                   "a.io/v1",
		`{{ "a.io/v1" | .Capabilities.APIVersions.Has }}`:             "a.io/v1",
		`{{ has "a.io/v1" .Capabilities.APIVersions }}`:               "a.io/v1",
		`{{ has "a.io/v1" $.Capabilities.APIVersions }}`:              "a.io/v1",
		`{{ has "a.io/v1" .Values.list }}`:                            "",
		`{{ if .Capabilities.APIVersions.Has "apps/v1" }}`:            "",
		`{{ .Capabilities.APIVersions.Has "a$(touch x)" }}`:           "",
		"{{ .Capabilities.APIVersions.Has \"a\n b\" }}":               "",
		`{{ .Capabilities.APIVersions.Has (printf "%s/v1" "a.io") }}`: "",
	} {
		c := &chart.Chart{Metadata: &chart.Metadata{Name: "parent"}}
		below := &chart.Chart{Metadata: &chart.Metadata{Name: "child"}, Templates: []*common.File{{Name: "templates/a.yaml", Data: []byte(text)}}}
		c.AddDependency(below)
		caps := &common.Capabilities{APIVersions: common.VersionSet{"apps/v1"}}
		var expected []string
		if want != "" {
			expected = []string{want}
		}
		if got := unserved(c, common.Values{"Capabilities": caps}); !slices.Equal(got, expected) {
			t.Errorf("%s: %q, want %q", text, got, expected)
		}
	}
}
