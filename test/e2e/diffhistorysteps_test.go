package e2e_test

import (
	"fmt"
	"strings"
)

// teamKustomization is the Kustomization that most steps change.
func teamKustomization(name, path string, spec ...string) string {
	return fmt.Sprintf(`apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %s, namespace: flux-system}
spec:
  interval: 1h
  path: %s
  prune: true
  targetNamespace: team
  sourceRef: {kind: GitRepository, name: flux-system}
`, name, path) + strings.Join(spec, "")
}

const (
	teamNamespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n"
	teamService   = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n"
	generator     = "configMapGenerator: [{name: settings, literals: [%s]}]"
	substituted   = "  postBuild: {substitute: {tier: %s}, substituteFrom: [{kind: ConfigMap, name: team-vars}]}\n"
	teamVariables = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: team-vars, namespace: flux-system, labels: {reconcile.fluxcd.io/watch: Enabled}}\ndata: {region: %s}\n"
	releaseChart  = "apiVersion: v2\nname: release\nversion: %s\n"
	releaseValue  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: release}\ndata:\n  value: {{ .Values.value | quote }}\n"
	releaseFrom   = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: release-values, namespace: flux-system, labels: {reconcile.fluxcd.io/watch: Enabled}}\ndata: {values.yaml: \"value: %s\"}\n"
	gizmoKind     = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmos.again.example.com}
spec:
  group: again.example.com
  names: {kind: Gizmo, plural: gizmos}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`
)

func helmRelease(spec string) string {
	return `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: release, namespace: flux-system}
spec:
  interval: 1h
  targetNamespace: team
  valuesFrom: [{kind: ConfigMap, name: release-values}]
  chart: {spec: {chart: ./charts/release, interval: 1h, sourceRef: {kind: GitRepository, name: flux-system}}}
