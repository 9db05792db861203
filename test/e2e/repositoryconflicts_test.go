package e2e_test

import (
	"slices"
	"strings"
	"testing"
)

// sharing returns a HelmRelease whose chart contains objects that other owners also apply.
func sharing(name, color string) string {
	return `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: ` + name + `, namespace: shop}
spec:
  interval: 1h
  chart: {spec: {chart: ./charts/sharing, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}
  values: {color: ` + color + `}
`
}

// addSharing adds two releases of one chart, and a Kustomization that applies an object of the chart.
func addSharing(t *testing.T, dir, color string) {
	t.Helper()
	for name, content := range map[string]string{
		"charts/sharing/Chart.yaml":            "apiVersion: v2\nname: sharing\nversion: 1.0.0\n",
		"charts/sharing/templates/shared.yaml": sharedMap("alike", "{color: blue}") + "---\n" + sharedMap("unlike", "{color: {{ .Values.color }}, shade: dark}") + "---\n" + sharedMap("mixed", "{color: blue}"),
		"apps/production/kustomization.yaml":   "resources: [../base, settings.yaml, mixed.yaml, sharing.yaml]\npatches:\n  - path: shop.yaml\n",
		"apps/production/mixed.yaml":           sharedMap("mixed", "{color: blue}"),
		"apps/production/sharing.yaml":         sharing("one", "blue") + "---\n" + sharing("two", color),
	} {
		writeFile(t, dir, name, content)
	}
}

func sharedMap(name, data string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shop}\ndata: " + data + "\n"
}

// testConflicts moves an object to another Kustomization, and leaves it in the first one.
func testConflicts(sh *shell) {
	dir := writeLayout(sh, "helm", map[string]string{
		"apps/production/kustomization.yaml": "resources: [../base, settings.yaml]\npatches:\n  - path: shop.yaml\n",
		"apps/production/settings.yaml":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: certificates}\ndata: {color: red}\n",
	}, inGit()...)
	upgraded, _ := runTest(sh, dir, 1, append(charts, "--base=base")...)
	comparePrediction(sh, dir, upgraded, 1)
	addSharing(sh.t, dir, "red")
	r, _ := runTest(sh, dir, 1, charts...)
	if len(r.Causes) > 0 || len(r.Unknown) > 0 {
		sh.t.Errorf("got %+v", r)
	}
	checkConflicts(sh.t, r, "alike by one, two", "mixed by one, two, apps", "settings by apps, infra-configs differs in data.color", "unlike by one, two differs in data.color")
	// The near miss: all owners apply the same object.
	writeFile(sh.t, dir, "apps/production/settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: certificates}\ndata: {color: blue}\n")
	addSharing(sh.t, dir, "blue")
	if r, _ = runTest(sh, dir, 0, packedCharts(sh.t, dir)...); len(r.Unmatched) > 0 {
		sh.t.Errorf("unmatched %+v", r.Unmatched)
	}
	checkConflicts(sh.t, r, "alike by one, two", "mixed by one, two, apps", "settings by apps, infra-configs", "unlike by one, two")
}

// checkConflicts checks the objects that several owners apply, sorted by name.
func checkConflicts(t *testing.T, r repositoryReport, want ...string) {
	t.Helper()
	var got []string
	for _, c := range r.Conflicts {
		var owners []string
		for _, o := range c.Owners {
			owners = append(owners, o.Name)
		}
		text := c.Object.Name + " by " + strings.Join(owners, ", ")
		if c.Differs {
			text += " differs in " + strings.Join(c.Fields, ", ")
		}
		got = append(got, text)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("conflicts %q, want %q", got, want)
	}
}
