package audit_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/pkg/audit"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/validate"
)

// root applies everything that names no other owner.
const root = `{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: flux-system, namespace: flux-system},
spec: {interval: 10m, prune: true, path: ./clusters/a, sourceRef: {kind: GitRepository, name: flux-system}}}`

// Abbreviations of the objects in the cases.
const (
	kustomization = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: flux-system}\n"
	release       = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: apps}\n"
	retried       = "install: {strategy: {name: RetryOnFailure}}, upgrade: {remediation: {retries: 3}}, driftDetection: {mode: warn}"
	source        = "apiVersion: source.toolkit.fluxcd.io/v1\n"
	image         = "apiVersion: image.toolkit.fluxcd.io/v1\n"
	deployment    = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: apps}\n"
	secret        = "apiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: apps}\n" //nolint:gosec // no credential
	configMap     = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: flux-system}\n"
	crd           = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\nspec: {group: example.com, names: {kind: Widget}}\n"
	widget        = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w, namespace: apps}\n"
	instance      = "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux, namespace: flux-system}\n"
	namespace     = "apiVersion: v1\nkind: Namespace\nmetadata: {name: apps}"
	policy        = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: tenants}\nspec: {policyName: x, matchResources: {namespaceSelector: "
	separator     = "\n---\n"
)

// by makes a Kustomization the owner of the objects before it.
func by(name, spec, objects string) string {
	return strings.ReplaceAll(objects, "metadata: {", "metadata: {annotations: {owner: Kustomization/"+name+"}, ") + separator +
		"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + name + ", namespace: flux-system}\nspec: {interval: 10m, prune: true, " + spec + "}"
}

