package part

import "testing"

// TestCheckFeatureGates checks that unknown gates and values are errors that contain the name.
func TestCheckFeatureGates(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                   "",
		"RelaxedServiceNameValidation=false": "",
		"RelaxedServiceNameValidation=true,AllAlpha=false": "",
		"RelaxedServiceNames=true":                         `unknown feature gate "RelaxedServiceNames"`,
		"RelaxedServiceNameValidation=true,relaxed=true":   `unknown feature gate "relaxed"`,
		"RelaxedServiceNameValidation=true,":               `unknown feature gate ""`,
		"RelaxedServiceNameValidation":                     "missing bool value for RelaxedServiceNameValidation",
	} {
		got := ""
		if err := CheckFeatureGates(text); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
