package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/test/support/testsops"
)

// diffCase is a Kustomization in its own namespace, and a change to it.
type diffCase struct {
	name string
	// nightly is set for cases with the same actions as a case of the e2e tier.
	nightly bool
	// spec is added to the spec of the Kustomization.
	spec          string
	before, after map[string]string
	// vars lists additional lines of a Secret in flux-system.
	vars string
	// anywhere omits targetNamespace.
	anywhere bool
	// setup contains additional objects besides the Kustomization.
	setup string
	// children lists the Kustomizations in flux-system that it applies and diff follows;
	// gone lists the ones that the change removes.
	children, gone []string
	// live changes the cluster directly before the files change.
	live func(*fixture)
	want map[string]diff.Action
	// fails is set if the controller cannot apply the change.
	fails bool
}

// kustomization returns the Kustomization of the case with its namespaces and dependencies.
func (c diffCase) kustomization() string {
	spec := c.spec
	if !strings.Contains(spec, "prune:") {
		spec += "\n  prune: true"
	}
	if !strings.Contains(spec, "targetNamespace") && !c.anywhere {
		spec += fmt.Sprintf("\n  targetNamespace: %s", c.name)
	}
	return fmt.Sprintf(`apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: v1
kind: Secret
metadata: {name: %[1]s-vars, namespace: flux-system}
stringData: {secret_word: open-sesame, %[3]s}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %[1]s, namespace: flux-system}
spec:
  interval: 1h
  retryInterval: 1h
  path: ./cases/%[1]s
  sourceRef: {kind: GitRepository, name: flux-system}
%[2]s
---
%[4]s
`, c.name, strings.TrimPrefix(spec, "\n"), c.vars, c.setup)
}

func mark(key, value string) string {
	return fmt.Sprintf(", annotations: {kustomize.toolkit.fluxcd.io/%s: %s}", key, value)
}

func kustomizationYAML(lines ...string) string {
	return "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n" + strings.Join(lines, "\n") + "\n"
}

const gadgetDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.diff.example.com}
spec:
  group: diff.example.com
  names: {kind: Gadget, plural: gadgets}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
