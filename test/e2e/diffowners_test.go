package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/test/support/testsops"
)

// diffOwnerCases cover service accounts, remote clusters, and the creation and
// deletion of Kustomizations and CustomResourceDefinitions.
func diffOwnerCases(f *fixture) []diffCase {
	f.t.Helper()
	return append(accountCases(), redefinedCase(), goingCase(), childKeysCase(f.t), remoteCase(f))
}

// account has permissions to change the ConfigMaps of a namespace, and nothing else.
func account(name string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: ServiceAccount
metadata: {name: %[1]s, namespace: flux-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: deployer, namespace: %[1]s}
rules: [{apiGroups: [""], resources: [configmaps], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: deployer, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: deployer}
subjects: [{kind: ServiceAccount, name: %[1]s, namespace: flux-system}]
`, name)
}

func accountCases() []diffCase {
	return []diffCase{
		{
			name: "allowed", nightly: true, spec: "\n  serviceAccountName: allowed", setup: account("allowed"),
			before: map[string]string{"all.yaml": configMap("one", "a: b") + configMap("goes", "a: b")},
			after:  map[string]string{"all.yaml": configMap("one", "a: c") + configMap("two", "a: b")},
			want: map[string]diff.Action{
				"ConfigMap/allowed/one": diff.Changed, "ConfigMap/allowed/two": diff.Created, "ConfigMap/allowed/goes": diff.Pruned,
			},
		},
		{
			name: "denied", spec: "\n  serviceAccountName: denied", setup: account("denied"),
			before: map[string]string{"all.yaml": configMap("one", "a: b") + configMap("goes", "a: b")},
			after: map[string]string{
				"all.yaml":    configMap("one", "a: c"),
				"secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: new}\n",
			},
			want: map[string]diff.Action{
				"ConfigMap/denied/one": diff.Changed, "Secret/denied/login": diff.Failed, "ConfigMap/denied/goes": diff.Skipped,
			},
			fails: true,
		},
	}
}

// redefinedCase changes a CustomResourceDefinition, which gets another version and field,
// and objects that use them.
func redefinedCase() diffCase {
	definition := func(fields string, versions ...string) string {
		var list strings.Builder
		for i, version := range versions {
			fmt.Fprintf(&list, "  - {name: %s, served: true, storage: %v, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%s}}}}}}\n", version, i == 0, fields)
		}
		return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gizmos.again.example.com}\nspec:\n" +
			"  group: again.example.com\n  names: {kind: Gizmo, plural: gizmos}\n  scope: Namespaced\n  versions:\n" + list.String() + "---\n"
	}
	gizmo := func(version, name, spec string) string {
		return fmt.Sprintf("apiVersion: again.example.com/%s\nkind: Gizmo\nmetadata: {name: %s}\nspec: {%s}\n---\n", version, name, spec)
	}
	return diffCase{
		name: "redefined", nightly: true,
		before: map[string]string{"all.yaml": definition("size: {type: integer}", "v1") +
			gizmo("v1", "grows", "size: 1") + gizmo("v1", "rises", "size: 1") + gizmo("v1", "renamed", "size: 1")},
		after: map[string]string{"all.yaml": definition("size: {type: integer}, color: {type: string}", "v1", "v2") +
			gizmo("v1", "grows", "size: 1, color: red") + gizmo("v2", "rises", "size: 2") + gizmo("v2", "renamed", "size: 1") + gizmo("v2", "fresh", "color: blue")},
		want: map[string]diff.Action{
			"CustomResourceDefinition/gizmos.again.example.com": diff.Changed, "Gizmo/redefined/grows": diff.Changed,
			"Gizmo/redefined/rises": diff.Changed, "Gizmo/redefined/fresh": diff.Created,
		},
	}
}

// goingCase removes a Kustomization that applies a Kustomization and a release.
func goingCase() diffCase {
	child := func(name, spec string) string {
		return fmt.Sprintf("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: %s, namespace: flux-system}\n"+
			"spec: {interval: 1h, path: ./cases/%[1]s, wait: true, sourceRef: {kind: GitRepository, name: flux-system}, %s}\n---\n", name, spec)
	}
	release := `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: going}
spec: {interval: 1h, chart: {spec: {chart: ./cases/going-chart, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}}
---
`
	return diffCase{
		name: "going", spec: "\n  wait: true", anywhere: true,
		before: map[string]string{
			"all.yaml":                             configMap("stays", "a: b", ", namespace: going"),
			"child.yaml":                           child("going-child", "prune: false, deletionPolicy: WaitForTermination, targetNamespace: going") + child("going-orphan", "prune: true, deletionPolicy: Orphan, targetNamespace: going"),
			"../going-child/all.yaml":              configMap("one", "a: b") + configMap("kept", "a: b", mark("prune", "disabled")) + release,
			"../going-orphan/all.yaml":             configMap("orphaned", "a: b"),
			"../going-chart/Chart.yaml":            "apiVersion: v2\nname: web\nversion: 1.0.0\n",
			"../going-chart/templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: released}\ndata: {a: b}\n",
			"../going-chart/templates/claim.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: claimed, annotations: {helm.sh/resource-policy: keep}}\n",
		},
		after: map[string]string{"child.yaml": ""},
		gone:  []string{"going-child", "going-orphan"},
		want: map[string]diff.Action{
			"Kustomization/flux-system/going-child": diff.Pruned, "Kustomization/flux-system/going-orphan": diff.Pruned,
			"ConfigMap/going/one": diff.Pruned, "ConfigMap/going/kept": diff.Skipped, "HelmRelease/going/web": diff.Pruned,
			"ConfigMap/going/released": diff.Pruned, "ConfigMap/going/claimed": diff.Skipped, "ConfigMap/going/orphaned": diff.Skipped,
		},
	}
}

// childKeysCase contains a child that decrypts with its own key.
func childKeysCase(t *testing.T) diffCase {
	t.Helper()
	keys, err := testsops.New()
	if err != nil {
		t.Fatal(err)
	}
	secret := func(value string) string {
		manifest, err := keys.Secret("login", "password", value)
		if err != nil {
			t.Fatal(err)
		}
		return manifest
	}
	return diffCase{
		name: "keys", nightly: true, spec: "\n  wait: true", vars: "keys.agekey: " + keys.Identity.String(), anywhere: true,
		setup: "apiVersion: v1\nkind: Secret\nmetadata: {name: keys-words, namespace: flux-system}\nstringData: {child_word: sesame}\n",
		before: map[string]string{
			"all.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: keys-child, namespace: flux-system}\n" +
				"spec: {interval: 1h, prune: true, path: ./cases/keys-child, targetNamespace: keys, sourceRef: {kind: GitRepository, name: flux-system}, " +
				"decryption: {provider: sops, secretRef: {name: keys-vars}}, postBuild: {substituteFrom: [{kind: Secret, name: keys-words}]}}\n",
			"../keys-child/login.yaml":  secret("one"),
			"../keys-child/config.yaml": configMap("config", "a: b"),
		},
		after: map[string]string{
			"../keys-child/login.yaml":  secret("two"),
			"../keys-child/config.yaml": configMap("config", `a: "${child_word}"`),
		},
		children: []string{"keys-child"},
		want:     map[string]diff.Action{"Secret/keys/login": diff.Changed, "ConfigMap/keys/config": diff.Changed},
	}
}

// remoteCase applies to the cluster of a kubeconfig.
func remoteCase(f *fixture) diffCase {
	f.t.Helper()
	content, err := os.ReadFile(f.cluster.Kubeconfig)
	if err != nil {
		f.t.Fatal(err)
	}
	quoted, err := json.Marshal(string(content))
	if err != nil {
		f.t.Fatal(err)
	}
	return diffCase{
		name: "remote", nightly: true, spec: "\n  kubeConfig: {secretRef: {name: remote-vars, key: config}}", vars: "config: " + string(quoted),
		before: map[string]string{"all.yaml": configMap("one", "a: b") + configMap("goes", "a: b")},
		after:  map[string]string{"all.yaml": configMap("one", "a: c") + configMap("two", "a: b")},
		want: map[string]diff.Action{
			"ConfigMap/remote/one": diff.Changed, "ConfigMap/remote/two": diff.Created, "ConfigMap/remote/goes": diff.Pruned,
		},
	}
}
