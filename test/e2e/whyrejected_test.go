package e2e_test

import (
	"strings"
)

// rejections lists manifests that the API server rejects.
func rejections() []failure {
	const badPort, goodPort = "ports: [{port: 99999, targetPort: 8080}]", "ports: [{port: 8080}]"
	const web = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 0\n  selector: {matchLabels: {app: web}}\n" +
		"  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: \"IMAGE\"}]}}\n"
	return []failure{
		{
			name: "image-required", nightly: true, root: "Kustomization/app", code: "invalid", files: map[string]string{"web.yaml": strings.ReplaceAll(web, "IMAGE", "")},
			says: []string{
				"API server rejected Deployment/${NS}/web: spec.template.spec.containers[0].image: Required value",
				"fix .spec.template.spec.containers[0].image of Deployment/${NS}/web in ${PATH}/web.yaml, commit and push",
			},
			fix: fixed("image-required", map[string]string{"web.yaml": strings.ReplaceAll(web, "IMAGE", "example.com/web:1")}),
		},
		{
			name: "sops-web", nightly: true, root: "Kustomization/app", code: "invalid", files: map[string]string{"deep/service.yaml": service("sops-web", badPort)},
			says: []string{"Service/${NS}/sops-web: spec.ports[0].port: Invalid value: 99999", "fix .spec.ports[0].port of Service/${NS}/sops-web in ${PATH}/deep/service.yaml"},
			fix:  fixed("sops-web", map[string]string{"deep/service.yaml": service("sops-web", goodPort)}),
		},
		{
			name: "immutable-cache", nightly: true, root: "Kustomization/app", code: "invalid", files: map[string]string{"service.yaml": service("immutable-cache", badPort)},
			says: []string{"fix .spec.ports[0].port of Service/${NS}/immutable-cache"}, never: []string{"force"},
			fix: fixed("immutable-cache", map[string]string{"service.yaml": service("immutable-cache", goodPort)}),
		},
		{
			name: "immutable-push", nightly: true, root: "Kustomization/app", code: "invalid", files: map[string]string{"service.yaml": service("immutable-push", "type: Wrong, "+goodPort)},
			says: []string{"fix .spec.type of Service/${NS}/immutable-push"}, never: []string{"force"},
			broken: true,
		},
		{
			name: "conflicting-path", nightly: true, root: "Kustomization/app", code: "invalid",
			files: map[string]string{"ingress.yaml": "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web}\nspec: {rules: [{http: {paths: [{path: \"conflicts with: field is immutable\", pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}\n"},
			says:  []string{"fix .spec.rules[0].http.paths[0].path of Ingress/${NS}/web in ${PATH}/ingress.yaml"}, never: []string{"field manager", "force"},
			broken: true,
		},
		{
			name: "selector", nightly: true, root: "Kustomization/app", code: "immutable", files: map[string]string{"web.yaml": deployment("web", "web", 0, "example.com/web:1")},
			says: []string{
				"field is immutable: .spec.selector of Deployment/${NS}/web", "revert .spec.selector of Deployment/${NS}/web in ${PATH}/web.yaml",
				"kustomize.toolkit.fluxcd.io/force: enabled on it, which deletes and recreates Deployment/${NS}/web: its pods are stopped",
			},
			then: func(f *fixture) {
				f.git.commit("Select others", map[string]string{"cases/selector/web.yaml": deployment("web", "other", 0, "example.com/web:1")})
				_, _, _ = f.shell.try("flux", "reconcile", "kustomization", "app", "-n", f.namespace, "--with-source")
			},
			fix: func(f *fixture) {
				manifest := strings.Replace(deployment("web", "other", 0, "example.com/web:1"), "metadata: {name: web", "metadata: {annotations: {kustomize.toolkit.fluxcd.io/force: enabled}, name: web", 1)
				f.git.commit("Recreate web", map[string]string{"cases/selector/web.yaml": manifest})
			},
		},
	}
}

// namespaceRejections lists manifests that a namespace or an admission webhook does not allow.
func namespaceRejections() []failure {
	return []failure{
		{
			name: "terminating", root: "Kustomization/app", code: "namespace-terminating", says: []string{"namespace ${NS}-ending is being deleted"}, never: []string{"RoleBinding"},
			files:   map[string]string{"settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: ${NS}-ending}\n"},
			objects: kustomizationWith("") + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: ${NS}-ending}\n",
			then: func(f *fixture) {
				f.shell.run("kubectl", "-n", f.namespace+"-ending", "apply", "-f", tempFile(f.t, "hold.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hold, finalizers: [example.com/hold]}\n"))
				f.shell.run("kubectl", "delete", "namespace", f.namespace+"-ending", "--wait=false")
				f.t.Cleanup(func() {
					_, _, _ = f.shell.try("kubectl", "-n", f.namespace+"-ending", "patch", "configmap", "hold", "--type=merge", `-p={"metadata":{"finalizers":null}}`)
				})
				f.shell.run("kubectl", "-n", f.namespace+"-ending", "wait", waitFlag, "--for=delete", "configmap", "settings")
				_, _, _ = f.shell.try("flux", "reconcile", "kustomization", "app", "-n", f.namespace)
			},
			broken: true,
		},
		{
			name: "limits", root: "Kustomization/app", code: "limit-range", never: []string{"RoleBinding"},
			says:    []string{"LimitRange of namespace ${NS} does not allow PersistentVolumeClaim/${NS}/data: maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 5Gi", "in ${PATH}/claim.yaml"},
			files:   map[string]string{"claim.yaml": "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 5Gi}}}\n"},
			objects: "apiVersion: v1\nkind: LimitRange\nmetadata: {name: small}\nspec: {limits: [{type: PersistentVolumeClaim, max: {storage: 1Gi}}]}\n---\n${DEFAULT}",
			broken:  true,
		},
		{
			name: "webhook", root: "Kustomization/app", code: "webhook-down", says: []string{"admission webhook conflict.example.com cannot be called"}, files: map[string]string{"settings.yaml": plainMap},
			objects: `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: ${NS}}
webhooks:
- name: conflict.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: gone, namespace: ${NS}}}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ${NS}}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]
---
${DEFAULT}`,
			fix: func(f *fixture) {
				f.shell.run("kubectl", "patch", "validatingwebhookconfiguration", f.namespace, "--type=json", `-p=[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}]`)
			},
		},
	}
}
