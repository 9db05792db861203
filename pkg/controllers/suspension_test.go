package controllers_test

import (
	"testing"

	"github.com/fluxkit/flux/pkg/controllers"
)

func TestSuspensionReason(t *testing.T) {
	t.Parallel()
	object := func(suspended bool, reason, by string) controllers.Object {
		annotations := map[string]any{"unrelated": "x"}
		for key, value := range map[string]string{controllers.SuspendReasonAnnotation: reason, controllers.SuspendedByAnnotation: by} {
			if value != "" {
				annotations[key] = value
			}
		}
		return controllers.Object{
			"kind":     "Kustomization",
			"metadata": map[string]any{"annotations": annotations},
			"spec":     map[string]any{"suspend": suspended},
		}
	}
	for _, test := range []struct {
		name   string
		object controllers.Object
		want   string
	}{
		{"both", object(true, "release freeze", "jane"), "release freeze (by jane)"},
		{"only the reason", object(true, "release freeze", ""), "release freeze"},
		{"only the user", object(true, "", "jane"), "by jane"},
		{"neither", object(true, "", ""), ""},
		{"resumed by other means", object(false, "release freeze", "jane"), ""},
	} {
		if got := controllers.SuspensionReason(test.object); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