// cases are objects in which each rule finds something, and near misses in which it does not.
var cases = map[string]struct{ found, missed []string }{
	"plain-secret": {
		found: []string{
			secret + `stringData: {password: hunter2}`,
			secret + `data: {token: aHVudGVyMg==}`,
			// not a path or a template: a password may contain any characters
			secret + `stringData: {password: /hunter2}`,
			secret + `stringData: {password: "a{{b$(c<<"}`,
		},
		missed: []string{
			secret + `stringData: {password: "ENC[AES256_GCM,data:x]"}`,
			secret + `data: {password: RU5DW0FFUzI1Nl9HQ00sZGF0YTp4XQ==}`,
			secret + `stringData: {password: "${password}"}`,
			secret + `stringData: {ca.crt: public, known_hosts: public}`,
			secret + `stringData: {password: "", other: " "}`,
			secret + "type: kubernetes.io/service-account-token\n",
			strings.Replace(secret, "metadata: {", "metadata: {annotations: {owner: HelmRelease/web}, ", 1) + `stringData: {password: generated}`,
		},
	},
	"plain-credential": {
		found: []string{
			release + `spec: {values: {auth: {password: hunter2}}}`,
			release + `spec: {values: {smtp: [{client_secret: abc}]}}`,
			release + `spec: {values: {adminPassword: abc}}`,
			kustomization + `spec: {prune: true, postBuild: {substitute: {db_password: abc}}}`,
			configMap + `data: {API_KEY: abc}`,
			deployment + `spec: {template: {spec: {containers: [{name: web, image: "web:1", env: [{name: DB_PASSWORD, value: abc}]}]}}}`,
			source + "kind: GitRepository\nmetadata: {name: x, namespace: apps}\n" + `spec: {url: "https://me:hunter2@example.com/x"}`,
		},
		missed: []string{
			release + `spec: {values: {existingSecretPassword: key, passwordKey: key, secretKey: key, password: "", usePassword: "true", tokenSecretRef: {name: x}}}`,
			release + `spec: {values: {password: "${db_password}", token: "$(TOKEN)", apiKey: "{{ .Values.x }}", privateKey: /etc/key.pem}}`,
			release + `spec: {values: {existingPassword: x, usetoken: x, tokenEndpoint: "https://x", keyword: x, accessTokenLifetime: 5m}}`,
			deployment + `spec: {template: {spec: {containers: [{name: web, image: "web:1", env: [{name: DB_PASSWORD, valueFrom: {secretKeyRef: {name: x, key: y}}}]}]}}}`,
			source + "kind: GitRepository\nmetadata: {name: x, namespace: apps}\n" + `spec: {url: "ssh://git@example.com/x"}`,
		},
	},
	"insecure-source": {
		found: []string{
			source + "kind: HelmRepository\nmetadata: {name: x, namespace: apps}\n" + `spec: {url: "http://charts.example.com"}`,
			source + "kind: OCIRepository\nmetadata: {name: x, namespace: apps}\n" + `spec: {url: "oci://example.com/x", insecure: true}`,
			source + "kind: Bucket\nmetadata: {name: x, namespace: apps}\n" + `spec: {endpoint: "minio.example.com:9000", insecure: true}`,
		},
		missed: []string{
			source + "kind: HelmRepository\nmetadata: {name: x, namespace: apps}\n" + `spec: {url: "https://charts.example.com/http://"}`,
			source + "kind: OCIRepository\nmetadata: {name: x, namespace: apps}\n" + `spec: {url: "oci://example.com/x", insecure: false}`,
		},
	},
	"unpinned-chart": {
		found: []string{
			release + `spec: {chart: {spec: {chart: web, version: "*", sourceRef: {kind: HelmRepository, name: x}}}}`,
			release + `spec: {chart: {spec: {chart: web, sourceRef: {kind: HelmRepository, name: x}}}}`,
			release + `spec: {chartRef: {kind: OCIRepository, name: x}}` + separator + source + "kind: OCIRepository\nmetadata: {name: x, namespace: apps}\n" + `spec: {ref: {tag: latest}}`,
			release + `spec: {chart: {spec: {chart: ./web, sourceRef: {kind: GitRepository, name: x}}}}` + separator + source + "kind: GitRepository\nmetadata: {name: x, namespace: apps}\n" + `spec: {ref: {branch: main}}`,
		},
		missed: []string{
			release + `spec: {chart: {spec: {chart: web, version: 1.x, sourceRef: {kind: HelmRepository, name: x}}}}`,
			release + `spec: {chartRef: {kind: OCIRepository, name: x}}` + separator + source + "kind: OCIRepository\nmetadata: {name: x, namespace: apps}\n" + `spec: {ref: {digest: "sha256:1"}}`,
			release + `spec: {chart: {spec: {chart: ./web, sourceRef: {kind: GitRepository, name: x}}}}` + separator + source + "kind: GitRepository\nmetadata: {name: x, namespace: apps}\n" + `spec: {ref: {tag: v1}}`,
			// the repository that Flux deploys
			release + `spec: {chart: {spec: {chart: ./web, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}}` + separator + source +
				"kind: GitRepository\nmetadata: {name: flux-system, namespace: flux-system}\n" + `spec: {ref: {branch: main}}`,
			// manifests, not a chart
			source + "kind: OCIRepository\nmetadata: {name: x, namespace: apps}\n" + `spec: {ref: {tag: latest}}`,
		},
	},
	"helm-repository-oci": {
		found:  []string{source + "kind: HelmRepository\nmetadata: {name: x, namespace: apps}\n" + `spec: {type: oci, url: "oci://example.com/x"}`},
		missed: []string{source + "kind: HelmRepository\nmetadata: {name: x, namespace: apps}\n" + `spec: {type: default, url: "https://example.com"}`},
	},
	"registry-provider": {
		found: []string{
			image + "kind: ImageRepository\nmetadata: {name: x, namespace: apps}\n" + `spec: {image: 123456789012.dkr.ecr.us-east-1.amazonaws.com/web}`,
			source + "kind: OCIRepository\nmetadata: {name: x, namespace: apps}\n" + `spec: {url: "oci://team.azurecr.io/x"}`,
			source + "kind: OCIRepository\nmetadata: {name: x, namespace: apps}\n" + `spec: {url: "oci://eu.gcr.io/project/x"}`,
		},
		missed: []string{
			image + "kind: ImageRepository\nmetadata: {name: x, namespace: apps}\n" + `spec: {provider: aws, image: 123456789012.dkr.ecr.us-east-1.amazonaws.com/web}`,
			image + "kind: ImageRepository\nmetadata: {name: x, namespace: apps}\n" + `spec: {image: ghcr.io/a/azurecr.io}`,
			source + "kind: OCIRepository\nmetadata: {name: x, namespace: apps}\n" + `spec: {url: "oci://mirror.gcr.io/envoyproxy/gateway-helm"}`,
			source + "kind: OCIRepository\nmetadata: {name: x, namespace: apps}\n" + `spec: {url: "oci://team.azurecr.io/x", secretRef: {name: x}}`,
		},
	},
	"git-provider": {
		found: []string{
			instance + `spec: {cluster: {size: small}, sync: {kind: GitRepository, url: "https://github.com/a/b", pullSecret: x}}`,
			source + "kind: GitRepository\nmetadata: {name: x, namespace: apps}\n" + `spec: {url: "https://github.com/a/b", secretRef: {name: x}}`,
		},
		missed: []string{
			instance + `spec: {cluster: {size: small}, sync: {kind: GitRepository, url: "https://github.com/a/b", pullSecret: x, provider: github}}`,
			source + "kind: GitRepository\nmetadata: {name: x, namespace: apps}\n" + `spec: {url: "https://github.com/a/public"}`,
			source + "kind: GitRepository\nmetadata: {name: x, namespace: apps}\n" + `spec: {url: "ssh://git@github.com/a/b", secretRef: {name: x}}`,
		},
	},
	"prune": {
		found:  []string{kustomization + `spec: {prune: false}`},
		missed: []string{kustomization + `spec: {prune: true}`},
	},
	"wait": {
		found: []string{kustomization + `spec: {prune: true}` + separator + by("web", `dependsOn: [{name: apps}]`, configMap)},
		missed: []string{
			kustomization + `spec: {prune: true, wait: true, timeout: 5m}` + separator + by("web", `dependsOn: [{name: apps}]`, configMap),
			kustomization + `spec: {prune: true, healthChecks: [{kind: Deployment, name: x}], timeout: 5m}` + separator + by("web", `dependsOn: [{name: apps}]`, configMap),
			kustomization + `spec: {prune: true}` + separator + by("web", `dependsOn: [{name: apps, namespace: other}]`, configMap),
		},
	},
	"timeout": {
		found:  []string{kustomization + `spec: {prune: true, wait: true, interval: 1h, retryInterval: 1m}`},
		missed: []string{kustomization + `spec: {prune: true, wait: true, interval: 10m}`, kustomization + `spec: {prune: true, interval: 1h, retryInterval: 1m}`, kustomization + `spec: {prune: true, wait: true, interval: 1h, timeout: 5m, retryInterval: 1m}`},
	},
	"retry-interval": {
		found:  []string{kustomization + `spec: {prune: true, interval: 1h}`},
		missed: []string{kustomization + `spec: {prune: true, interval: 1h, retryInterval: 1m}`, kustomization + `spec: {prune: true, interval: 10m}`},
	},
	"missing-dependency": {
		found: []string{
			by("crds", "path: ./crds", crd) + separator + by("web", "path: ./web", widget),
			kustomization + `spec: {prune: true, postBuild: {substituteFrom: [{kind: ConfigMap, name: settings}]}}` + separator + by("infra", "path: ./infra", configMap),
		},
		missed: []string{
			by("crds", "path: ./crds", crd) + separator + by("web", "path: ./web, dependsOn: [{name: crds}]", widget),
			// through another one
			by("crds", "wait: true, path: ./crds", crd) + separator + by("middle", "wait: true, dependsOn: [{name: crds}]", configMap) + separator + by("web", "dependsOn: [{name: middle}]", widget),
			by("web", "path: ./web", crd+separator+widget),
			widget,
			kustomization + `spec: {prune: true, postBuild: {substituteFrom: [{kind: ConfigMap, name: settings, optional: true}]}}` + separator + by("infra", "path: ./infra", configMap),
			kustomization + `spec: {prune: true, postBuild: {substituteFrom: [{kind: ConfigMap, name: settings}]}}` + separator + configMap,
			kustomization + `spec: {prune: true, dependsOn: [{name: infra}], postBuild: {substituteFrom: [{kind: ConfigMap, name: settings}]}}` + separator + by("infra", "wait: true, path: ./infra", configMap),
		},
	},
	"overlapping-paths": {
		found: []string{
			by("all", "path: ./apps, sourceRef: {kind: GitRepository, name: x}", configMap) + separator + by("one", "path: ./apps/one, sourceRef: {kind: GitRepository, name: x}", configMap),
		},
		missed: []string{
			by("all", "path: ./apps, sourceRef: {kind: GitRepository, name: x}", widget) + separator + by("one", "path: ./apps/one, sourceRef: {kind: GitRepository, name: x}", configMap),
			by("all", "path: ./apps, sourceRef: {kind: GitRepository, name: x}", configMap) + separator + by("one", "path: ./apps-one, sourceRef: {kind: GitRepository, name: x}", configMap),
		},
	},
	"force": {
		found:  []string{kustomization + `spec: {prune: true, force: true}`, release + `spec: {upgrade: {force: true}}`},
		missed: []string{kustomization + `spec: {prune: true, force: false}`, "apiVersion: example.com/v1\nkind: Kustomization\nmetadata: {name: x, namespace: y}\nspec: {force: true}"},
	},
	"suspended": {
		found:  []string{kustomization + `spec: {prune: true, suspend: true}`},
		missed: []string{strings.Replace(kustomization, "metadata: {", "metadata: {annotations: {fluxkit.dev/suspend-reason: freeze}, ", 1) + `spec: {prune: true, suspend: true}`, kustomization + `spec: {prune: true, suspend: false}`},
	},
	"remediation": {
		found: []string{release + `spec: {install: {remediation: {retries: 3}}}`, release + `spec: {install: {remediation: {retries: 0}}, upgrade: {strategy: {name: RetryOnFailure}}}`},
		missed: []string{
			release + `spec: {` + retried + `}`, release + `spec: {install: {remediation: {retries: -1}}, upgrade: {strategy: {name: RetryOnFailure}}}`,
		},
	},
	"drift-detection": {
		found:  []string{release + `spec: {}`, release + `spec: {driftDetection: {mode: disabled}}`},
		missed: []string{release + `spec: {` + retried + `}`, kustomization + `spec: {prune: true}`},
	},
	"create-namespace": {
		found:  []string{release + `spec: {targetNamespace: apps, install: {createNamespace: true}}`},
		missed: []string{release + `spec: {targetNamespace: apps, install: {createNamespace: false}}`},
	},
	"storage-namespace": {
		found:  []string{release + `spec: {targetNamespace: other}`},
		missed: []string{release + `spec: {targetNamespace: other, storageNamespace: other}`, release + `spec: {targetNamespace: apps}`},
	},
	"default-namespace": {
		found:  []string{release + `spec: {targetNamespace: default}`, strings.Replace(deployment, "apps}", "default}", 1) + `spec: {template: {spec: {containers: [{image: "a:1"}]}}}`},
		missed: []string{strings.Replace(release, "apps}", "default}", 1) + `spec: {targetNamespace: apps}`, strings.Replace(configMap, "flux-system}", "default}", 1)},
	},
	"watch-label": {
		found: []string{
			kustomization + `spec: {prune: true, postBuild: {substituteFrom: [{kind: ConfigMap, name: settings}]}}` + separator + configMap,
			// in the target namespace of the release, which reads it in its own namespace
			release + `spec: {targetNamespace: flux-system, valuesFrom: [{kind: ConfigMap, name: settings}]}` + separator + configMap,
		},
		missed: []string{
			release + `spec: {targetNamespace: flux-system, valuesFrom: [{kind: ConfigMap, name: settings, optional: true}]}` + separator + configMap,
			release + `spec: {targetNamespace: other, valuesFrom: [{kind: ConfigMap, name: settings}]}` + separator + configMap,
			release + `spec: {targetNamespace: flux-system, valuesFrom: [{kind: Secret, name: settings}]}` + separator + configMap,
			release + `spec: {targetNamespace: flux-system, valuesFrom: [{kind: ConfigMap, name: settings}]}` + separator + configMap + separator +
				"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: apps, labels: {reconcile.fluxcd.io/watch: Enabled}}\n",
			kustomization + `spec: {prune: true, postBuild: {substituteFrom: [{kind: Secret, name: settings}]}}` + separator + configMap, configMap,
			// generated: a change changes the name
			kustomization + `spec: {prune: true, postBuild: {substituteFrom: [{kind: ConfigMap, name: settings-m589kfcgc2}]}}` + separator + strings.Replace(configMap, "name: settings", "name: settings-m589kfcgc2", 1)},
	},
	"cross-namespace": {
		found:  []string{release + `spec: {chartRef: {kind: OCIRepository, name: x, namespace: other}}`},
		missed: []string{release + `spec: {chartRef: {kind: OCIRepository, name: x, namespace: apps}}`, release + `spec: {chartRef: {kind: OCIRepository, name: x}}`},
	},
	"service-account": {
		found: []string{release + `spec: {}` + separator + "apiVersion: v1\nkind: Namespace\nmetadata: {name: apps, labels: {toolkit.fluxcd.io/tenant: a}}"},
		missed: []string{
			release + `spec: {serviceAccountName: a}` + separator + "apiVersion: v1\nkind: Namespace\nmetadata: {name: apps, labels: {toolkit.fluxcd.io/tenant: a}}",
			release + `spec: {}` + separator + "apiVersion: v1\nkind: Namespace\nmetadata: {name: apps}",
			release + `spec: {}` + separator + "apiVersion: v1\nkind: Namespace\nmetadata: {name: apps, labels: {toolkit.fluxcd.io/tenant: a}}" + separator + instance + "spec: {cluster: {size: small, multitenant: true}}",
			release + `spec: {}` + separator + "apiVersion: v1\nkind: Namespace\nmetadata: {name: apps, labels: {toolkit.fluxcd.io/tenant: a}}" + separator +
				"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: helm-controller, namespace: flux-system, labels: {app.kubernetes.io/part-of: flux}}\n" +
				`spec: {template: {spec: {containers: [{name: manager, image: "a:1", args: [--default-service-account=default]}]}}}`,
		},
	},
	"tenant-label": {
		found: []string{
			release + `spec: {serviceAccountName: a}` + separator + namespace + separator + policy + "{matchLabels: {toolkit.fluxcd.io/role: tenant}}}}",
			release + `spec: {serviceAccountName: a}` + separator + namespace + separator + policy + "{matchExpressions: [{key: toolkit.fluxcd.io/role, operator: In, values: [tenant]}]}}}",
		},
		missed: []string{
			// not a tenant
			release + `spec: {}` + separator + namespace + separator + policy + "{matchLabels: {toolkit.fluxcd.io/role: tenant}}}}",
			// selected, and excluded on purpose
			release + `spec: {serviceAccountName: a}` + separator + strings.Replace(namespace, "apps", "apps, labels: {toolkit.fluxcd.io/role: tenant}", 1) + separator + policy + "{matchLabels: {toolkit.fluxcd.io/role: tenant}}}}",
			release + `spec: {serviceAccountName: a}` + separator + strings.Replace(namespace, "apps", "apps, labels: {toolkit.fluxcd.io/role: platform}", 1) + separator + policy + "{matchLabels: {toolkit.fluxcd.io/role: tenant}}}}",
			// a policy that is not for tenants, or for all namespaces but some
			release + `spec: {serviceAccountName: a}` + separator + namespace + separator + policy + "{matchLabels: {environment: production}}}}",
			release + `spec: {serviceAccountName: a}` + separator + namespace + separator + policy + "{matchExpressions: [{key: toolkit.fluxcd.io/role, operator: NotIn, values: [platform]}]}}}",
			release + `spec: {serviceAccountName: a}` + separator + namespace + separator + strings.TrimSuffix(policy, "matchResources: {namespaceSelector: ") + "}",
			strings.Replace(release, "apps", "flux-system", 1) + `spec: {serviceAccountName: a}` + separator + strings.Replace(namespace, "apps", "flux-system", 1) + separator + policy + "{matchLabels: {toolkit.fluxcd.io/role: tenant}}}}",
		},
	},
	"image-filter": {
		found:  []string{image + "kind: ImagePolicy\nmetadata: {name: x, namespace: apps}\n" + `spec: {policy: {semver: {range: 1.x}}}`},
		missed: []string{image + "kind: ImagePolicy\nmetadata: {name: x, namespace: apps}\n" + `spec: {filterTags: {pattern: ".*"}}`},
	},
	"image-push-branch": {
		found: []string{
			image + "kind: ImageUpdateAutomation\nmetadata: {name: x, namespace: apps}\n" + `spec: {git: {checkout: {ref: {branch: main}}, push: {branch: main}}}`,
			image + "kind: ImageUpdateAutomation\nmetadata: {name: x, namespace: apps}\n" + `spec: {sourceRef: {kind: GitRepository, name: x}, git: {}}` + separator +
				source + "kind: GitRepository\nmetadata: {name: x, namespace: apps}\n" + `spec: {ref: {branch: main}}`,
		},
		missed: []string{
			image + "kind: ImageUpdateAutomation\nmetadata: {name: x, namespace: apps}\n" + `spec: {git: {checkout: {ref: {branch: main}}, push: {branch: updates}}}`,
			image + "kind: ImageUpdateAutomation\nmetadata: {name: x, namespace: apps}\n" + `spec: {git: {checkout: {ref: {branch: main}}, push: {refspec: "refs/heads/main:refs/for/main"}}}`,
		},
	},
	"cluster-size": {
		found:  []string{instance + `spec: {cluster: {type: kubernetes}}`},
		missed: []string{instance + `spec: {cluster: {size: large}}`},
	},
	"mutable-image": {
		found:  []string{deployment + `spec: {template: {spec: {containers: [{image: "web:latest"}]}}}`, deployment + `spec: {template: {spec: {containers: [], initContainers: [{image: "localhost:5000/web"}]}}}`},
		missed: []string{deployment + `spec: {template: {spec: {containers: [{image: "web:1.2"}]}}}`, deployment + `spec: {template: {spec: {containers: [{image: "web:latest@sha256:1"}]}}}`, deployment + `spec: {template: {spec: {containers: [{image: "web:${tag}"}]}}}`},
	},
	"writable-root-filesystem": {
		found:  []string{deployment + `spec: {template: {spec: {containers: [{image: "web:1", securityContext: {readOnlyRootFilesystem: false}}]}}}`},
		missed: []string{deployment + `spec: {template: {spec: {containers: [{image: "web:1", securityContext: {readOnlyRootFilesystem: true}}]}}}`},
	},
	"cluster-admin": {
		found:  []string{"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: x}\n" + `{roleRef: {kind: ClusterRole, name: cluster-admin}, subjects: [{kind: User, name: a}]}`},
		missed: []string{"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: x, labels: {app.kubernetes.io/part-of: flux}}\n" + `{roleRef: {kind: ClusterRole, name: cluster-admin}, subjects: [{kind: User, name: a}]}`},
	},
	"wildcard-permissions": {
		found:  []string{"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: x}\n" + `{rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}`},
		missed: []string{"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: x}\n" + `{rules: [{apiGroups: [apps], resources: ["*"], verbs: ["*"]}]}`},
	},
	"privileged": {
		found:  []string{deployment + `spec: {template: {spec: {containers: [{image: "web:1", securityContext: {privileged: true}}]}}}`},
		missed: []string{deployment + `spec: {template: {spec: {containers: [{image: "web:1", securityContext: {privileged: false}}]}}}`},
	},
	"host-path": {
		found:  []string{deployment + `spec: {template: {spec: {volumes: [{hostPath: {path: /}}], containers: [{image: "web:1"}]}}}`},
		missed: []string{deployment + `spec: {template: {spec: {volumes: [{emptyDir: {}}], containers: [{image: "web:1"}]}}}`},
	},
	"host-namespace": {
		found:  []string{deployment + `spec: {template: {spec: {hostPID: true, containers: [{image: "web:1"}]}}}`},
		missed: []string{deployment + `spec: {template: {spec: {hostPID: false, containers: [{image: "web:1"}]}}}`},
	},
}

