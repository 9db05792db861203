package e2e_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fluxkit/flux/pkg/diff"
)

// releaseCase is a HelmRelease "app" in its own namespace, and a change to it, its
// chart or the live objects.
type releaseCase struct {
	name string
	// nightly is set for cases with the same actions as a case of the e2e tier.
	nightly bool
	// spec and specAfter are lines of its spec; an empty specAfter is the same.
	spec, specAfter string
	// chart and chartAfter are the files of its chart; "" removes one.
	chart, chartAfter map[string]string
	// more and moreAfter are other objects; an empty moreAfter is the same.
	more, moreAfter string
	// template contains more fields of spec.chart.spec.
	template string
	// source replaces the GitRepository as the source of the chart.
	source string
	// live changes the cluster directly.
	live func(*fixture)
	// first is set if the change creates the HelmRelease.
	first bool
	want  map[string]diff.Action
	step  diff.Step
	// fails is set if the controller cannot apply the change.
	fails bool
	// unlike is set if the manifests stored by Helm differ from a new build.
	unlike bool
}

func (c releaseCase) manifests(after bool) string {
	spec, more := c.spec, c.more
	if after && c.specAfter != "" {
		spec = c.specAfter
	}
	if after && c.moreAfter != "" {
		more = c.moreAfter
	}
	text := fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", c.name)
	if more != "" {
		text += "---\n" + strings.TrimSuffix(more, "---\n")
	}
	if c.first && !after {
		return text
	}
	chart := "  chart: {spec: {chart: ./charts/" + c.name + ", sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}" + c.template + "}}\n"
	if c.source != "" {
		chart = ""
	}
	return text + fmt.Sprintf(`---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: app, namespace: %s}
spec:
  interval: 1h
%s%s`, c.name, chart, spec)
}

// chartFiles returns the files of a chart "app" with templates by name.
func chartFiles(version string, templates ...string) map[string]string {
	files := map[string]string{"Chart.yaml": "apiVersion: v2\nname: app\nversion: " + version + "\n"}
	for i := 0; i+1 < len(templates); i += 2 {
		files["templates/"+templates[i]+".yaml"] = templates[i+1]
	}
	return files
}

// valued is a ConfigMap with values that a chart can use.
const valued = `apiVersion: v1
kind: ConfigMap
metadata: {name: '{{ .Release.Name }}-valued'}
data:
  color: {{ .Values.color | default "red" | quote }}
  revision: {{ .Release.Revision | quote }}
  upgrade: {{ .Release.IsUpgrade | quote }}
  apps: {{ .Capabilities.APIVersions.Has "apps/v1/Deployment" | quote }}
`

// generated is a password that is kept after it was generated.
const generated = `{{- $there := lookup "v1" "Secret" .Release.Namespace "generated" }}
apiVersion: v1
kind: Secret
metadata: {name: generated}
data:
  password: {{ if $there }}{{ $there.data.password }}{{ else }}{{ randAlphaNum 20 | b64enc }}{{ end }}
  node: {{ range (lookup "v1" "Node" "" "").items }}{{ .metadata.name | b64enc }}{{ end }}
`

func releaseCases(registry, charts string) []releaseCase {
	return slices.Concat(releaseChartCases(registry, charts), releaseSpecCases(), releaseUpgradeCases(), releaseTakeoverCases(), releaseDriftCases())
}

const keptMap = `apiVersion: v1
kind: ConfigMap
metadata: {name: kept, annotations: {helm.sh/resource-policy: keep}}
data: {a: b}
`

const hookMap = `apiVersion: v1
kind: ConfigMap
metadata: {name: hook, annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: before-hook-creation}}
data: {color: %s}
`

func definition(version, more string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]s.%[1]s.example.com}
spec:
  group: %[1]s.example.com
  names: {kind: Widget%[1]s, plural: %[2]s}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}%[3]s}}}}}
`, version, "widgets", more)
}

// ociCharts is a version of the charts in the registry.
func ociCharts(registry, tag string) string {
	return fmt.Sprintf(`apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: charts, namespace: oci}