---
apiVersion: diff.example.com/v1
kind: Gadget
metadata: {name: one}
spec: {size: 1}
`

func diffCases(f *fixture) []diffCase {
	f.t.Helper()
	return slices.Concat(diffBuildCases(), diffApplyCases(), diffLiveCases(), diffOwnerCases(f), []diffCase{sealedCase(f.t)})
}

// sealedCase contains Secrets encrypted with SOPS: one with another value, one with the
// same value encrypted again.
func sealedCase(t *testing.T) diffCase {
	t.Helper()
	keys, err := testsops.New()
	if err != nil {
		t.Fatal(err)
	}
	secret := func(name, value string) string {
		manifest, err := keys.Secret(name, "password", value)
		if err != nil {
			t.Fatal(err)
		}
		return manifest
	}
	return diffCase{
		name: "sealed", spec: "\n  decryption: {provider: sops, secretRef: {name: sealed-vars}}",
		vars:   "keys.agekey: " + keys.Identity.String(),
		before: map[string]string{"changed.yaml": secret("changed", "one"), "again.yaml": secret("again", "same")},
		after:  map[string]string{"changed.yaml": secret("changed", "two"), "again.yaml": secret("again", "same"), "new.yaml": secret("new", "three")},
		want:   map[string]diff.Action{"Secret/sealed/changed": diff.Changed, "Secret/sealed/new": diff.Created},
	}
}

// diffBuildCases cover the build.
func diffBuildCases() []diffCase {
	return []diffCase{
		{
			name:   "patch",
			before: map[string]string{"kustomization.yaml": kustomizationYAML("resources: [all.yaml]"), "all.yaml": deployment("web", "web", 1, "web:1") + configMap("same", "a: b")},
			after:  map[string]string{"kustomization.yaml": kustomizationYAML("resources: [all.yaml]", "patches:", "- target: {kind: Deployment}", "  patch: |-", "    - {op: replace, path: /spec/replicas, value: 3}")},
			want:   map[string]diff.Action{"Deployment/patch/web": diff.Changed},
		},
		{
			name: "components", nightly: true, spec: "\n  components: [../components-extra]\n  ignoreMissingComponents: true",
			before: map[string]string{
				"kustomization.yaml": kustomizationYAML("resources: [all.yaml]"), "all.yaml": configMap("base", "a: b"),
				"../components-extra/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [extra.yaml]\n",
				"../components-extra/extra.yaml":         configMap("extra", "a: b"),
			},
			after: map[string]string{"../components-extra/extra.yaml": configMap("extra", "a: c") + configMap("more", "a: b")},
			want:  map[string]diff.Action{"ConfigMap/components/extra": diff.Changed, "ConfigMap/components/more": diff.Created},
		},
		{
			name:   "substitution",
			spec:   "\n  postBuild: {substitute: {region: eu}, substituteFrom: [{kind: Secret, name: substitution-vars}]}",
			before: map[string]string{"all.yaml": configMap("plain", `a: "${region}"`) + configMap("hidden", "a: one") + configMap("off", `a: "$${region}"`)},
			after:  map[string]string{"all.yaml": configMap("plain", `a: "${region}-west"`) + configMap("hidden", `a: "${secret_word}", b: "${other:=default}"`) + configMap("off", `a: "$${region}"`)},
			want:   map[string]diff.Action{"ConfigMap/substitution/plain": diff.Changed, "ConfigMap/substitution/hidden": diff.Changed},
		},
		{
			name: "target", nightly: true, spec: "\n  targetNamespace: target\n  namePrefix: pre-\n  commonMetadata: {labels: {team: blue}, annotations: {note: common}}\n  images: [{name: web, newTag: \"9\"}]",
			before: map[string]string{"all.yaml": configMap("one", "a: b") + deployment("web", "web", 1, "web:1")},
			after:  map[string]string{"all.yaml": configMap("one", "a: c") + deployment("web", "web", 2, "web:1") + configMap("two", "a: b")},
			want: map[string]diff.Action{
				"ConfigMap/target/pre-one": diff.Changed, "Deployment/target/pre-web": diff.Changed, "ConfigMap/target/pre-two": diff.Created,
			},
		},
		thousand(),
	}
}

// thousand is a large Kustomization in which a few objects change.
func thousand() diffCase {
	c := diffCase{name: "thousand", nightly: true, want: map[string]diff.Action{}, before: map[string]string{}, after: map[string]string{}}
	for file := range 10 {
		var before, after strings.Builder
		for i := range 100 {
			name := fmt.Sprintf("c-%d-%02d", file, i)
			before.WriteString(configMap(name, "a: b"))
			ref := "ConfigMap/thousand/" + name
			switch i {
			case 7:
				after.WriteString(configMap(name, "a: c"))
				c.want[ref] = diff.Changed
			case 8:
				c.want[ref] = diff.Pruned
			default:
				after.WriteString(configMap(name, "a: b"))
			}
		}
		added := fmt.Sprintf("new-%d", file)
		after.WriteString(configMap(added, "a: b"))
		c.want["ConfigMap/thousand/"+added] = diff.Created
		path := fmt.Sprintf("all-%d.yaml", file)
		c.before[path], c.after[path] = before.String(), after.String()
	}
	return c
}

// diffApplyCases cover the apply.
func diffApplyCases() []diffCase {
	return []diffCase{
		{
			name:   "prune",
			before: map[string]string{"all.yaml": configMap("stays", "a: b") + configMap("goes", "a: b") + configMap("kept", "a: b", mark("prune", "disabled"))},
			after:  map[string]string{"all.yaml": configMap("stays", "a: b")},
			want:   map[string]diff.Action{"ConfigMap/prune/goes": diff.Pruned, "ConfigMap/prune/kept": diff.Skipped},
		},
		{
			name: "noprune", nightly: true, spec: "\n  prune: false",
			before: map[string]string{"all.yaml": configMap("stays", "a: b") + configMap("left", "a: b")},
			after:  map[string]string{"all.yaml": configMap("stays", "a: c")},
			want:   map[string]diff.Action{"ConfigMap/noprune/stays": diff.Changed, "ConfigMap/noprune/left": diff.Skipped},
		},
		{
			name: "force", spec: "\n  force: true",
			before: map[string]string{"all.yaml": deployment("web", "web", 1, "web:1") + configMap("same", "a: b"), "fixed.yaml": immutableMap("old")},
			after:  map[string]string{"all.yaml": deployment("web", "other", 1, "web:1") + configMap("same", "a: b"), "fixed.yaml": immutableMap("new")},
			want:   map[string]diff.Action{"Deployment/force/web": diff.Recreated, "ConfigMap/force/fixed": diff.Recreated},
		},
		{
			name:   "marks",
			before: map[string]string{"all.yaml": configMap("merge", "a: b") + configMap("present", "a: b") + configMap("ignored", "a: b") + configMap("disabled", "a: b") + "immutable: true\n" + configMap("forced", "a: b")},
			after: map[string]string{"all.yaml": configMap("merge", "a: c", mark("ssa", "Merge")) + configMap("present", "a: c", mark("ssa", "IfNotPresent")) +
				configMap("ignored", "a: c", mark("ssa", "Ignore")) + configMap("disabled", "a: c", mark("reconcile", "disabled")) +
				configMap("absent", "a: c", mark("ssa", "IfNotPresent")) + "immutable: true\n" + configMap("forced", "a: c", mark("force", "enabled"))},
			live: func(f *fixture) {
				f.shell.run("kubectl", "--namespace=marks", "patch", "configmap", "merge", "--type=merge", `--patch={"data":{"by":"hand"}}`)
			},
			want: map[string]diff.Action{
				"ConfigMap/marks/merge": diff.Changed, "ConfigMap/marks/present": diff.Skipped, "ConfigMap/marks/ignored": diff.Skipped,
				"ConfigMap/marks/disabled": diff.Skipped, "ConfigMap/marks/absent": diff.Created, "ConfigMap/marks/forced": diff.Recreated,
			},
		},
	}
}

// diffLiveCases cover the apply of objects that the cluster has changed or does not have.
func diffLiveCases() []diffCase {
	return []diffCase{
		{
			name: "rules", nightly: true, spec: "\n  ignore:\n  - {paths: [/spec/replicas], target: {kind: Deployment}}\n  - {paths: [/data/ignored]}",
			before: map[string]string{"all.yaml": deployment("web", "web", 1, "web:1") + deployment("other", "other", 1, "web:1") + configMap("only", "ignored: a") + configMap("both", "ignored: a, counts: a")},
			after:  map[string]string{"all.yaml": deployment("web", "web", 1, "web:1") + deployment("other", "other", 1, "web:2") + configMap("only", "ignored: b") + configMap("both", "ignored: b, counts: b")},
			live: func(f *fixture) {
				f.shell.run("kubectl", "--namespace=rules", "scale", "deployment", "web", "other", "--replicas=4")
			},
			want: map[string]diff.Action{"Deployment/rules/other": diff.Changed, "ConfigMap/rules/both": diff.Changed},
		},
		{
			name: "hand",
			before: map[string]string{"all.yaml": deployment("web", "web", 1, "web:1") + configMap("data", "a: b") + configMap("labeled", "a: b") +
				"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: defaulted}\nspec: {selector: {matchLabels: {app: d}}, template: {metadata: {labels: {app: d}}, spec: {containers: [{name: app, image: app}]}}}\n"},
			live: func(f *fixture) {
				f.shell.run("kubectl", "--namespace=hand", "set", "image", "deployment/web", "app=web:by-hand")
				f.shell.run("kubectl", "--namespace=hand", "patch", "configmap", "data", "--type=merge", `--patch={"data":{"by":"hand"}}`)
				f.shell.run("kubectl", "--namespace=hand", "label", "configmap", "labeled", "by=hand")
				f.shell.run("kubectl", "--namespace=hand", "patch", "deployment", "defaulted", "--type=merge", `--patch={"spec":{"replicas":3,"minReadySeconds":5}}`)
			},
			after: map[string]string{},
			want: map[string]diff.Action{
				"Deployment/hand/web": diff.Changed, "ConfigMap/hand/data": diff.Changed, "ConfigMap/hand/labeled": diff.Changed, "Deployment/hand/defaulted": diff.Changed,
			},
		},
		{
			name:   "immutable",
			before: map[string]string{"all.yaml": configMap("other", "a: b") + configMap("goes", "a: b"), "fixed.yaml": immutableMap("old")},
			after:  map[string]string{"all.yaml": configMap("other", "a: c"), "fixed.yaml": immutableMap("new")},
			want: map[string]diff.Action{
				"ConfigMap/immutable/fixed": diff.Failed, "ConfigMap/immutable/other": diff.Changed, "ConfigMap/immutable/goes": diff.Skipped,
			},
			fails: true,
		},
		{
			name: "newspace", anywhere: true,
			before: map[string]string{"all.yaml": configMap("old", "a: b", ", namespace: newspace")},
			after: map[string]string{"new.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: diff-brought}\n---\n" +
				configMap("config", "a: b", ", namespace: diff-brought") + "apiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: diff-brought}\nstringData: {password: new}\n"},
			want: map[string]diff.Action{
				"Namespace/diff-brought": diff.Created, "ConfigMap/diff-brought/config": diff.Created, "Secret/diff-brought/login": diff.Created,
			},
		},
		{
			name: "newkind", nightly: true,
			before: map[string]string{"all.yaml": configMap("old", "a: b")},
			after:  map[string]string{"new.yaml": gadgetDefinition},
			want: map[string]diff.Action{
				"CustomResourceDefinition/gadgets.diff.example.com": diff.Created, "Gadget/newkind/one": diff.Created,
			},
		},
		{
			name: "secret", nightly: true,
			before: map[string]string{"all.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: old, user: same}\n"},
			after:  map[string]string{"all.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: new, user: same}\n"},
			want:   map[string]diff.Action{"Secret/secret/login": diff.Changed},
		},
	}
}

// immutableMap returns a ConfigMap that cannot be changed.
func immutableMap(value string) string { return "immutable: true\n" + configMap("fixed", "a: "+value) }