// TestRules requires that each rule finds its cases, and only what they are about: no near miss, and nothing else in the cases.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, r := range audit.Rules() {
		t.Run(r.ID, func(t *testing.T) {
			t.Parallel()
			c := cases[r.ID]
			if len(c.found) == 0 || len(c.missed) == 0 {
				t.Fatal("no case, or no near miss")
			}
			for _, text := range c.found {
				if found := rulesIn(t, text); !slices.Contains(found, r.ID) {
					t.Errorf("found %v in\n%s", found, text)
				}
			}
			for _, text := range c.missed {
				if slices.Contains(rulesIn(t, text), r.ID) {
					t.Errorf("found %s in\n%s", r.ID, text)
				}
			}
		})
	}
	for id := range cases {
		if _, ok := audit.Find(id); !ok {
			t.Errorf("no rule %s", id)
		}
	}
}

// rulesIn returns the rules that find something in documents.
func rulesIn(t *testing.T, text string) []string {
	t.Helper()
	d := validate.Deployment{Namespace: "flux-system", Complete: true}
	owners := map[string]*unstructured.Unstructured{"": decode(t, root), "HelmRelease/web": decode(t, release)}
	documents := strings.Split(text, separator)
	for _, document := range documents {
		u := decode(t, document)
		owners[u.GetKind()+"/"+u.GetName()] = u
	}
	for _, document := range documents {
		u := decode(t, document)
		owner := owners[u.GetAnnotations()["owner"]]
		if o := owners[u.GetKind()+"/"+u.GetName()]; build.IsKustomization(u) || build.IsHelmRelease(u) {
			u = o
		}
		d.Objects = append(d.Objects, audit.Object{Object: build.Object{Unstructured: u}, ID: controllers.IDOf(u.Object), Owner: owner})
	}
	var rules []string
	for _, f := range audit.CheckDeployment(d) {
		if f.Message == "" || f.Rule == "" || f.Severity == "" {
			t.Errorf("incomplete finding %+v", f)
		}
		if strings.Contains(f.Message, "hunter2") {
			t.Errorf("a credential in %q", f.Message)
		}
		rules = append(rules, f.Rule)
	}
	return rules
}

