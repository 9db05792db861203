package rules

// operatorExamples are messages of flux-operator v0.59, seen in a sandbox, except for the status of the Git host, which is in the
// form of its client library.
var operatorExamples = []example{
	{
		kind: "ResourceSet", reason: "BuildFailed", code: "template",
		message: `build failed: failed to build resources[0]: failed to execute template: template: resourceset:4:14: executing "resourceset" at <inputs>: map has no entry for key "tenant"`,
		near: []near{
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/app with chart app@1.0.0: template: app/templates/cm.yaml:4:14: executing "app/templates/cm.yaml" at <inputs>: map has no entry for key "tenant"`, "template"},
			{"FluxInstance", "BuildFailed", `build failed: failed to execute template: map has no entry for key "tenant"`, "distribution"},
		},
	},
	{
		kind: "ResourceSet", reason: "BuildFailed", code: "template",
		message: `build failed: step "one": failed to build resources: failed to parse multi-doc YAML template: template: resourceset:3: function "nope" not defined`,
		near: []near{
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/app with chart app@1.0.0: parse error at (app/templates/cm.yaml:3): function "nope" not defined`, "template"},
			{"ResourceSet", "ReconciliationFailed", `reconciliation failed: Widget/apps/resourceset dry-run failed: no matches for kind "Widget" in version "template.example.com/v1"`, "api-missing"},
		},
	},
	{
		kind: "ResourceSet", reason: "InvalidCELExpression", code: "expression",
		message: "Reconciliation failed terminally due to configuration error: failed to parse expression for dependency v1/ConfigMap/apps/ca: failed to parse the CEL expression 'status.x ==': ERROR: <input>:1:12: Syntax error: mismatched input '<EOF>'",
		near: []near{
			{"Kustomization", "InvalidCELExpression", `failed to parse expression for dependency ca: failed to parse the CEL expression 'status.x =='`, "expression"},
			{"ResourceSet", "DependencyNotReady", `Retrying dependency check: dependency v1/ConfigMap/apps/expression not ready`, "dependency"},
		},
	},
	{
		kind: "ResourceSet", reason: "DependencyNotReady", code: "dependency-missing",
		message: `Retrying dependency check: dependency apps/v1/Deployment/apps/web not found: deployments.apps "web" not found`,
		near: []near{
			{"ResourceSet", "DependencyNotReady", `Retrying dependency check: dependency apps/v1/Deployment/apps/not-found not ready`, "dependency"},
			{"ResourceSet", "ReconciliationFailed", `reconciliation failed: Deployment/apps/dependency dry-run failed (NotFound): namespaces "apps" not found`, "namespace-missing"},
		},
	},
	{
		kind: "ResourceSet", reason: "DependencyNotReady", code: "dependency-missing",
		message: `Retrying dependency check: dependency apiextensions.k8s.io/v1/CustomResourceDefinition/widgets.example.com not found: customresourcedefinitions.apiextensions.k8s.io "widgets.example.com" not found`,
		near: []near{
			{"ResourceSet", "DependencyNotReady", `Retrying dependency check: dependency apiextensions.k8s.io/v1/CustomResourceDefinition/widgets.example.com not ready`, "dependency"},
			{"ResourceSet", "ReconciliationFailed", `reconciliation failed: CustomResourceDefinition/widgets.example.com dry-run failed: no matches for kind "CustomResourceDefinition" in version "apiextensions.k8s.io/v2"`, "api-missing"},
		},
	},
	{
		kind: "ResourceSet", reason: "DependencyNotReady", code: "dependency",
		message: `Retrying dependency check: dependency fluxcd.controlplane.io/v1/ResourceSet/apps/infra not ready`,
		near: []near{
			{"ResourceSet", "DependencyNotReady", `Retrying dependency check: dependency fluxcd.controlplane.io/v1/ResourceSet/apps/ready not found: resourcesets.fluxcd.controlplane.io "ready" not found`, "dependency-missing"},
			{"ResourceSet", "BuildFailed", `build failed: failed to build resources[0]: failed to parse template: template: resourceset:4: function "dependency" not defined`, "template"},
		},
	},
	{
		kind: "ResourceSet", reason: "ReconciliationFailed", code: "copy",
		message: `reconciliation failed: failed to copy data from ConfigMap/apps/settings: configmaps "settings" not found`,
		near: []near{
			{"ResourceSet", "DependencyNotReady", `Retrying dependency check: dependency v1/ConfigMap/apps/settings not found: configmaps "settings" not found`, "dependency-missing"},
			{"ResourceSet", "BuildFailed", `build failed: failed to build resources: failed to read objects from multi-doc YAML: error converting YAML to JSON: yaml: line 2: failed to copy data from ConfigMap`, "template"},
		},
	},
	{
		kind: "FluxInstance", reason: "BuildFailed", code: "distribution", spec: `{"distribution": {"version": "7.x"}}`,
		message: `build failed: no match found for semver: 7.x in /data/flux matching embedded minor versions in /data/flux`,
		near: []near{
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: no match found for semver: 7.x`, "source-reference"},
			{"ResourceSet", "BuildFailed", `build failed: failed to build resources[0]: failed to parse template: template: semver:4: function "match" not defined`, "template"},
		},
	},
	{
		kind: "FluxInstance", reason: "ArtifactFailed", code: "distribution", spec: `{"distribution": {"artifact": "oci://registry.example.com/manifests:latest"}}`,
		message: `fetch failed: pulling artifact oci://registry.example.com/manifests:latest failed: Get "https://registry.example.com/v2/": dial tcp 10.0.0.1:443: connect: connection refused`,
		near: []near{
			{"OCIRepository", "OCIArtifactPullFailed", `failed to pull artifact from 'oci://registry.example.com/manifests:latest': Get "https://registry.example.com/v2/": dial tcp 10.0.0.1:443: connect: connection refused`, "source-unreachable"},
			{"ResourceSetInputProvider", "ReconciliationFailed", `failed to call OCI provider: failed to list OCI tags for 'registry.example.com/artifact': Get "https://registry.example.com/v2/": dial tcp 10.0.0.1:443: connect: connection refused`, "source-unreachable"},
		},
	},
	{
		kind: "FluxInstance", reason: "BuildFailed", code: "distribution",
		message: `build failed: error in remove for path: '«[u]/spec/nope»': Unable to remove nonexistent key: «[u]nope»: missing value`,
		near: []near{
			{"Kustomization", "BuildFailed", `kustomize build failed: trouble applying patch: error in remove for path: '/spec/nope': Unable to remove nonexistent key: nope: missing value`, "build"},
			{"ResourceSet", "BuildFailed", `build failed: failed to build resources[0]: failed to parse template: template: resourceset:4: function "remove" not defined, missing value`, "template"},
		},
	},
	{
		kind: "ResourceSetInputProvider", reason: "ReconciliationFailed", code: "source-server-error", spec: `{"url": "http://service.example.com/inputs"}`,
		message: `failed to call ExternalService provider: external service 'http://service.example.com/inputs' returned HTTP 503`,
		near: []near{
			{"ResourceSetInputProvider", "ReconciliationFailed", `failed to call ExternalService provider: external service 'http://503.example.com/inputs' returned HTTP 404`, "source-not-found"},
			{"ResourceSetInputProvider", "ReconciliationFailed", `failed to call ExternalService provider: external service 'http://service.example.com/503' response does not contain an 'inputs' field`, ""},
		},
	},
	{
		kind: "ResourceSetInputProvider", reason: "ReconciliationFailed", code: "source-authentication", spec: `{"url": "https://git.example.com/org/repo", "secretRef": {"name": "token"}}`,
		message: `failed to call Git provider: failed to list requests: could not list pull requests: GET https://git.example.com/api/v3/repos/org/repo/pulls?per_page=100&state=open: 401 Bad credentials []`,
		near: []near{
			{"ResourceSetInputProvider", "ReconciliationFailed", `failed to call Git provider: failed to list requests: could not list pull requests: GET https://git.example.com/api/v3/repos/org/401/pulls?state=open: 404 Not Found []`, "source-not-found"},
			{"ResourceSetInputProvider", "ReconciliationFailed", `failed to call Git provider: failed to list branches: could not list branches: Get "https://git.example.com/api/v4/projects/org/repository/branches": dial tcp 10.0.0.1:443: connect: connection refused`, "source-unreachable"},
		},
	},
}
