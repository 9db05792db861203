package controllers

import (
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FuzzParseInventoryID compares the parser with that of kustomize-controller's library for every
// id that the library accepts.
func FuzzParseInventoryID(f *testing.F) {
	for _, id := range []string{
		"apps_web_apps_Deployment", "_apps__Namespace", "_system__node_rbac.authorization.k8s.io_ClusterRole",
		"apps_web_apps", "____", "a_b__c_d_e", "a_b_c_d_", "\x1b[2J_a_b_C",
	} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		got, err := ParseInventoryID(id)
		want, refused := object.ParseObjMetadata(id)
		if refused == nil && want.Name != "" && want.GroupKind.Kind != "" && (err != nil || got != NewID(want.GroupKind, want.Namespace, want.Name)) {
			t.Errorf("%q is %+v (%v), want %+v", id, got, err, want)
		}
		if err != nil {
			return
		}
		if strings.Contains(got.Name, "_") {
			return // underscores next to a colon are written as three
		}
		again, err := ParseInventoryID(got.Namespace + "_" + strings.ReplaceAll(got.Name, ":", "__") + "_" + got.Group + "_" + got.Kind)
		if err != nil || again != got {
			t.Errorf("%q is %+v, and what that is written as is %+v (%v)", id, got, again, err)
		}
		if strings.Contains(got.Namespace+got.Kind, "_") || got.Name == "" || got.GroupKind() == (schema.GroupKind{}) {
			t.Errorf("%q is %+v", id, got)
		}
	})
}