func decode(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	head, tail, split := strings.Cut(text, "\n{")
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(head), &u.Object); err != nil {
		t.Fatal(err, text)
	}
	if split {
		if err := yaml.Unmarshal([]byte("{"+tail), &u.Object); err != nil {
			t.Fatal(err, text)
		}
	}
	return u
}

// TestExceptions decodes the file of a repository.
func TestExceptions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, problem string
	}{
		"valid":         {"allow:\n- {rule: prune, name: web-*, reason: because}\n- {rule: build}\n", ""},
		"unknown rule":  {"allow:\n- {rule: prun}\n", `.flux-audit.yaml: allow[0]: unknown rule "prun"`},
		"no rule":       {"allow:\n- {name: web}\n", `.flux-audit.yaml: allow[0]: unknown rule ""`},
		"unknown field": {"allow:\n- {rule: prune, names: web}\n", "unknown field"},
		"pattern":       {"allow:\n- {rule: prune, name: '[a'}\n", `allow[0]: invalid pattern "[a"`},
		"no YAML":       {"allow: [", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := audit.Exceptions(fstest.MapFS{audit.File: {Data: []byte(c.text)}})
			switch {
			case c.problem == "" && (err != nil || len(found) != 2):
				t.Errorf("got %v, %v", found, err)
			case c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)):
				t.Errorf("got %v, want %q", err, c.problem)
			}
		})
	}
	if found, err := audit.Exceptions(fstest.MapFS{}); found != nil || err != nil {
		t.Errorf("without a file: %v, %v", found, err)
	}
	if _, err := audit.Exceptions(unreadable{}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v", err)
	}
}

type unreadable struct{}

func (unreadable) Open(string) (fs.File, error) { return nil, fs.ErrPermission }
