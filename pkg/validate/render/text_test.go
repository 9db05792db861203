package render_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/validate"
	"github.com/fluxkit/flux/pkg/validate/render"
)

// TestShared lists what many objects have in common once, with all places, and other findings by object.
func TestShared(t *testing.T) {
	t.Parallel()
	finding := func(kind, name, file string, line int, message string) validate.Finding {
		id := controllers.VersionedID{ID: controllers.ID{Kind: kind, Namespace: "apps", Name: name}, Version: "v1"}
		return validate.Finding{Severity: validate.Invalid, Rule: "schema", Object: id, Owner: id, File: file, Line: line, Field: "spec.a", Message: message, Fix: "set it"}
	}
	var findings []validate.Finding
	for i := range 5 {
		name := fmt.Sprint("app-", i)
		findings = append(findings, finding("Widget", name, name+".yaml", i, "required"))
	}
	findings = append(findings,
		finding("Widget", "same", "app-4.yaml", 4, "required"), finding("Widget", "app-0", "app-0.yaml", 9, "too long"), // another message
		finding("Gadget", "app-0", "app-0.yaml", 1, "required"), finding("Gadget", "app-1", "app-0.yaml", 1, "required"), // another kind, and few
		finding("Widget", "nowhere", "", 0, "required"), // without a file
	)
	var text strings.Builder
	if err := render.Write(&text, render.Human, render.Validation(), []*validate.Result{{Path: "prod", Findings: findings}}); err != nil {
		t.Fatal(err)
	}
	const want = `Errors:
  Widget/apps/app-0 in app-0.yaml
    line 9: spec.a: too long
      set it
  Gadget/apps/app-0 and 1 more in app-0.yaml
    line 1: spec.a: required
      set it
  Widget/apps/nowhere
    spec.a: required
      set it
  6 objects of kind Widget
    spec.a: required
      set it
      app-0.yaml apps/app-0
      app-1.yaml:1 apps/app-1
      app-2.yaml:2 apps/app-2
      app-3.yaml:3 apps/app-3
      app-4.yaml:4 apps/app-4 and 1 more
`
	if d := cmp.Diff(want, text.String()); d != "" {
		t.Error(d)
	}
}
