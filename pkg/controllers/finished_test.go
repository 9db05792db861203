package controllers

import "testing"

func TestFinished(t *testing.T) {
	t.Parallel()
	object := func(generation, observed, condition int64, status, reason string, more ...any) Object {
		return Object{
			"metadata": map[string]any{"generation": generation},
			"status": map[string]any{"observedGeneration": observed, "conditions": append(more, map[string]any{
				"type": "Ready", "status": status, "reason": reason, "message": "m", "observedGeneration": condition,
			})},
		}
	}
	progressing := map[string]any{"type": "Reconciling", "status": "True", "reason": "Progressing"}
	retrying := map[string]any{"type": "Reconciling", "status": "True", "reason": "ProgressingWithRetry"}
	k, _ := FindKind("Kustomization")
	for name, c := range map[string]struct {
		object   Object
		finished bool
	}{
		"ready":                       {object(2, 2, 2, "True", "Succeeded"), true},
		"condition before the change": {object(2, 2, 1, "True", "Succeeded"), false},
		"ready before the change":     {object(2, 1, 1, "True", "Succeeded"), false},
		"failed":                      {object(2, 1, 2, "False", "BuildFailed"), true},
		"failed, to be retried":       {object(2, 1, 2, "False", "BuildFailed", retrying), true},
		"failed before":               {object(2, 1, 1, "False", "BuildFailed"), false},
		"progressing":                 {object(2, 2, 2, "True", "Succeeded", progressing), false},
		"unknown":                     {object(2, 2, 2, "Unknown", "Progressing"), false},
		"waiting for another object":  {object(1, 1, 1, "False", "DependencyNotReady"), false},
		"no status":                   {Object{"metadata": map[string]any{"generation": int64(1)}}, false},
	} {
		if got := k.Finished(c.object); got != c.finished {
			t.Errorf("%s: finished is %v", name, got)
		}
	}
	hr, _ := FindKind("HelmRelease")
	action := func(name string) map[string]any {
		return map[string]any{"type": "Reconciling", "status": "True", "reason": "Progressing", "message": "Running '" + name + "' action with timeout of 5m0s"}
	}
	for name, c := range map[string]struct {
		kind     Kind
		object   Object
		finished bool
	}{
		"install failed":                   {hr, object(1, -1, 1, "False", "InstallFailed", action("install")), true},
		"upgrade failed":                   {hr, object(2, 1, 2, "False", "UpgradeFailed", action("upgrade")), true},
		"install in progress":              {hr, object(1, -1, 1, "Unknown", "Progressing", action("install")), false},
		"upgrade after a change":           {hr, object(2, 1, 1, "False", "UpgradeFailed", action("upgrade")), false},
		"remediation in progress":          {hr, object(1, -1, 1, "False", "InstallFailed", action("uninstall")), false},
		"next attempt in progress":         {hr, object(1, -1, 1, "False", "InstallFailed", progressing), false},
		"kind without actions in progress": {k, object(1, -1, 1, "False", "BuildFailed", action("install")), false},
	} {
		if got := c.kind.Finished(c.object); got != c.finished {
			t.Errorf("%s: finished is %v", name, got)
		}
	}
	alert, _ := FindKind("Alert")
	if !alert.Finished(Object{}) {
		t.Error("an Alert is not finished, although it never has conditions")
	}
}

// TestIsReady has conditions of earlier generations, and objects that record the
// generation in one place only.
func TestIsReady(t *testing.T) {
	t.Parallel()
	object := func(status string, generation int64, observed, condition any) Object {
		ready := map[string]any{"type": "Ready", "status": status}
		state := map[string]any{"conditions": []any{ready}}
		if observed != nil {
			state["observedGeneration"] = observed
		}
		if condition != nil {
			ready["observedGeneration"] = condition
		}
		return Object{"metadata": map[string]any{"generation": generation}, "status": state}
	}
	k, _ := FindKind("Kustomization")
	for name, c := range map[string]struct {
		object Object
		ready  bool
	}{
		"both current":                 {object("True", 2, int64(2), int64(2)), true},
		"both old":                     {object("True", 2, int64(1), int64(1)), false},
		"condition old":                {object("True", 2, int64(2), int64(1)), false},
		"status old":                   {object("True", 2, int64(1), int64(2)), false},
		"condition without generation": {object("True", 2, int64(2), nil), true},
		"condition with generation 0":  {object("True", 2, int64(2), int64(0)), true},
		"only the condition":           {object("True", 2, nil, int64(2)), true},
		"only an old condition":        {object("True", 2, nil, int64(1)), false},
		"no generation anywhere":       {object("True", 2, nil, nil), true},
		"failed":                       {object("False", 2, int64(2), int64(2)), false},
		"progressing":                  {object("Unknown", 2, int64(2), int64(2)), false},
		"no condition":                 {Object{"status": map[string]any{"observedGeneration": int64(1)}}, false},
	} {
		if got := k.IsReady(c.object); got != c.ready {
			t.Errorf("%s: ready is %v", name, got)
		}
	}
}

func TestSettled(t *testing.T) {
	t.Parallel()
	handled := func(conditions ...any) Object {
		return Object{"status": map[string]any{"lastHandledReconcileAt": "now", "conditions": conditions}}
	}
	k, _ := FindKind("GitRepository")
	hr, _ := FindKind("HelmRelease")
	installing := map[string]any{"type": "Reconciling", "status": "True", "reason": "Progressing", "message": "Running 'install' action with timeout of 5m0s"}
	if !hr.Settled(handled(installing, map[string]any{"type": "Ready", "status": "False", "reason": "InstallFailed"}), "now") {
		t.Error("a release that could not be installed is not settled")
	}
	if hr.Settled(handled(installing, map[string]any{"type": "Ready", "status": "Unknown", "reason": "Progressing"}), "now") {
		t.Error("a release is settled while it is installed")
	}
	for name, c := range map[string]struct {
		object  Object
		settled bool
	}{
		"ready":        {handled(map[string]any{"type": "Ready", "status": "True", "reason": "Succeeded"}), true},
		"failed":       {handled(map[string]any{"type": "Ready", "status": "False", "reason": "GitOperationFailed"}), true},
		"progressing":  {handled(map[string]any{"type": "Ready", "status": "Unknown", "reason": "Progressing"}), false},
		"no condition": {handled(), false},
		"not handled":  {Object{"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Succeeded"}}}}, false},
	} {
		if got := k.Settled(c.object, "now"); got != c.settled {
			t.Errorf("%s: settled is %v", name, got)
		}
	}
}
