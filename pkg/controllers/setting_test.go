package controllers_test

import (
	"testing"

	"github.com/fluxkit/flux/pkg/controllers"
)

func TestHasSetting(t *testing.T) {
	t.Parallel()
	const key = "kustomize.toolkit.fluxcd.io/reconcile"
	object := func(at, value string) controllers.Object {
		return controllers.Object{"metadata": map[string]any{at: map[string]any{key: value}}}
	}
	for name, c := range map[string]struct {
		object controllers.Object
		want   bool
	}{
		"annotation":    {object("annotations", "disabled"), true},
		"label":         {object("labels", "disabled"), true},
		"in capitals":   {object("annotations", "Disabled"), true},
		"another value": {object("annotations", "enabled"), false},
		"no value":      {object("annotations", ""), false},
		"no metadata":   {controllers.Object{}, false},
		"nil object":    {nil, false},
	} {
		if got := controllers.HasSetting(c.object, key, "disabled"); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