` + spec
}

// historySteps is a history of more than 30 commits. Each step contains the number of
// changed objects, including the Kustomizations and the release themselves.
func historySteps() []historyStep {
	const (
		k    = "clusters/test/team.yaml"
		dir  = "apps/team/"
		list = dir + "kustomization.yaml"
	)
	resources := func(lines ...string) string {
		return kustomizationYAML(lines...)
	}
	files := func(pairs ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	return []historyStep{
		{name: "add a Kustomization", changes: 4, files: files(
			"clusters/test/namespace.yaml", teamNamespace, k, teamKustomization("team", "./apps/team"),
			list, resources("resources: [web.yaml, config.yaml]"), dir+"web.yaml", deployment("web", "web", 1, "web:1"), dir+"config.yaml", configMap("config", "a: b"))},
		{name: "change a ConfigMap", changes: 1, files: files(dir+"config.yaml", configMap("config", "a: c"))},
		{name: "scale a Deployment", changes: 1, files: files(dir+"web.yaml", deployment("web", "web", 3, "web:1"))},
		{name: "add a comment", changes: 0, files: files(dir+"config.yaml", "# A comment\n"+configMap("config", "a: c"))},
		{name: "reformat a file", changes: 0, files: files(dir+"config.yaml", "kind: ConfigMap\napiVersion: v1\ndata:\n  \"a\": \"c\"\nmetadata:\n  name: config\n")},
		{name: "add a Service that is not listed", changes: 0, files: files(dir+"service.yaml", teamService)},
		{name: "list the Service", changes: 1, files: files(list, resources("resources: [web.yaml, config.yaml, service.yaml]"))},
		{name: "remove the Service", changes: 1, files: files(list, resources("resources: [web.yaml, config.yaml]"), dir+"service.yaml", "")},
		{name: "generate a ConfigMap", changes: 1, files: files(list, resources("resources: [web.yaml, config.yaml]", fmt.Sprintf(generator, "color=red")))},
		{name: "change the generated ConfigMap", changes: 2, files: files(list, resources("resources: [web.yaml, config.yaml]", fmt.Sprintf(generator, "color=blue")))},
		{name: "stop generating", changes: 1, files: files(list, resources("resources: [web.yaml, config.yaml]"))},
		{name: "add variables", changes: 2, files: files("clusters/test/vars.yaml", fmt.Sprintf(teamVariables, "north"), k, teamKustomization("team", "./apps/team", fmt.Sprintf(substituted, "gold")))},
		{name: "use the variables", changes: 1, config: "north-gold", files: files(dir+"config.yaml", configMap("config", `a: "${region}-${tier:=none}"`))},
		{name: "change the ConfigMap of the variables", changes: 2, config: "south-gold", files: files("clusters/test/vars.yaml", fmt.Sprintf(teamVariables, "south"))},
		{name: "change a variable", changes: 2, files: files(k, teamKustomization("team", "./apps/team", fmt.Sprintf(substituted, "silver")))},
		{name: "set a label on everything", changes: 3, files: files(k, teamKustomization("team", "./apps/team", fmt.Sprintf(substituted, "silver"), "  commonMetadata: {labels: {team: one}}\n"))},
		{name: "replace the image", changes: 2, files: files(k, teamKustomization("team", "./apps/team", fmt.Sprintf(substituted, "silver"), "  commonMetadata: {labels: {team: one}}\n", "  images: [{name: web, newTag: \"2\"}]\n"))},
		{name: "patch the Deployment", changes: 2, files: files(k, teamKustomization("team", "./apps/team", fmt.Sprintf(substituted, "silver"), "  commonMetadata: {labels: {team: one}}\n",
			"  images: [{name: web, newTag: \"2\"}]\n", "  patches: [{target: {kind: Deployment}, patch: \"- {op: replace, path: /spec/replicas, value: 5}\"}]\n"))},
		{name: "remove the patch and the labels", changes: 3, files: files(k, teamKustomization("team", "./apps/team", fmt.Sprintf(substituted, "silver")))},
		{name: "move the directory", changes: 1, files: files(k, teamKustomization("team", "./apps/moved", fmt.Sprintf(substituted, "silver")),
			list, "", dir+"web.yaml", "", dir+"config.yaml", "", "apps/moved/kustomization.yaml", resources("resources: [web.yaml, config.yaml]"),
			"apps/moved/web.yaml", deployment("web", "web", 3, "web:1"), "apps/moved/config.yaml", configMap("config", `a: "${region}-${tier:=none}"`))},
		{name: "remove the kustomization.yaml", changes: 0, files: files("apps/moved/kustomization.yaml", "")},
		{name: "ignore a file", changes: 1, files: files(".sourceignore", "apps/moved/web.yaml\n")},
		{name: "ignore another file", changes: 1, files: files(".sourceignore", "*.md\n")},
		{name: "keep what leaves Git", changes: 1, files: files(k, strings.Replace(teamKustomization("team", "./apps/moved", fmt.Sprintf(substituted, "silver")), "prune: true", "prune: false", 1))},
		{name: "remove a file that is kept", changes: 0, files: files("apps/moved/web.yaml", "")},
		{name: "suspend", changes: 1, suspended: []string{"team"}, files: files(k, strings.Replace(teamKustomization("team", "./apps/moved", fmt.Sprintf(substituted, "silver")), "prune: true", "prune: true\n  suspend: true", 1))},
		{name: "change what is suspended", changes: 0, suspended: []string{"team"}, files: files("apps/moved/config.yaml", configMap("config", "a: later"))},
		{name: "resume", changes: 2, files: files(k, teamKustomization("team", "./apps/moved", fmt.Sprintf(substituted, "silver")))},
		{name: "add a release", changes: 3, chart: "0.1.0", values: "one", files: files("charts/release/Chart.yaml", fmt.Sprintf(releaseChart, "0.1.0"), "charts/release/templates/all.yaml", releaseValue,
			"clusters/test/values.yaml", fmt.Sprintf(releaseFrom, "one"), "clusters/test/release.yaml", helmRelease(""))},
		{name: "change the chart", changes: 2, chart: "0.2.0", values: "one", files: files("charts/release/Chart.yaml", fmt.Sprintf(releaseChart, "0.2.0"), "charts/release/templates/more.yaml", configMap("more", "a: b"),
			"charts/release/templates/all.yaml", releaseValue+"  version: new\n")},
		{name: "change the ConfigMap of the values", changes: 2, chart: "0.2.0", values: "two", files: files("clusters/test/values.yaml", fmt.Sprintf(releaseFrom, "two"))},
		{name: "change the values", changes: 2, chart: "0.2.0", values: "three", files: files("clusters/test/release.yaml", helmRelease("  values: {value: three}\n"))},
		{name: "remove the release", changes: 4, gone: true, files: files("clusters/test/release.yaml", "", "clusters/test/values.yaml", "")},
		{name: "define a kind", changes: 1, files: files("clusters/test/kind.yaml", gizmoKind)},
		{name: "add an object of the kind", changes: 1, files: files("apps/moved/gizmo.yaml", "apiVersion: again.example.com/v1\nkind: Gizmo\nmetadata: {name: one}\nspec: {size: 1}\n")},
		{name: "change the object of the kind", changes: 1, files: files("apps/moved/gizmo.yaml", "apiVersion: again.example.com/v1\nkind: Gizmo\nmetadata: {name: one}\nspec: {size: 2}\n")},
		{name: "split off a Kustomization", changes: 2, files: files("clusters/test/extra.yaml", teamKustomization("extra", "./apps/extra"), "apps/extra/all.yaml", configMap("extra", "a: b"))},
		{name: "remove the Kustomizations", changes: 5, files: files("clusters/test/extra.yaml", "", k, "")},
	}
}
