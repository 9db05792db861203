package e2e_test

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// TestCauseRows checks failures whose messages contain words of other failures.
func TestCauseRows(t *testing.T) {
	t.Parallel()
	s, address := newRows(t, "--components-extra=image-reflector-controller,image-automation-controller")
	s.push("cause/app", "v1", "application/vnd.cncf.flux.config.v1+json", "application/vnd.cncf.flux.content.v1.tar+gzip", s.archive(map[string]string{"settings.yaml": plainMap}))
	s.rows(t, "cause-", address, slices.Concat(rejectedRows(), fetchRows(), buildRows(), automationRows(), helmRows(), s.pushRows()), nil)
}

// fixed returns a fix that pushes files to the folder of the row, or removes those
// that are empty.
func fixed(name string, files map[string]string) func(*story) {
	return func(s *story) {
		s.Helper()
		pushed := map[string]string{}
		for file, content := range files {
			pushed[path.Join("cases", name, file)] = content
		}
		s.commit("Fix "+name, pushed)
	}
}

func service(name, spec string) string {
	return "apiVersion: v1\nkind: Service\nmetadata: {name: " + name + "}\nspec: {selector: {app: web}, " + spec + "}\n"
}

// rejectedRows are manifests that the API server rejects.
func rejectedRows() []causeRow {
	const badPort, goodPort = "ports: [{port: 99999, targetPort: 8080}]", "ports: [{port: 8080}]"
	const web = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 0\n  selector: {matchLabels: {app: web}}\n" +
		"  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: \"IMAGE\"}]}}\n"
	return []causeRow{
		{
			name: "image-required", root: "Kustomization/app", code: "invalid", files: map[string]string{"web.yaml": strings.ReplaceAll(web, "IMAGE", "")},
			says: []string{
				"API server rejected Deployment/${NS}/web: spec.template.spec.containers[0].image: Required value",
				"fix .spec.template.spec.containers[0].image of Deployment/${NS}/web in ${PATH}/web.yaml, commit and push",
			},
			fix: fixed("image-required", map[string]string{"web.yaml": strings.ReplaceAll(web, "IMAGE", "example.com/web:1")}),
		},
		{
			name: "sops-web", root: "Kustomization/app", code: "invalid", files: map[string]string{"deep/service.yaml": service("sops-web", badPort)},
			says: []string{"Service/${NS}/sops-web: spec.ports[0].port: Invalid value: 99999", "fix .spec.ports[0].port of Service/${NS}/sops-web in ${PATH}/deep/service.yaml"},
			fix:  fixed("sops-web", map[string]string{"deep/service.yaml": service("sops-web", goodPort)}),
		},
		{
			name: "immutable-cache", root: "Kustomization/app", code: "invalid", files: map[string]string{"service.yaml": service("immutable-cache", badPort)},
			says: []string{"fix .spec.ports[0].port of Service/${NS}/immutable-cache"}, never: []string{"force"},
			fix: fixed("immutable-cache", map[string]string{"service.yaml": service("immutable-cache", goodPort)}),
		},
		{
			name: "immutable-push", root: "Kustomization/app", code: "invalid", files: map[string]string{"service.yaml": service("immutable-push", "type: Wrong, "+goodPort)},
			says: []string{"fix .spec.type of Service/${NS}/immutable-push"}, never: []string{"force"},
			broken: true,
		},
		{
			name: "conflicting-path", root: "Kustomization/app", code: "invalid",
			files: map[string]string{"ingress.yaml": "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web}\nspec: {rules: [{http: {paths: [{path: \"conflicts with: field is immutable\", pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}\n"},
			says:  []string{"fix .spec.rules[0].http.paths[0].path of Ingress/${NS}/web in ${PATH}/ingress.yaml"}, never: []string{"field manager", "force"},
			broken: true,
		},
		{
			name: "selector", root: "Kustomization/app", code: "immutable", files: map[string]string{"web.yaml": deployment("web", "web", 0, "example.com/web:1")},
			says: []string{
				"field is immutable: .spec.selector of Deployment/${NS}/web", "revert .spec.selector of Deployment/${NS}/web in ${PATH}/web.yaml",
				"kustomize.toolkit.fluxcd.io/force: enabled on it, which deletes and recreates Deployment/${NS}/web: its pods are stopped",
			},
			then: func(s *story) {
				s.commit("Select others", map[string]string{"cases/selector/web.yaml": deployment("web", "other", 0, "example.com/web:1")})
				_, _, _ = s.try("flux", "reconcile", "kustomization", "app", "-n", s.namespace, "--with-source")
			},
			fix: func(s *story) {
				manifest := strings.Replace(deployment("web", "other", 0, "example.com/web:1"), "metadata: {name: web", "metadata: {annotations: {kustomize.toolkit.fluxcd.io/force: enabled}, name: web", 1)
				s.commit("Recreate web", map[string]string{"cases/selector/web.yaml": manifest})
			},
		},
		{
			name: "terminating", root: "Kustomization/app", code: "namespace-terminating", says: []string{"namespace ending is being deleted"}, never: []string{"RoleBinding"},
			files:   map[string]string{"settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: ending}\n"},
			objects: kustomizationWith("") + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: ending}\n",
			then: func(s *story) {
				s.run("kubectl", "-n", "ending", "apply", "-f", s.write("hold.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hold, finalizers: [example.com/hold]}\n"))
				s.run("kubectl", "delete", "namespace", "ending", "--wait=false")
				s.Cleanup(func() {
					_, _, _ = s.try("kubectl", "-n", "ending", "patch", "configmap", "hold", "--type=merge", `-p={"metadata":{"finalizers":null}}`)
				})
				s.run("kubectl", "-n", "ending", "wait", "--for=delete", "configmap", "settings")
				_, _, _ = s.try("flux", "reconcile", "kustomization", "app", "-n", s.namespace)
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
metadata: {name: cause-webhook}
webhooks:
- name: conflict.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: gone, namespace: cause-webhook}}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: cause-webhook}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]
---
${DEFAULT}`,
			fix: func(s *story) {
				s.run("kubectl", "patch", "validatingwebhookconfiguration", "cause-webhook", "--type=json", `-p=[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}]`)
			},
		},
	}
}

// buildRows are Kustomizations that fail before or after the apply.
func buildRows() []causeRow {
	return []causeRow{
		{
			name: "sops-operator", root: "Kustomization/app", code: "health", files: map[string]string{"settings.yaml": plainMap},
			objects: kustomizationWith(`healthChecks: [{apiVersion: apps/v1, kind: Deployment, name: sops-operator, namespace: "${NS}"}]`),
			says: []string{
				"Deployment/${NS}/sops-operator does not exist",
				"add Deployment/${NS}/sops-operator to the source, or remove it from .spec.healthChecks of Kustomization/${NS}/app",
			},
			never: []string{"decrypt"},
			fix:   fixed("sops-operator", map[string]string{"operator.yaml": deployment("sops-operator", "sops", 0, "example.com/sops:1")}),
		},
		{
			name: "sops-secret", root: "Kustomization/app", code: "secret-missing", files: map[string]string{"secret.yaml": encryptedSecret},
			objects: kustomizationWith("decryption: {provider: sops, secretRef: {name: sops-age}}"),
			says:    []string{"Secret ${NS}/sops-age, referenced by .spec.decryption.secretRef.name, does not exist"}, never: []string{"do not decrypt"},
			given: map[string]func(*story) string{"<key>": value("identity.agekey"), "<file>": fileWith("no key\n")},
			fails: map[string]string{"flux reconcile kustomization app -n ${NS} --with-source": "Kustomization ${NS}/app is not ready: "}, // the Secret is there, and opens nothing
		},
		{
			name: "gizmo", root: "Kustomization/app", code: "api-missing", never: []string{"flux migrate"},
			files: map[string]string{"gizmo.yaml": "apiVersion: nowhere.example.com/v1\nkind: Gizmo\nmetadata: {name: one}\n"},
			says: []string{
				"the cluster does not serve Gizmo in version nowhere.example.com/v1, which is used in ${PATH}/gizmo.yaml",
				"install the CRD of kind Gizmo of group nowhere.example.com",
			},
			fix: func(s *story) {
				crd := strings.NewReplacer("delivery.example.com", "nowhere.example.com", "Canary", "Gizmo", "canaries", "gizmos").Replace(canaryDefinition)
				s.run("kubectl", "apply", "-f", s.write("crd.yaml", crd))
				s.run("kubectl", "wait", "--for=condition=Established", "crd", "gizmos.nowhere.example.com")
			},
		},
		{
			name: "provided", root: "Kustomization/app", code: "api-missing", never: []string{"flux migrate"},
			files: map[string]string{
				"app/gizmo.yaml":  "apiVersion: cause.example.com/v1\nkind: Gizmo\nmetadata: {name: one}\n",
				"crds/other.yaml": strings.NewReplacer("delivery.example.com", "cause.example.com").Replace(canaryDefinition),
			},
			objects: strings.ReplaceAll(kustomizationWith("force: false"), "${PATH}", "${PATH}/app") + "---\n" +
				applied("crds", "GitRepository", "app", "${PATH}/crds", ""),
			says:   []string{"add Kustomization/${NS}/crds, which applies CRDs of group cause.example.com, to .spec.dependsOn of Kustomization/${NS}/app"},
			broken: true,
		},
	}
}

// encryptedSecret has the form of a SOPS file that cannot be decrypted.
const encryptedSecret = "apiVersion: v1\nkind: Secret\nmetadata: {name: locked}\ndata: {a: \"ENC[AES256_GCM,data:AAAA,iv:AAAA,tag:AAAA,type:str]\"}\nsops:\n  mac: ENC[AES256_GCM,data:AAAA]\n  version: 3.10.0\n"

// fetchRows are sources whose URLs and revisions look like HTTP status codes.
func fetchRows() []causeRow {
	git := func(spec string) string {
		return "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: app}\nspec: {interval: 1h, timeout: 20s, " + spec + "}\n"
	}
	oci := func(spec string) string {
		return "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: app}\nspec: {interval: 1h, timeout: 20s, insecure: true, " + spec + "}\n"
	}
	gitSource, ociSource := []string{"gitrepository", "app"}, []string{"ocirepository", "app"}
	noCredentials := []string{"credentials", "secretRef"}
	patched := func(kind, spec string) func(s *story) {
		return func(s *story) {
			spec = strings.NewReplacer("${URL}", s.cluster.Env["FLUX_SANDBOX_GIT_URL"]+"/fleet.git", "${REGISTRY}", s.cluster.Env["FLUX_SANDBOX_REGISTRY"]).Replace(spec)
			s.run("kubectl", "-n", s.namespace, "patch", kind, "app", "--type=merge", `-p={"spec":{`+spec+`}}`)
		}
	}
	account := map[string]func(*story) string{"<user>": value("dev"), "<file>": fileWith("any")}
	return []causeRow{
		{name: "port-401", ask: gitSource, root: "GitRepository/app", code: "source-unreachable", objects: git(`url: "http://127.0.0.1:14012/fleet.git"`), says: []string{"cannot reach http://127.0.0.1:14012/fleet.git"}, never: noCredentials, fix: patched("gitrepository", `"url":"${URL}","secretRef":{"name":"git"},"ref":{"branch":"main"}`)},
		{name: "port-15401", ask: ociSource, root: "OCIRepository/app", code: "source-unreachable", objects: oci(`url: "oci://127.0.0.1:15401/app", ref: {tag: v1}`), says: []string{"cannot reach oci://127.0.0.1:15401/app"}, never: noCredentials, broken: true},
		{name: "port-14040", ask: gitSource, root: "GitRepository/app", code: "source-unreachable", objects: git(`url: "http://127.0.0.1:14040/not-found.git"`), says: []string{"cannot reach http://127.0.0.1:14040/not-found.git"}, never: noCredentials, broken: true},
		{
			name: "image-14040", ask: []string{"imagerepository", "app"}, root: "ImageRepository/app", code: "source-unreachable", says: []string{"check .spec.image of ImageRepository/${NS}/app"}, never: []string{"spec.url", "spec.ref"},
			objects: "apiVersion: image.toolkit.fluxcd.io/v1\nkind: ImageRepository\nmetadata: {name: app}\nspec: {interval: 1h, timeout: 5s, image: \"127.0.0.1:14040/app\", insecure: true}\n",
			broken:  true,
		},
		{
			name: "image-gone", ask: []string{"imagerepository", "app"}, root: "ImageRepository/app", code: "source-reference", says: []string{".spec.image of ImageRepository/${NS}/app"}, never: []string{"spec.url", "spec.ref"},
			objects: "apiVersion: image.toolkit.fluxcd.io/v1\nkind: ImageRepository\nmetadata: {name: app}\nspec: {interval: 1h, timeout: 5s, image: \"${REGISTRY}/cause/gone-401\", insecure: true}\n",
			fix:     patched("imagerepository", `"image":"${REGISTRY}/cause/app"`),
		},
		{name: "tag-14012", ask: gitSource, root: "GitRepository/app", code: "source-reference", objects: git(`url: "${URL}", secretRef: {name: git}, ref: {tag: build-14012}`), says: []string{"tag build-14012 not found in"}, never: noCredentials, fix: patched("gitrepository", `"ref":{"branch":"main","tag":null}`)},
		{
			name: "commit-401", ask: gitSource, root: "GitRepository/app", code: "source-reference", says: []string{"commit 4014014014014014014014014014014014014014 not found in"}, never: noCredentials,
			objects: git(`url: "${URL}", secretRef: {name: git}, ref: {branch: main, commit: "4014014014014014014014014014014014014014"}`),
			fix:     patched("gitrepository", `"ref":{"branch":"main","commit":null}`),
		},
		{
			name: "tag-20240119", ask: ociSource, root: "OCIRepository/app", code: "source-reference", says: []string{"tag 20240119 not found in oci://"}, never: noCredentials,
			objects: oci(`url: "oci://${REGISTRY}/cause/app", ref: {tag: "20240119"}`),
			fix:     patched("ocirepository", `"ref":{"tag":"v1"}`),
		},
		{
			name: "no-secret", ask: ociSource, root: "OCIRepository/app", code: "secret-missing", says: []string{"Secret ${NS}/gone, referenced by .spec.secretRef.name, does not exist"},
			objects: oci(`url: "oci://${REGISTRY}/cause/app", ref: {tag: v1}, secretRef: {name: gone}`),
			given:   account, fix: func(*story) {}, // the commands are enough
		},
	}
}

// automationRows are image automations that fail before the push to Git.
func automationRows() []causeRow {
	const update = `---
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImageUpdateAutomation
metadata: {name: app}
spec: {interval: 1h, sourceRef: {kind: GitRepository, name: push-config}, git: {checkout: {ref: {branch: main}}, commit: {author: {email: a@example.com}}, push: {branch: main}}, update: {path: ./}}
`
	git := func(secret string) string {
		return "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: push-config}\nspec: {interval: 1h, url: \"${URL}\", ref: {branch: main}, secretRef: {name: " + secret + "}}\n"
	}
	const wrong = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: wrong}\nstringData: {username: dev, password: guessed}\n"
	ask := []string{"imageupdateautomation", "app"}
	return []causeRow{
		{
			name: "password", ask: ask, root: "GitRepository/push-config", code: "source-authentication", objects: git("wrong") + wrong + update,
			says: []string{"rejects the credentials in Secret ${NS}/wrong"}, never: []string{"push rejected"},
			broken: true,
		},
		{
			name: "secret", ask: ask, root: "GitRepository/push-config", code: "secret-missing", objects: git("gone") + update,
			says:  []string{"Secret ${NS}/gone, referenced by .spec.secretRef.name, does not exist", "of GitRepository/${NS}/push-config"},
			given: map[string]func(*story) string{"<user>": value("dev"), "<file>": fileWith("correct horse")},
		},
		{
			name: "rotated", ask: ask, root: "ImageUpdateAutomation/app", code: "source-authentication",
			files: map[string]string{"settings.yaml": plainMap}, objects: "${DEFAULT}\n---\n" + git("rotated") + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: rotated}\nstringData: {username: dev, password: correct horse}\n",
			says: []string{"correct the Secret that .spec.secretRef of GitRepository/${NS}/push-config names"}, never: []string{"push rejected", "ImageUpdateAutomation/${NS}/app to its name"},
			then: func(s *story) {
				s.run("flux", "wait", "source", "git", "push-config", "-n", s.namespace)
				s.run("kubectl", "-n", s.namespace, "patch", "secret", "rotated", "--type=merge", `-p={"stringData":{"password":"guessed"}}`)
				s.run("kubectl", "-n", s.namespace, "apply", "-f", s.write("update.yaml", strings.TrimPrefix(update, "---\n")))
			},
			fix: func(s *story) {
				s.run("kubectl", "-n", s.namespace, "patch", "secret", "rotated", "--type=merge", `-p={"stringData":{"password":"correct horse"}}`)
			},
		},
	}
}

// helmRows are releases of charts with manifests that the API server rejects.
func helmRows() []causeRow {
	release := func(name, more string) string {
		return strings.ReplaceAll(chartAt("./cases/"+name+"/chart", more), "timeout: 10s", "timeout: 1m")
	}
	const next = "apiVersion: v2\nname: app\nversion: 2.0.0\n"
	const none = "resources: []\n"
	ask := []string{"helmrelease", "app"}
	return []causeRow{
		{
			name: "helm-port", ask: ask, root: "HelmRelease/app", code: "invalid", objects: release("helm-port", ""),
			files: map[string]string{"kustomization.yaml": none, "chart/Chart.yaml": chart, "chart/templates/web.yaml": service("immutable-sops", "ports: [{port: 99999, targetPort: 80}]")},
			says: []string{
				"Service/${NS}/immutable-sops: spec.ports[0].port: Invalid value: 99999",
				"fix .spec.ports[0].port of Service/${NS}/immutable-sops in the values of HelmRelease/${NS}/app or the templates of chart ./${PATH}/chart",
			},
			never: []string{"force", "kubectl"},
			fix:   fixed("helm-port", map[string]string{"chart/Chart.yaml": next, "chart/templates/web.yaml": service("immutable-sops", "ports: [{port: 80}]")}),
		},
		{
			name: "helm-selector", ask: ask, root: "HelmRelease/app", code: "immutable", objects: "${DEFAULT}\n---\n" + release("helm-selector", ""),
			files: map[string]string{"kustomization.yaml": none, "chart/Chart.yaml": chart, "chart/templates/web.yaml": deployment("web", "web", 0, "example.com/web:1")},
			says: []string{
				"field is immutable: .spec.selector of Deployment/${NS}/web",
				"(its pods are stopped), which the next upgrade creates again: kubectl -n ${NS} delete deployment.apps web",
			},
			never: []string{"spec.upgrade.force", "kustomize.toolkit"},
			then: func(s *story) {
				s.run("flux", "wait", "helmrelease", "app", "-n", s.namespace, "--timeout=2m")
				s.commit("Select others with Helm", map[string]string{
					"cases/helm-selector/chart/Chart.yaml": next, "cases/helm-selector/chart/templates/web.yaml": deployment("web", "other", 0, "example.com/web:1"),
				})
				_, _, _ = s.try("flux", "reconcile", "helmrelease", "app", "-n", s.namespace, "--with-source")
			},
			fix: func(*story) {}, // the commands are enough
		},
		{
			name: "helm-rollback", ask: ask, root: "HelmRelease/app", code: "invalid", never: []string{"succeeded"},
			objects: "${DEFAULT}\n---\n" + release("helm-rollback", "  upgrade: {remediation: {retries: 0, strategy: rollback, remediateLastFailure: true}}\n"),
			files:   map[string]string{"kustomization.yaml": none, "chart/Chart.yaml": chart, "chart/templates/web.yaml": service("web", "ports: [{port: 80}]")},
			says:    []string{"API server rejected Service/${NS}/web: spec.ports[0].port: Invalid value: 99999"},
			then: func(s *story) {
				s.run("flux", "wait", "helmrelease", "app", "-n", s.namespace, "--timeout=2m")
				s.commit("Use a wrong port with Helm", map[string]string{
					"cases/helm-rollback/chart/Chart.yaml": next, "cases/helm-rollback/chart/templates/web.yaml": service("web", "ports: [{port: 99999, targetPort: 80}]"),
				})
				_, _, _ = s.try("flux", "reconcile", "helmrelease", "app", "-n", s.namespace, "--with-source")
			},
			fix: fixed("helm-rollback", map[string]string{"chart/Chart.yaml": strings.Replace(next, "2.0.0", "3.0.0", 1), "chart/templates/web.yaml": service("web", "ports: [{port: 80}]")}),
		},
		{
			name: "helm-owner", ask: ask, root: "HelmRelease/app", code: "release-ownership",
			objects: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n---\n" + release("helm-owner", "  install: {disableTakeOwnership: true}\n"),
			files:   map[string]string{"kustomization.yaml": none, "chart/Chart.yaml": chart, "chart/templates/settings.yaml": plainMap},
			says:    []string{"ConfigMap/${NS}/settings exists, and belongs to another Helm release or to none", "remove .spec.install.disableTakeOwnership of HelmRelease/${NS}/app"},
			fix:     func(s *story) { s.run("kubectl", "-n", s.namespace, "delete", "configmap", "settings") },
		},
	}
}

// pushRows are automations that may not push to the branch of their
// repository.
func (s *story) pushRows() []causeRow {
	s.Helper()
	s.cluster.Sandbox(s.T, "git", "create", "locked")
	registry := s.cluster.Env["FLUX_SANDBOX_REGISTRY"]
	s.push("cause/image", "1.1.0", "application/vnd.oci.image.config.v1+json", "application/vnd.oci.image.layer.v1.tar+gzip", s.archive(nil))
	locked := *s
	locked.url, locked.clone = strings.Replace(s.url, "/fleet.git", "/locked.git", 1), path.Join(s.TempDir(), "locked")
	locked.commit("Use an image", map[string]string{"app.yaml": "image: " + registry + `/cause/image:1.0.0 # {"$imagepolicy": "cause-locked:app"}` + "\n"})
	s.cluster.Sandbox(s.T, "git", "protect", "locked", "main")
	return []causeRow{{
		name: "locked", ask: []string{"imageupdateautomation", "app"}, root: "ImageUpdateAutomation/app", code: "image-push",
		objects: strings.ReplaceAll(`apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: app}
spec: {interval: 1h, url: "${LOCKED}", ref: {branch: main}, secretRef: {name: git}}
---
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImageRepository
metadata: {name: app}
spec: {interval: 1h, image: "${REGISTRY}/cause/image", insecure: true}
---
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImagePolicy
metadata: {name: app}
spec: {imageRepositoryRef: {name: app}, policy: {semver: {range: 1.x}}}
---
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImageUpdateAutomation
metadata: {name: app}
spec: {interval: 1h, sourceRef: {kind: GitRepository, name: app}, git: {checkout: {ref: {branch: main}}, commit: {author: {email: a@example.com}}, push: {branch: main}}, update: {path: ./}}
`, "${LOCKED}", s.cluster.Env["FLUX_SANDBOX_GIT_URL"]+"/locked.git"),
		says: []string{"push rejected (protected branch or read-only credentials)", "allow the credentials in .spec.secretRef of GitRepository/${NS}/app to push", "set .spec.git.push.branch of ImageUpdateAutomation/${NS}/app"},
		fix: func(s *story) {
			s.run("kubectl", "-n", s.namespace, "patch", "imageupdateautomation", "app", "--type=merge", `-p={"spec":{"git":{"push":{"branch":"updates"}}}}`)
		},
	}}
}