spec: {interval: 1h, url: "oci://%s/charts/app", insecure: true, ref: {tag: %s}, layerSelector: {mediaType: application/vnd.cncf.helm.chart.content.v1.tar+gzip, operation: copy}}
`, registry, tag)
}

// crdCase changes a CustomResourceDefinition of a chart.
func crdCase(name, spec string, want map[string]diff.Action) releaseCase {
	return releaseCase{
		name: name, nightly: name != "crds", spec: spec, step: diff.Upgrade, want: want,
		chart: map[string]string{"Chart.yaml": chartFiles("1.0.0")["Chart.yaml"], "crds/widget.yaml": definition(name, ""), "templates/a.yaml": configMap("a", "a: b")},
		chartAfter: map[string]string{
			"Chart.yaml": chartFiles("1.1.0")["Chart.yaml"], "crds/widget.yaml": definition(name, ", color: {type: string}"),
			"templates/a.yaml": configMap("a", "a: c"),
		},
	}
}

// releaseChartCases cover the content and the sources of charts.
func releaseChartCases(registry, charts string) []releaseCase {
	repository := func(version string) string {
		return "  chart: {spec: {chart: app, version: " + version + ", sourceRef: {kind: HelmRepository, name: charts}}}\n"
	}
	return []releaseCase{
		{
			name:  "objects",
			chart: chartFiles("1.0.0", "stays", configMap("stays", "a: b"), "goes", configMap("goes", "a: b"), "kept", keptMap, "web", deployment("web", "web", 1, "web:1")),
			chartAfter: map[string]string{
				"Chart.yaml": chartFiles("1.1.0")["Chart.yaml"], "templates/goes.yaml": "", "templates/kept.yaml": "",
				"templates/new.yaml": configMap("new", "a: b"), "templates/web.yaml": deployment("web", "web", 2, "web:2"),
			},
			step: diff.Upgrade,
			want: map[string]diff.Action{
				"ConfigMap/objects/new": diff.Created, "ConfigMap/objects/goes": diff.Pruned, "ConfigMap/objects/kept": diff.Skipped, "Deployment/objects/web": diff.Changed,
			},
		},
		{
			name:       "hooks",
			chart:      chartFiles("1.0.0", "main", configMap("main", "a: b"), "hook", fmt.Sprintf(hookMap, "red")),
			chartAfter: chartFiles("1.1.0", "main", configMap("main", "a: c"), "hook", fmt.Sprintf(hookMap, "blue")),
			step:       diff.Upgrade, want: map[string]diff.Action{"ConfigMap/hooks/main": diff.Changed},
		},
		crdCase("crds", "", map[string]diff.Action{"ConfigMap/crds/a": diff.Changed, "CustomResourceDefinition/widgets.crds.example.com": diff.Changed}),
		crdCase("crdsreplace", "  upgrade: {crds: CreateReplace}\n", map[string]diff.Action{
			"ConfigMap/crdsreplace/a": diff.Changed, "CustomResourceDefinition/widgets.crdsreplace.example.com": diff.Changed,
		}),
		crdCase("crdsskip", "  upgrade: {crds: Skip}\n", map[string]diff.Action{"ConfigMap/crdsskip/a": diff.Changed}),
		{
			name: "newkind", nightly: true,
			chart: chartFiles("1.0.0", "a", configMap("a", "a: b")),
			chartAfter: map[string]string{
				"Chart.yaml": chartFiles("1.1.0")["Chart.yaml"], "crds/gadget.yaml": strings.Split(gadgetDefinition, "---\n")[0],
				"templates/gadget.yaml": strings.Split(gadgetDefinition, "---\n")[1],
			},
			step: diff.Upgrade,
			want: map[string]diff.Action{"CustomResourceDefinition/gadgets.diff.example.com": diff.Created, "Gadget/newkind/one": diff.Created},
		},
		{
			name: "repository", nightly: true, source: "HelmRepository", spec: repository("1.0.0"), specAfter: repository("1.1.0"),
			more: "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: charts, namespace: repository}\nspec: {interval: 1h, url: \"" + charts + "\"}\n",
			step: diff.Upgrade, want: map[string]diff.Action{"ConfigMap/repository/app": diff.Changed},
		},
		{
			name: "oci", source: "OCIRepository", spec: "  chartRef: {kind: OCIRepository, name: charts}\n", more: ociCharts(registry, "1.0.0"), moreAfter: ociCharts(registry, "1.1.0"),
			step: diff.Upgrade, want: map[string]diff.Action{"ConfigMap/oci/app": diff.Changed},
		},
		{
			name: "revision", nightly: true, template: ", reconcileStrategy: Revision, valuesFiles: [charts/revision/prod.yaml]",
			chart: map[string]string{
				"Chart.yaml": chartFiles("1.0.0")["Chart.yaml"], "values.yaml": "color: none\n", "prod.yaml": "color: red\n", "templates/valued.yaml": valued,
				"templates/version.yaml": configMap("version", "chart: '{{ .Chart.Version }}'"),
			},
			chartAfter: map[string]string{"prod.yaml": "color: blue\n"},
			step:       diff.Upgrade, unlike: true,
			want: map[string]diff.Action{"ConfigMap/revision/app-valued": diff.Changed, "ConfigMap/revision/version": diff.Changed},
		},
		{
			name: "random", nightly: true, spec: "  values: {color: green}\n", specAfter: "  values: {color: blue}\n",
			chart: chartFiles("1.0.0", "valued", valued, "secret", "apiVersion: v1\nkind: Secret\nmetadata: {name: random}\nstringData: {password: '{{ randAlphaNum 20 }}'}\n"),
			step:  diff.Upgrade, unlike: true,
			want: map[string]diff.Action{"ConfigMap/random/app-valued": diff.Changed, "Secret/random/random": diff.Changed},
		},
		{
			name: "sameversion", nightly: true, chart: chartFiles("1.0.0", "a", configMap("a", "a: b")), chartAfter: chartFiles("1.0.0", "a", configMap("a", "a: c")),
			step: diff.Keep, want: map[string]diff.Action{}, unlike: true,
		},
	}
}

// releaseDriftCases cover releases without a change.
func releaseDriftCases() []releaseCase {
	files := func() map[string]string {
		return chartFiles("1.0.0", "a", configMap("a", "a: b"), "gone", configMap("gone", "a: b"), "ignored", configMap("ignored", "a: b"),
			"off", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"off\", annotations: {helm.toolkit.fluxcd.io/driftDetection: disabled}}\ndata: {a: b}\n",
			"web", deployment("web", "web", 1, "web:1"))
	}
	drift := func(namespace string) func(*fixture) {
		return func(f *fixture) {
			for _, name := range []string{"a", "off", "ignored"} {
				f.shell.run("kubectl", "--namespace="+namespace, "patch", "configmap", name, "--type=merge", `--patch={"data":{"a":"hand"}}`)
			}
			f.shell.run("kubectl", "--namespace="+namespace, "label", "configmap", "a", "by=hand")
			f.shell.run("kubectl", "--namespace="+namespace, "delete", "configmap", "gone")
			f.shell.run("kubectl", "--namespace="+namespace, "scale", "deployment", "web", "--replicas=3")
		}
	}
	ignored := "ignore: [{paths: [/spec/replicas], target: {kind: Deployment}}, {paths: [\"\"], target: {name: ignored}}]"
	return []releaseCase{
		{
			name: "drifted", spec: "  driftDetection: {mode: enabled, " + ignored + "}\n", chart: files(), live: drift("drifted"), step: diff.Keep,
			want: map[string]diff.Action{
				"ConfigMap/drifted/a": diff.Changed, "ConfigMap/drifted/gone": diff.Created, "ConfigMap/drifted/ignored": diff.Skipped, "ConfigMap/drifted/off": diff.Skipped,
			},
		},
		{
			name: "warned", nightly: true, spec: "  driftDetection: {mode: warn}\n", chart: files(), live: drift("warned"), step: diff.Keep,
			want: map[string]diff.Action{
				"ConfigMap/warned/a": diff.Skipped, "ConfigMap/warned/gone": diff.Skipped, "ConfigMap/warned/ignored": diff.Skipped, "ConfigMap/warned/off": diff.Skipped,
				"Deployment/warned/web": diff.Skipped,
			},
		},
		{
			name: "left", nightly: true, chart: files(), live: drift("left"), step: diff.Keep,
			want: map[string]diff.Action{
				"ConfigMap/left/a": diff.Skipped, "ConfigMap/left/gone": diff.Skipped, "ConfigMap/left/ignored": diff.Skipped, "ConfigMap/left/off": diff.Skipped,
				"Deployment/left/web": diff.Skipped,
			},
		},
		{
			name: "upgraded", chart: files(), live: drift("upgraded"), spec: "  values: {}\n", specAfter: "  values: {any: thing}\n", step: diff.Upgrade,
			want: map[string]diff.Action{
				"ConfigMap/upgraded/a": diff.Changed, "ConfigMap/upgraded/gone": diff.Created, "ConfigMap/upgraded/ignored": diff.Changed, "ConfigMap/upgraded/off": diff.Changed,
				"Deployment/upgraded/web": diff.Changed,
			},
		},
	}
}
