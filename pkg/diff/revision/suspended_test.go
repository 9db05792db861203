package revision_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/diff/review"
	"github.com/fluxkit/flux/pkg/diff/revision"
)

// TestSuspended tests the rules about what a suspended Kustomization keeps from being applied, with
// near misses: an object below it whose spec stays the same is reconciled as ever.
func TestSuspended(t *testing.T) {
	t.Parallel()
	suspend := func(files map[string]string, name string) {
		for _, file := range []string{"clusters/production/" + name, "parent/" + name} {
			if text, ok := files[file]; ok {
				files[file] = strings.Replace(text, "  prune: true\n", "  prune: true\n  suspend: true\n", 1)
			}
		}
	}
	const create, change, remove = "it is not created until %s is resumed", "its new spec is not applied until %s is resumed", "it is not deleted until %s is resumed"
	by := func(text, name string) string {
		return "suspended-ancestor: " + fmt.Sprintf(text, "Kustomization/flux-system/"+name)
	}
	edited := func(files map[string]string) { files["child/cm.yaml"] = configMap("child", "web", "a: c") }
	respecified := func(files map[string]string) {
		files["parent/child.yaml"] = kustomization("child", "child", "  targetNamespace: other\n")
	}
	for name, c := range map[string]struct {
		before, after func(files map[string]string)
		want          map[string]string
	}{
		"new spec":               {func(files map[string]string) { suspend(files, "parent.yaml") }, respecified, map[string]string{"child": by(change, "parent")}},
		"other files, same spec": {func(files map[string]string) { suspend(files, "parent.yaml") }, edited, nil},
		"nothing is suspended":   {func(map[string]string) {}, respecified, nil},
		"the child is suspended": {func(files map[string]string) { suspend(files, "child.yaml") }, edited, nil},
		"a sibling is suspended": {func(files map[string]string) { suspend(files, "sibling.yaml") }, respecified, nil},
		"created": {func(files map[string]string) { suspend(files, "parent.yaml"); delete(files, "parent/child.yaml") }, func(files map[string]string) {
			files["parent/child.yaml"] = kustomization("child", "child", "")
		}, map[string]string{"child": by(create, "parent")}},
		"removed": {func(files map[string]string) { suspend(files, "parent.yaml") }, func(files map[string]string) { delete(files, "parent/child.yaml") },
			map[string]string{"child": by(remove, "parent")}},
		"resumed together": {func(files map[string]string) { suspend(files, "parent.yaml") }, func(files map[string]string) {
			files["clusters/production/parent.yaml"] = kustomization("parent", "parent", "")
			respecified(files)
		}, nil},
		"suspended together": {func(map[string]string) {}, func(files map[string]string) {
			suspend(files, "parent.yaml")
			respecified(files)
		}, map[string]string{"child": by(change, "parent")}},
		"grandparent, all new": {func(files map[string]string) {
			suspend(files, "parent.yaml")
			delete(files, "parent/child.yaml")
		}, func(files map[string]string) {
			files["parent/middle.yaml"] = kustomization("middle", "middle", "")
			files["middle/child.yaml"] = kustomization("child", "child", "")
		}, map[string]string{"middle": by(create, "parent"), "child": by(create, "parent")}},
		"grandparent, new below an unchanged one": {func(files map[string]string) {
			suspend(files, "parent.yaml")
			files["parent/middle.yaml"] = kustomization("middle", "middle", "")
			files["middle/cm.yaml"] = configMap("middle", "web", "a: b")
			delete(files, "parent/child.yaml")
		}, func(files map[string]string) { files["middle/child.yaml"] = kustomization("child", "child", "") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := map[string]string{
				"clusters/production/sync.yaml":    "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: fleet, namespace: flux-system}\nspec: {url: \"https://example.com/fleet\"}\n",
				"clusters/production/parent.yaml":  kustomization("parent", "parent", ""),
				"clusters/production/sibling.yaml": kustomization("sibling", "sibling", ""),
				"parent/cm.yaml":                   configMap("parent", "web", "a: b"),
				"parent/child.yaml":                kustomization("child", "child", ""),
				"child/cm.yaml":                    configMap("child", "web", "a: b"),
				"sibling/cm.yaml":                  configMap("sibling", "web", "a: b"),
			}
			c.before(base)
			head := maps.Clone(base)
			c.after(head)
			outcome, err := compare(t, base, head, false)
			if err != nil {
				t.Fatal(err)
			}
			review.Apply(outcome.Results, nil)
			got := map[string]string{}
			if c.want == nil {
				c.want = map[string]string{}
			}
			for _, r := range outcome.Results {
				for _, d := range r.Dangers {
					if d.Rule == "suspended-ancestor" {
						got[r.Owner.Name] = d.Rule + ": " + d.Detail
					}
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if len(outcome.Results) == 0 {
				t.Error("no changes")
			}
		})
	}
}

// TestRemovedWhileSuspended checks that the objects of a Kustomization or HelmRelease that is deleted
// while it is suspended are not announced as deleted: the controllers leave them.
func TestRemovedWhileSuspended(t *testing.T) {
	t.Parallel()
	for _, suspended := range []bool{true, false} {
		spec := ""
		if suspended {
			spec = ", suspend: true"
		}
		base := map[string]string{
			"clusters/production/sync.yaml": "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: fleet, namespace: flux-system}\nspec: {url: \"https://example.com/fleet\"}\n",
			"clusters/production/web.yaml":  "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: web}\nspec: {chart: {spec: {chart: charts/web, sourceRef: {kind: GitRepository, name: fleet, namespace: flux-system}}}" + spec + "}\n",
			"clusters/production/app.yaml":  kustomization("app", "app", strings.Replace(strings.TrimPrefix(spec, ", "), "suspend", "  suspend", 1)),
			"charts/web/Chart.yaml":         "name: web\n",
			"app/cm.yaml":                   configMap("app", "web", "a: b"),
		}
		head := maps.Clone(base)
		delete(head, "clusters/production/web.yaml")
		delete(head, "clusters/production/app.yaml")
		outcome, err := compare(t, base, head, false)
		if err != nil {
			t.Fatal(err)
		}
		action := "pruned"
		if suspended {
			action = "skipped"
		}
		want := []string{
			"Kustomization/flux-system/flux-system: Kustomization/flux-system/app pruned",
			"Kustomization/flux-system/flux-system: HelmRelease/web/web pruned",
			"Kustomization/flux-system/app: ConfigMap/web/app " + action,
			"HelmRelease/web/web: ConfigMap/web/web-charts-web-chart-yaml " + action,
		}
		if d := cmp.Diff(want, summary(outcome)); d != "" {
			t.Errorf("suspended %t: -want +got:\n%s", suspended, d)
		}
		for _, c := range orphansOf(outcome) {
			if !suspended {
				t.Errorf("%s is orphaned", c)
			}
		}
		if suspended && len(orphansOf(outcome)) != 2 {
			t.Errorf("orphans: %v", orphansOf(outcome))
		}
	}
}

func orphansOf(outcome *revision.Outcome) []string {
	var orphans []string
	for _, r := range outcome.Results {
		for _, c := range r.Changes {
			if c.Orphaned {
				orphans = append(orphans, c.Object.String())
			}
		}
	}
	return orphans
}
