package controllers_test

import (
	"testing"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
)

func TestSuspensionReason(t *testing.T) {
	t.Parallel()
	object := func(suspended bool, reason, by string, until ...string) controllers.Object {
		annotations := map[string]any{"unrelated": "x"}
		for key, value := range map[string]string{controllers.SuspendReasonAnnotation: reason, controllers.SuspendedByAnnotation: by} {
			if value != "" {
				annotations[key] = value
			}
		}
		for _, at := range until {
			annotations[controllers.SuspendedUntilAnnotation] = at
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
		{"all", object(true, "release freeze", "jane", "2026-12-01T08:00:00Z"), "release freeze (by jane, until 2026-12-01T08:00:00Z)"},
		{"only the time", object(true, "", "", "2026-12-01T08:00:00Z"), "until 2026-12-01T08:00:00Z"},
		{"resumed by other means", object(false, "release freeze", "jane"), ""},
	} {
		if got := controllers.SuspensionReason(test.object); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestExpired(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	for until, want := range map[string]struct{ expired, invalid bool }{
		"":                          {},
		"2026-12-01T08:00:00Z":      {expired: true},
		"2026-12-01T07:59:59Z":      {expired: true},
		"2026-12-01T08:00:01Z":      {},
		"2026-12-01T09:00:00+02:00": {expired: true},
		"2026-12-01T09:00:00-02:00": {},
		"2026-11-01":                {invalid: true},
		"tomorrow":                  {invalid: true},
	} {
		for _, suspended := range []bool{true, false} {
			o := controllers.Object{
				"metadata": map[string]any{"annotations": map[string]any{controllers.SuspendedUntilAnnotation: until}}, "spec": map[string]any{"suspend": suspended},
			}
			got, err := controllers.Suspension{Field: controllers.Path{"spec.suspend"}}.Expired(o, now)
			if got != (want.expired && suspended) || (err != nil) != (want.invalid && suspended) {
				t.Errorf("%q, suspended %t: %t, %v", until, suspended, got, err)
			}
		}
	}
}

func TestReconciled(t *testing.T) {
	t.Parallel()
	object := func(suspended bool, generation, observed, condition int64) controllers.Object {
		return controllers.Object{
			"kind": "Kustomization", "metadata": map[string]any{"generation": generation}, "spec": map[string]any{"suspend": suspended},
			"status": map[string]any{"observedGeneration": observed, "conditions": []any{
				map[string]any{"type": "Ready", "status": "True", "observedGeneration": condition},
			}},
		}
	}
	for name, c := range map[string]struct {
		object controllers.Object
		want   bool
	}{
		"reconciled":                              {object(false, 2, 2, 2), true},
		"changed":                                 {object(false, 3, 2, 2), false},
		"failed after a change":                   {object(false, 3, 2, 3), false},
		"suspended, not observed":                 {object(true, 3, 2, 2), true},
		"suspended and observed":                  {object(true, 3, 3, 2), true},
		"changed while suspended":                 {object(true, 4, 4, 2), false},
		"failed before the suspension":            {object(true, 4, 2, 3), false},
		"suspended before the first":              {controllers.Object{"kind": "Kustomization", "metadata": map[string]any{"generation": int64(1)}, "spec": map[string]any{"suspend": true}}, false},
		"condition without generation, suspended": {object(true, 3, 2, 0), false},
	} {
		if got := controllers.Reconciled(c.object); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
