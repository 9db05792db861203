package e2e_test

import (
	"fmt"
	"strings"

	"github.com/fluxkit/flux/pkg/diff"
)

// releaseSpecCases cover the spec of the HelmRelease.
func releaseSpecCases() []releaseCase {
	secret := func(name, value string) string {
		return fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: values, namespace: %[1]s}
stringData: {values.yaml: "password: open-sesame-%[2]s", user: open-sesame-user-%[2]s}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: values, namespace: %[1]s}
data: {values.yaml: "color: %[2]s"}
`, name, value)
	}
	target := "  targetNamespace: elsewhere\n  storageNamespace: target\n  releaseName: renamed\n  install: {createNamespace: true}\n"
	patched := func(text string) string {
		return strings.ReplaceAll(`  postRenderers:
  - kustomize:
      patches:
      - target: {kind: ConfigMap, name: one}
        patch: |-
          - {op: add, path: /data/patched, value: TEXT}
      images: [{name: web, newTag: TEXT}]
  commonMetadata: {labels: {team: TEXT}, annotations: {note: TEXT}}
`, "TEXT", text)
	}
	return []releaseCase{
		{
			name: "values", spec: "  values: {color: green}\n", specAfter: "  values: {color: blue}\n",
			chart: chartFiles("1.0.0", "valued", valued, "same", configMap("same", "a: b")),
			step:  diff.Upgrade, want: map[string]diff.Action{"ConfigMap/values/app-valued": diff.Changed},
		},
		{
			name: "from", more: secret("from", "old"), moreAfter: secret("from", "new"),
			spec: "  valuesFrom:\n  - {kind: ConfigMap, name: values}\n  - {kind: Secret, name: values}\n  - {kind: Secret, name: values, valuesKey: user, targetPath: user}\n",
			chart: chartFiles("1.0.0", "valued", valued, "secret", "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: '{{ .Values.password }}'}\n",
				"url", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: url}\ndata: {url: 'http://{{ .Values.user }}@host/'}\n"),
			step: diff.Upgrade,
			want: map[string]diff.Action{"ConfigMap/from/app-valued": diff.Changed, "Secret/from/login": diff.Changed, "ConfigMap/from/url": diff.Changed},
		},
		{
			name: "lookup", nightly: true, spec: "  values: {color: green}\n", specAfter: "  values: {color: blue}\n",
			chart: chartFiles("1.0.0", "valued", valued, "generated", generated),
			step:  diff.Upgrade, want: map[string]diff.Action{"ConfigMap/lookup/app-valued": diff.Changed},
		},
		{
			name: "target", nightly: true, spec: target + "  values: {color: green}\n", specAfter: target + "  values: {color: blue}\n",
			chart: chartFiles("1.0.0", "valued", valued), step: diff.Upgrade, want: map[string]diff.Action{"ConfigMap/elsewhere/renamed-valued": diff.Changed},
		},
		{
			name: "post", nightly: true, spec: patched("v1"), specAfter: patched("v2"),
			chart: chartFiles("1.0.0", "one", configMap("one", "a: b"), "web", deployment("web", "web", 1, "web:1")),
			step:  diff.Upgrade, want: map[string]diff.Action{"ConfigMap/post/one": diff.Changed, "Deployment/post/web": diff.Changed},
		},
	}
}

// releaseUpgradeCases cover upgrades that reinstall, fail, or take over objects.
func releaseUpgradeCases() []releaseCase {
	return []releaseCase{
		{
			name:       "immutable",
			chart:      chartFiles("1.0.0", "fixed", immutableMap("old"), "other", configMap("other", "a: b"), "goes", configMap("goes", "a: b")),
			chartAfter: map[string]string{"Chart.yaml": chartFiles("1.1.0")["Chart.yaml"], "templates/fixed.yaml": immutableMap("new"), "templates/other.yaml": configMap("other", "a: c"), "templates/goes.yaml": ""},
			step:       diff.Upgrade, fails: true,
			want: map[string]diff.Action{"ConfigMap/immutable/fixed": diff.Failed, "ConfigMap/immutable/other": diff.Changed, "ConfigMap/immutable/goes": diff.Skipped},
		},
		{
			name: "first", nightly: true, first: true, spec: "  targetNamespace: first-created\n  install: {createNamespace: true}\n  values: {color: green}\n",
			chart: chartFiles("1.0.0", "valued", valued, "secret", "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: x}\n"),
			step:  diff.Install,
			want: map[string]diff.Action{
				"Namespace/first-created": diff.Created, "ConfigMap/first-created/first-created-app-valued": diff.Created, "Secret/first-created/login": diff.Created,
			},
		},
		{
			name: "moved", spec: "  releaseName: one\n", specAfter: "  releaseName: two\n",
			chart: chartFiles("1.0.0", "valued", valued, "fixed", configMap("fixed", "a: b"), "kept", keptMap),
			step:  diff.Reinstall,
			want: map[string]diff.Action{
				"ConfigMap/moved/one-valued": diff.Pruned, "ConfigMap/moved/two-valued": diff.Created, "ConfigMap/moved/fixed": diff.Recreated, "ConfigMap/moved/kept": diff.Changed,
			},
		},
		{
			name: "patched", nightly: true, spec: "  install: {serverSideApply: false}\n",
			chart: chartFiles("1.0.0", "web", deployment("web", "web", 1, "web:1"), "map", configMap("map", "a: b, gone: x")),
			chartAfter: map[string]string{
				"Chart.yaml": chartFiles("1.1.0")["Chart.yaml"], "templates/map.yaml": configMap("map", "a: b, come: x"), "templates/web.yaml": deployment("web", "web", 2, "web:1"),
			},
			step: diff.Upgrade, want: map[string]diff.Action{"ConfigMap/patched/map": diff.Changed, "Deployment/patched/web": diff.Changed},
		},
		{
			name: "applied", nightly: true, spec: "  install: {serverSideApply: false}\n", specAfter: "  upgrade: {serverSideApply: enabled}\n",
			chart:      chartFiles("1.0.0", "map", configMap("map", "a: b, gone: x"), "same", configMap("same", "a: b")),
			chartAfter: map[string]string{"Chart.yaml": chartFiles("1.1.0")["Chart.yaml"], "templates/map.yaml": configMap("map", "a: b")},
			step:       diff.Upgrade, want: map[string]diff.Action{"ConfigMap/applied/map": diff.Changed},
		},
	}
}

// releaseTakeoverCases cover charts that the controller cannot apply, and objects and charts with other names.
func releaseTakeoverCases() []releaseCase {
	return []releaseCase{
		{
			name: "foreign", nightly: true, spec: "  upgrade: {disableTakeOwnership: true}\n", chart: chartFiles("1.0.0", "a", configMap("a", "a: b")), fails: true,
			more: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: there, namespace: foreign}\ndata: {a: other}\n",
			chartAfter: map[string]string{
				"Chart.yaml": chartFiles("1.1.0")["Chart.yaml"], "templates/there.yaml": configMap("there", "a: b"), "templates/a.yaml": configMap("a", "a: c"),
			},
			step: diff.Upgrade, want: map[string]diff.Action{"ConfigMap/foreign/there": diff.Failed, "ConfigMap/foreign/a": diff.Skipped},
		},
		{
			name: "typo", nightly: true, fails: true, chart: chartFiles("1.0.0", "web", deployment("web", "web", 1, "web:1"), "a", configMap("a", "a: b")),
			chartAfter: map[string]string{
				"Chart.yaml":         chartFiles("1.1.0")["Chart.yaml"],
				"templates/web.yaml": strings.Replace(deployment("web", "web", 2, "web:1"), "replicas", "replicants", 1), "templates/a.yaml": configMap("a", "a: c"),
			},
			step: diff.Upgrade, want: map[string]diff.Action{"Deployment/typo/web": diff.Failed, "ConfigMap/typo/a": diff.Changed},
		},
		{
			name: "nokind", nightly: true, fails: true, chart: chartFiles("1.0.0", "a", configMap("a", "a: b")),
			chartAfter: map[string]string{
				"Chart.yaml":                chartFiles("1.1.0")["Chart.yaml"],
				"templates/unknown.yaml":    "apiVersion: unknown.example.com/v1\nkind: Unknown\nmetadata: {name: one}\n",
				"templates/a.yaml":          configMap("a", "a: c"),
				"crds/widget.yaml":          definition("nokind", ""),
				"templates/definition.yaml": definition("templated", ""),
				"templates/widget.yaml":     "apiVersion: templated.example.com/v1\nkind: Widgettemplated\nmetadata: {name: two}\n",
			},
			step: diff.Upgrade,
			want: map[string]diff.Action{
				"Unknown/nokind/one": diff.Failed, "Widgettemplated/nokind/two": diff.Failed, "ConfigMap/nokind/a": diff.Skipped,
				"CustomResourceDefinition/widgets.nokind.example.com": diff.Created, "CustomResourceDefinition/widgets.templated.example.com": diff.Skipped,
			},
		},
		{
			name: "chartname", nightly: true, chart: chartFiles("1.0.0", "a", configMap("a", "a: b")),
			chartAfter: map[string]string{"Chart.yaml": "apiVersion: v2\nname: other\nversion: 1.0.0\n"},
			step:       diff.Reinstall, want: map[string]diff.Action{"ConfigMap/chartname/a": diff.Recreated},
		},
		{
			name: "inplace", nightly: true, spec: "  upgrade: {chartNameChangeStrategy: InPlaceUpdate}\n", chart: chartFiles("1.0.0", "a", configMap("a", "a: b")),
			chartAfter: map[string]string{"Chart.yaml": "apiVersion: v2\nname: other\nversion: 1.0.0\n", "templates/a.yaml": configMap("a", "a: c")},
			step:       diff.Upgrade, want: map[string]diff.Action{"ConfigMap/inplace/a": diff.Changed},
		},
		{
			name: "adopt", nightly: true, chart: chartFiles("1.0.0", "a", configMap("a", "a: b")),
			more:       "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: there, namespace: adopt, annotations: {kustomize.toolkit.fluxcd.io/ssa: IfNotPresent}}\ndata: {a: other}\n",
			chartAfter: map[string]string{"Chart.yaml": chartFiles("1.1.0")["Chart.yaml"], "templates/there.yaml": configMap("there", "a: b")},
			step:       diff.Upgrade, want: map[string]diff.Action{"ConfigMap/adopt/there": diff.Changed},
		},
	}
}
