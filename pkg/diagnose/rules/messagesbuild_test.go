package rules

// buildExamples are messages of kustomize-controller v1.9 about builds, with the errors of kustomize v5.8.
var buildExamples = []example{
	{
		kind: "Kustomization", reason: "BuildFailed", code: "build",
		message: `kustomize build failed: accumulating resources: accumulation err='accumulating resources from '«[u]gone».yaml': open apps/«[u]gone».yaml: no such file or directory': must build at directory: not a valid directory: evalsymlink failure on 'apps/«[u]gone».yaml' : lstat apps/«[u]gone».yaml: no such file or directory`,
		near: []near{
			{"Kustomization", "ArtifactFailed", `kustomization path not found: stat accumulating-resources: no such file or directory`, "build-path"},
			{"HelmChart", "InvalidChartReference", `invalid chart reference: stat accumulating-resources-from/gone: no such file or directory`, "chart-version"},
		},
	},
	{
		kind: "Kustomization", reason: "BuildFailed", code: "build",
		message: `kustomize build failed: accumulating resources: accumulation err='accumulating resources from '../base': read base: is a directory': recursed accumulation of path 'base': accumulating resources: accumulation err='accumulating resources from '../«[u]gone»': open «[u]gone»: no such file or directory': must build at directory: not a valid directory: evalsymlink failure on '«[u]gone»' : lstat «[u]gone»: no such file or directory`,
		near: []near{
			{"Kustomization", "ArtifactFailed", `kustomization path not found: stat must-build-at-directory: no such file or directory`, "build-path"},
			{"Bucket", "BucketOperationFailed", `fetch from bucket 'base' failed: open directory/file: accumulating resources: Access Denied.`, "source-authentication"},
		},
	},
	{
		kind: "Kustomization", reason: "BuildFailed", code: "build",
		message: "kustomize build failed: trouble configuring builtin PatchTransformer with config: `\npath: «[u]p».yaml\n`: failed to get the patch file from path(«[u]p».yaml): open apps/«[u]p».yaml: no such file or directory",
		near: []near{
			{"Kustomization", "ArtifactFailed", `kustomization path not found: stat patch/file: no such file or directory`, "build-path"},
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/patch-file dry-run failed (Invalid): ConfigMap "patch-file" is invalid: data[path]: Invalid value: "trouble configuring builtin": a valid config key must consist of alphanumeric characters`, "invalid"},
		},
	},
	{
		kind: "Kustomization", reason: "BuildFailed", code: "build",
		message: `kustomize build failed: loading KV pairs: file sources: [«[u]gone».txt]: open apps/«[u]gone».txt: no such file or directory`,
		near: []near{
			{"Kustomization", "BuildFailed", `error decrypting sources: failed to decrypt and format 'loading/pairs' yaml data: Error getting data key: 0 successful groups required, got 0`, "decryption"},
			{"Kustomization", "ArtifactFailed", `kustomization path not found: stat loading/sources: no such file or directory`, "build-path"},
		},
	},
	{
		kind: "Kustomization", reason: "BuildFailed", code: "build",
		message: `kustomize build failed: accumulating components: loader.New "must build at directory: not a valid directory: evalsymlink failure on 'apps/«[u]comp»' : lstat apps/«[u]comp»: no such file or directory"`,
		near: []near{
			{"Kustomization", "ArtifactFailed", `kustomization path not found: stat accumulating-components/loader: no such file or directory`, "build-path"},
			{"Kustomization", "ReconciliationFailed", `Service/apps/accumulating-components dry-run failed (Invalid): Service "accumulating-components" is invalid: spec.ports: Required value`, "invalid"},
		},
	},
	{
		kind: "Kustomization", reason: "BuildFailed", code: "build",
		message: `kustomize build failed: accumulating resources: accumulation err='accumulating resources from 'https://«[u]host»/x.yaml': Get "https://«[u]host»/x.yaml": dial tcp 10.0.0.1:443: connect: connection refused': must build at directory: not a valid directory: evalsymlink failure on 'apps/https:/«[u]host»/x.yaml' : lstat apps/https:: no such file or directory`,
		near: []near{
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to clone 'https://accumulating-resources/x': Get "https://accumulating-resources/x/info/refs": dial tcp 10.0.0.1:443: connect: connection refused`, "source-unreachable"},
			{"HelmRepository", "Failed", `failed to fetch Helm repository index: failed to cache index to temporary file: Get "https://accumulation-err/resources/index.yaml": dial tcp 10.0.0.1:443: connect: connection refused`, "source-unreachable"},
		},
	},
	{
		kind: "Kustomization", reason: "BuildFailed", code: "build",
		message: `failed to decode Kubernetes YAML from apps/«[u]cm».yaml: MalformedYAMLError: yaml: line «[n]3»: mapping values are not allowed in this context`,
		near: []near{
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/malformed-yaml with chart kubernetes@1.0.0: error merging manifests: parsing web/templates/a.yaml: MalformedYAMLError: yaml: line 3: did not find expected key`, "template"},
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/malformed dry-run failed (Invalid): ConfigMap "malformed" is invalid: metadata.name: Invalid value: "failed to decode Kubernetes YAML": must be a name`, "invalid"},
		},
	},
	{
		kind: "Kustomization", reason: "BuildFailed", code: "build",
		message: `kustomize build failed: accumulating resources: accumulating resources from 'cm.yaml': MalformedYAMLError: yaml: line «[n]3»: did not find expected key in File: cm.yaml`,
		near: []near{
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/accumulating-resources with chart web@1.0.0: error merging manifests: parsing web/templates/a.yaml: MalformedYAMLError: yaml: line 3: did not find expected key`, "template"},
			{"Kustomization", "ArtifactFailed", `kustomization path not found: stat accumulating/resources: no such file or directory`, "build-path"},
		},
	},
	{
		kind: "Kustomization", reason: "BuildFailed", code: "build",
		message: `kustomize build failed: no resource matches strategic merge patch "ConfigMap.v1.[noGrp]/«nope».[noNs]": no matches for Id ConfigMap.v1.[noGrp]/«nope».[noNs]; failed to find unique target for patch ConfigMap.v1.[noGrp]/«nope».[noNs]`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `Gizmo/apps/strategic-merge-patch dry-run failed: no matches for kind "Gizmo" in version "nowhere.example.com/v1"`, "api-missing"},
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/no-resource-matches dry-run failed (Forbidden): configmaps "no-resource-matches" is forbidden: User "x" cannot patch resource "configmaps" in API group "" in the namespace "apps"`, "permission"},
		},
	},
	{
		kind: "Kustomization", reason: "BuildFailed", code: "build",
		message: `kustomize build failed: nothing selected by Service.[noVer].[noGrp]/«web».[noNs]:spec`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `Service/apps/nothing-selected dry-run failed (Invalid): Service "nothing-selected" is invalid: spec.selector: Required value`, "invalid"},
			{"ImagePolicy", "Failed", `failed to select: nothing selected by service: no tags in database`, "image-none"},
		},
	},
	{
		kind: "Kustomization", reason: "BuildFailed", code: "build", spec: `{"targetNamespace": "apps"}`,
		message: `kustomize build failed: namespace transformation produces ID conflict: [{"apiVersion":"v1","data":{"a":"b"},"kind":"ConfigMap","metadata":{"annotations":{},"name":"«settings»","namespace":"apps"}} {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"«settings»","namespace":"apps"}}]`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/id-conflict dry-run failed (Conflict): Apply failed with 1 conflict: conflict with "namespace transformation": .data.a`, "conflict"},
			{"Kustomization", "ReconciliationFailed", `ConfigMap/namespace-transformation/settings not found: namespaces "namespace-transformation" not found`, "namespace-missing"},
		},
	},
	{
		kind: "Kustomization", reason: "BuildFailed", code: "build",
		message: `kustomize build failed: accumulating resources: accumulation err='merging resources from 'b.yaml': may not add resource with an already registered id: ConfigMap.v1.[noGrp]/«settings».[noNs]': must build at directory: 'apps/b.yaml': file is not directory`,
		near: []near{
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/registered with chart web@1.0.0: Unable to continue with install: ConfigMap "already-registered" in namespace "apps" exists and cannot be imported into the current release: invalid ownership metadata; label validation error`, "release-ownership"},
			{"Kustomization", "ArtifactFailed", `kustomization path not found: stat merging/resources: no such file or directory`, "build-path"},
		},
	},
	{
		kind: "Kustomization", reason: "BuildFailed", code: "build",
		message: `kustomize build failed: error in remove for path: '/data/«none»': Unable to remove nonexistent key: «none»: missing value`,
		near: []near{
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/remove-path with chart web@1.0.0: error while running post render on files: error in remove for path: '/data/none': Unable to remove nonexistent key: none: missing value`, "post-renderer"},
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/remove dry-run failed (Invalid): ConfigMap "remove" is invalid: data[path]: Invalid value: "missing": Unable to remove nonexistent key`, "invalid"},
		},
	},
	{
		kind: "Kustomization", reason: "BuildFailed", code: "build",
		message: `kustomize build failed: accumulating resources: accumulation err='accumulating resources from '/etc/«[u]passwd»': fs-security-constraint read /etc/«[u]passwd»: path '/etc/«[u]passwd»' is not in or below 'apps'': new root '/etc/«[u]passwd»' cannot be absolute`,
		near: []near{
			{"Kustomization", "ArtifactFailed", `kustomization path not found: stat security/constraint: no such file or directory`, "build-path"},
			{"Kustomization", "ReconciliationFailed", `Pod/apps/security-constraint dry-run failed (Forbidden): pods "security-constraint" is forbidden: violates PodSecurity "restricted:latest": absolute path`, "admission"},
		},
	},
	{
		kind: "Kustomization", reason: "BuildFailed", code: "build",
		message: `kustomize build failed: accumulating resources: accumulation err='accumulating resources from '«[u]cm».yaml': missing metadata.name in object {{v1 ConfigMap} {{ } map[] map[]}}': must build at directory: 'apps/«[u]cm».yaml': file is not directory`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/missing dry-run failed (Invalid): ConfigMap "missing" is invalid: metadata.name: Required value: name or generateName is required`, "invalid"},
			{"Kustomization", "ArtifactFailed", `kustomization path not found: stat missing/metadata: no such file or directory`, "build-path"},
		},
	},
	{
		kind: "Kustomization", reason: "BuildFailed", code: "build",
		message: `failed to decode Kubernetes apiVersion, kind and name from: {"kind":"ConfigMap","metadata":{"name":"«x»"}}`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `Deployment/apps/decode dry-run failed (BadRequest): Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: unknown field "spec.kind"`, "invalid"},
			{"Kustomization", "ReconciliationFailed", `Gizmo/apps/failed-to-decode dry-run failed: no matches for kind "Gizmo" in version "kubernetes/v1"`, "api-missing"},
		},
	},
	{
		kind: "Kustomization", reason: "BuildFailed", code: "build",
		message: `kustomize build failed: accumulating resources: accumulation err='accumulating resources from '../apps': read apps: is a directory': cycle detected: candidate root 'apps/«[u]web»' contains visited root 'apps/«[u]web»'`,
		near: []near{
			{"Kustomization", "ArtifactFailed", `kustomization path not found: stat cycle/detected: no such file or directory`, "build-path"},
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/cycle dry-run failed (Invalid): ConfigMap "cycle" is invalid: data[root]: Invalid value: "candidate": contains visited root`, "invalid"},
		},
	},
	{
		kind: "Kustomization", reason: "BuildFailed", code: "build",
		message: "kustomize build failed: trouble configuring builtin HelmChartInflationGenerator with config: `\nname: «x»\n`: must specify --enable-helm",
		near: []near{
			{"HelmChart", "ChartPullFailed", `chart pull error: failed to download chart for remote reference: could not get '/charts/enable-helm': must specify: no chart version found for enable-helm`, "chart-version"},
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/enable-helm dry-run failed (Invalid): ConfigMap "enable-helm" is invalid: data[trouble]: Invalid value: "configuring builtin": must be a name`, "invalid"},
		},
	},
	{
		kind: "Kustomization", reason: "BuildFailed", code: "build",
		message: `error converting YAML to JSON: yaml: line «[n]1»: did not find expected ',' or ']'`,
		near: []near{
			{"HelmRelease", "ValuesError", `could not resolve ConfigMap chart values reference 'apps/vals' with key 'values.yaml': error converting YAML to JSON: yaml: line 1: did not find expected ',' or ']'`, "values-invalid"},
			{"Kustomization", "BuildFailed", `post build failed for 'converting': envsubst error: variable substitution failed: error converting: variable not set (strict mode): "YAML"`, "substitution"},
		},
	},
	{
		kind: "Kustomization", reason: "BuildFailed", code: "build",
		message: "kustomize build failed: trouble configuring builtin PatchTransformer with config: `\npatch: «x»\n`: unable to parse SM or JSON patch from [«x»]",
		near: []near{
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/trouble dry-run failed (Invalid): ConfigMap "trouble" is invalid: data[patch]: Invalid value: "unable to parse": must be a key`, "invalid"},
			{"Kustomization", "ArtifactFailed", `kustomization path not found: stat trouble/configuring/builtin: no such file or directory`, "build-path"},
		},
	},
	{
		kind: "Kustomization", reason: "BuildFailed", code: "build-path", spec: `{"path": "./plain/cm.yaml"}`,
		message: `open plain/«[u]cm».yaml/kustomization.yaml: not a directory remove plain/«[u]cm».yaml/kustomization.yaml: not a directory`,
		near: []near{
			{"Kustomization", "BuildFailed", `kustomize build failed: accumulating resources: accumulation err='accumulating resources from 'not-a-directory.yaml': open plain/not-a-directory.yaml: no such file or directory': must build at directory: not a valid directory: evalsymlink failure`, "build"},
			{"Kustomization", "BuildFailed", `failed to decode Kubernetes YAML from plain/kustomization.yaml: MalformedYAMLError: yaml: line 3: not a directory`, "build"},
		},
	},
	{
		kind: "Kustomization", reason: "ArtifactFailed", code: "build-path", spec: `{"path": "./«[u]apps»"}`, live: Live{Ignored: "line 1 (\"/apps\") of .spec.ignore of GitRepository/apps/app"},
		message: `kustomization path not found: stat «[u]apps»: no such file or directory`,
		near: []near{
			{"Kustomization", "ArtifactFailed", `Source artifact not found, retrying in 30s`, ""},
			{"HelmChart", "InvalidChartReference", `invalid chart reference: stat kustomization-path-not-found: no such file or directory`, "chart-version"},
		},
	},
}

// referenceExamples are messages about fields of the spec that refer to something else.
var referenceExamples = []example{
	{
		kind: "HelmChart", reason: "DependencyBuildError", code: "chart-dependency",
		message: `dependency build error: failed to add remote dependency '«x»': failed to get chart '«x»' version '1.0.0' from 'http://«[u]host»/charts': failed to cache index: failed to cache index to temporary file: Get "http://«[u]host»/charts/index.yaml": dial tcp 127.0.0.1:1: connect: connection refused`,
		near: []near{
			{"HelmRepository", "Failed", `failed to fetch Helm repository index: failed to cache index to temporary file: Get "http://failed-to-add-remote-dependency/index.yaml": dial tcp 127.0.0.1:1: connect: connection refused`, "source-unreachable"},
			{"HelmChart", "ChartPullFailed", `chart pull error: failed to get chart version for remote reference: no 'remote-dependency' chart with version matching '1.0.0' found`, "chart-version"},
		},
	},
	{
		kind: "HelmChart", reason: "DependencyBuildError", code: "chart-dependency",
		message: `dependency build error: failed to add local dependency '«x»': no chart found at '/nochart' (reference 'file://../«[u]nochart»')`,
		near: []near{
			{"HelmChart", "InvalidChartReference", `invalid chart reference: stat local/dependency: no such file or directory`, "chart-version"},
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to clone 'https://git/local-dependency': repository not found: `, "source-not-found"},
		},
	},
	{
		kind: "HelmChart", reason: "ValuesFilesError", code: "chart-values-file",
		message: `values files merge error: no values file found at path '/chart/«[u]gone».yaml' (reference './chart/«[u]gone».yaml')`,
		near: []near{
			{"HelmChart", "InvalidChartReference", `invalid chart reference: stat values/file/found: no such file or directory`, "chart-version"},
			{"HelmRelease", "ValuesError", `could not resolve ConfigMap chart values reference 'apps/vals' with key 'values-files': key not found`, "values-missing"},
		},
	},
	{
		kind: "HelmChart", reason: "InvalidChartReference", code: "chart-invalid",
		message: `invalid chart reference: validation: chart.metadata.version "«[t]notsemver»" is invalid`,
		near: []near{
			{"HelmChart", "InvalidChartReference", `invalid chart reference: stat metadata/version: no such file or directory`, "chart-version"},
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/chart dry-run failed (Invalid): ConfigMap "chart" is invalid: metadata.version: Invalid value: "validation": must be a version`, "invalid"},
		},
	},
	{
		kind: "GitRepository", reason: "GitOperationFailed", code: "source-reference", spec: `{"url": "https://git/x", "sparseCheckout": ["«[u]nodir»"], "ref": {"branch": "main"}}`,
		message: `failed to sparse checkout directories : sparse checkout dir '«[u]nodir»' does not exist in repository: lstat «[u]nodir»: no such file or directory`,
		near: []near{
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to clone 'https://git/sparse-checkout': repository not found: `, "source-not-found"},
			{"Kustomization", "ArtifactFailed", `kustomization path not found: stat sparse/checkout/directories: no such file or directory`, "build-path"},
		},
	},
	{
		kind: "GitRepository", reason: "GitOperationFailed", code: "source-reference", spec: `{"url": "https://git/x", "ref": {"commit": "abc1234"}}`,
		message: `failed to checkout and determine revision: unable to resolve commit object for 'abc1234': object not found`,
		near: []near{
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to clone 'https://git/commit-object': repository not found: `, "source-not-found"},
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to clone 'https://git/resolve': authentication required: object not found`, "source-authentication"},
		},
	},
	{
		kind: "HelmRepository", reason: "Failed", code: "source-server-error", spec: `{"url": "https://«[u]charts»"}`,
		message: `failed to fetch Helm repository index: failed to cache index to temporary file: failed to fetch https://«[u]charts»/index.yaml : 503 Service Unavailable`,
		near: []near{
			{"HelmRepository", "Failed", `failed to fetch Helm repository index: failed to cache index to temporary file: failed to fetch https://503-service-unavailable/index.yaml : 404 Not Found`, "source-not-found"},
			{"HelmRepository", "Failed", `failed to fetch Helm repository index: failed to cache index to temporary file: Get "https://service-unavailable/index.yaml": dial tcp 10.0.0.1:443: connect: connection refused`, "source-unreachable"},
		},
	},
	{
		kind: "GitRepository", reason: "EmptyGitRepository", code: "source-empty", spec: `{"url": "https://git/x"}`,
		message: `git repository is empty`,
		near: []near{
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to clone 'https://git/repository-is-empty': couldn't find remote ref "refs/heads/empty"`, "source-reference"},
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to clone 'https://git/empty': repository not found: git repository is empty`, "source-not-found"},
		},
	},
	{
		kind: "OCIRepository", reason: "OCIArtifactPullFailed", code: "source-provider", spec: `{"url": "oci://«[u]host»/x", "provider": "aws"}`,
		message: `failed to determine artifact digest: Get "http://«[u]host»/v2/none/manifests/v1": invalid AWS registry: '«[u]host»'. must match ^([0-9]{12})\.dkr[.-]ecr`,
		near: []near{
			{"OCIRepository", "OCIArtifactPullFailed", `failed to determine artifact digest: GET http://invalid-aws-registry/v2/none/manifests/v1: MANIFEST_UNKNOWN: manifest unknown`, "source-reference"},
			{"OCIRepository", "OCIArtifactPullFailed", `failed to determine artifact digest: Get "https://invalid-registry/v2/": dial tcp 10.0.0.1:443: connect: connection refused`, "source-unreachable"},
		},
	},
	{
		kind: "GitRepository", reason: "GitOperationFailed", code: "source-proxy", spec: `{"url": "https://git/x", "proxySecretRef": {"name": "«proxy»"}}`,
		message: `failed to checkout and determine revision: unable to clone 'https://git/x': Get "https://git/x/info/refs?service=git-upload-pack": proxyconnect tcp: dial tcp 127.0.0.1:1: connect: connection refused`,
		near: []near{
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to clone 'https://git/proxyconnect': Get "https://git/proxyconnect/info/refs": dial tcp 127.0.0.1:1: connect: connection refused`, "source-unreachable"},
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to clone 'https://git/proxyconnect-tcp': repository not found: `, "source-not-found"},
		},
	},
	{
		kind: "HelmRepository", reason: "Failed", code: "source-proxy", spec: `{"url": "https://charts"}`,
		message: `failed to fetch Helm repository index: failed to cache index to temporary file: Get "https://charts/index.yaml": proxyconnect tcp: dial tcp 127.0.0.1:1: connect: connection refused`,
		near: []near{
			{"HelmRepository", "Failed", `failed to fetch Helm repository index: failed to cache index to temporary file: Get "https://proxyconnect/index.yaml": dial tcp 127.0.0.1:1: connect: connection refused`, "source-unreachable"},
			{"HelmRepository", "Failed", `failed to fetch Helm repository index: failed to cache index to temporary file: failed to fetch https://proxyconnect/index.yaml : 404 Not Found`, "source-not-found"},
		},
	},
	{
		kind: "HelmRepository", reason: "Failed", code: "source-tls", spec: `{"url": "https://«[u]charts»"}`,
		message: `failed to fetch Helm repository index: failed to cache index to temporary file: Get "https://«[u]charts»/index.yaml": http: server gave HTTP response to HTTPS client`,
		near: []near{
			{"HelmRepository", "Failed", `failed to fetch Helm repository index: failed to cache index to temporary file: failed to fetch https://server-gave/index.yaml : 404 Not Found`, "source-not-found"},
			{"HelmRepository", "Failed", `failed to fetch Helm repository index: failed to cache index to temporary file: Get "https://http-response/index.yaml": dial tcp 10.0.0.1:443: connect: connection refused`, "source-unreachable"},
		},
	},
	{
		kind: "OCIRepository", reason: "OCIArtifactPullFailed", code: "source-tls", spec: `{"url": "oci://«[u]host»/x"}`,
		message: `failed to determine artifact digest: Get "https://«[u]host»/v2/": http: server gave HTTP response to HTTPS client`,
		near: []near{
			{"OCIRepository", "OCIArtifactPullFailed", `failed to determine artifact digest: GET https://http-response/v2/x/manifests/v1: MANIFEST_UNKNOWN: manifest unknown`, "source-reference"},
			{"OCIRepository", "OCIArtifactPullFailed", `failed to determine artifact digest: Get "https://server-gave/v2/": dial tcp 10.0.0.1:443: i/o timeout`, "source-unreachable"},
		},
	},
	{
		kind: "GitRepository", reason: "GitOperationFailed", code: "source-tls", spec: `{"url": "https://«[u]git»/x"}`,
		message: `failed to checkout and determine revision: unable to clone 'https://«[u]git»/x': Get "https://«[u]git»/x/info/refs?service=git-upload-pack": tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-11-25T14:00:00Z is after 2020-01-02T00:00:00Z`,
		near: []near{
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to clone 'https://git/certificate-has-expired': repository not found: `, "source-not-found"},
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to clone 'https://git/certificate': authentication required: certificate has expired`, "source-authentication"},
		},
	},
	{
		kind: "Kustomization", reason: "InvalidCELExpression", code: "expression",
		message: "Reconciliation failed terminally due to configuration error: failed to create custom status evaluator for healthchecks[0]: failed to parse the expression Current: failed to parse the CEL expression '«[t]nope(»': ERROR: <input>:1:6: Syntax error: mismatched input '<EOF>'",
		near: []near{
			{"Kustomization", "BuildFailed", `post build failed for 'expression': envsubst error: variable substitution failed: unable to parse variable name: failed to parse the expression`, "substitution"},
			{"Kustomization", "ReconciliationFailed", `Widget/apps/expression dry-run failed (Invalid): Widget.example.com "expression" is invalid: spec: Invalid value: "object": failed to parse the expression: syntax error`, "invalid"},
		},
	},
	{
		kind: "HelmRelease", reason: "InvalidCELExpression", code: "expression",
		message: "Reconciliation failed terminally due to configuration error: terminal error: failed to evaluate dependency «app»: failed to parse the CEL expression 'nope(': ERROR: <input>:1:6: Syntax error: mismatched input '<EOF>'",
		near: []near{
			{"HelmRelease", "DependencyNotReady", `dependency 'apps/evaluate-dependency' is not ready according to readyExpr eval`, "dependency-expression"},
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/evaluate with chart dependency@1.0.0: another operation (install/upgrade/rollback) is in progress`, "release-locked"},
		},
	},
	{
		kind: "Kustomization", reason: "DependencyNotReady", code: "dependency-expression",
		message: `dependency 'apps/«db»' is not ready according to readyExpr eval`,
		near: []near{
			{"Kustomization", "DependencyNotReady", `dependency 'apps/ready-expr' is not ready`, ""},
			{"Kustomization", "HealthCheckFailed", `health check failed after 10s: timeout waiting for: [ConfigMap/apps/according-to-ready status: 'InProgress']`, "health"},
		},
	},
	{
		kind: "Kustomization", reason: "ReconciliationFailed", code: "kubeconfig", spec: `{"kubeConfig": {"secretRef": {"name": "«kc»"}}}`,
		message: `invalid KubeConfig in secret 'apps/«kc»': yaml: line «[n]1»: did not find expected node content`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `unable to read KubeConfig secret 'apps/kc' error: secrets "kc" not found`, "secret-missing"},
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/kubeconfig dry-run failed (Invalid): ConfigMap "kubeconfig" is invalid: data[secret]: Invalid value: "line": did not find expected node content`, "invalid"},
		},
	},
	{
		kind: "Kustomization", reason: "ReconciliationFailed", code: "remote-cluster", spec: `{"kubeConfig": {"secretRef": {"name": "«kc»"}}}`,
		message: `ConfigMap/«settings» dry-run failed: failed to get server groups: Get "https://«[u]host»/api?timeout=30s": dial tcp 127.0.0.1:1: connect: connection refused`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/connection-refused dry-run failed (InternalError): Internal error occurred: failed calling webhook "groups.example.com": failed to call webhook: Post "https://a.apps.svc:443/?timeout=10s": dial tcp 10.0.0.1:443: connect: connection refused`, "webhook-down"},
			{"Kustomization", "ReconciliationFailed", `ConfigMap/server-groups/settings not found: namespaces "server-groups" not found`, "namespace-missing"},
		},
	},
	{
		kind: "ImageUpdateAutomation", reason: "UpdateFailed", code: "update-path", spec: `{"update": {"path": "./«[u]nodir»"}}`,
		message: `failed to apply policies: walking path for files: lstat «[u]nodir»: no such file or directory`,
		near: []near{
			{"Kustomization", "ArtifactFailed", `kustomization path not found: stat walking/path/for/files: no such file or directory`, "build-path"},
			{"ImageUpdateAutomation", "GitOperationFailed", `failed to checkout source: unable to clone 'https://git/walking-path-for-files': repository not found: `, "source-not-found"},
		},
	},
	{
		kind: "ImageUpdateAutomation", reason: "SourceManagerFailed", code: "signing-key",
		message: `failed configuring source manager: could not read signing key from secret '«sk»': openpgp: invalid argument: no armored data found`,
		near: []near{
			{"ImageUpdateAutomation", "SourceManagerFailed", `failed configuring source manager: could not find signing key secret 'gone': secrets "gone" not found`, ""},
			{"ImageUpdateAutomation", "GitOperationFailed", `failed to push to remote: command error on refs/heads/signing-key: pre-receive hook declined: could not read signing key`, "image-push"},
		},
	},
	{
		kind: "Receiver", reason: "TokenNotFound", code: "secret-key",
		message: `invalid 'apps/«tok»' secret data: required fields 'token'`,
		near: []near{
			{"Receiver", "TokenNotFound", `unable to read token from secret 'apps/required-fields' error: Secret "required-fields" not found`, ""},
			{"ImageUpdateAutomation", "GitOperationFailed", `failed to checkout source: unable to clone 'https://git/required-fields-token': repository not found: `, "source-not-found"},
		},
	},
	{
		kind: "ArtifactGenerator", reason: "BuildFailed", code: "artifact-empty",
		message: `out build failed: failed to apply copy operations: failed to apply copy operation from '@a/«[u]nodir»/**' to '@artifact/': no files match pattern '«[u]nodir»/**' in source 'a'`,
		near: []near{
			{"ArtifactGenerator", "SourceFetchFailed", `get sources failed: source 'GitRepository/apps/no-files-match-pattern' is not ready`, ""},
			{"Kustomization", "ArtifactFailed", `kustomization path not found: stat no/files/match/pattern: no such file or directory`, "build-path"},
		},
	},
	{
		kind: "HelmRelease", reason: "ValuesError", code: "values-invalid",
		message: `could not resolve ConfigMap chart values reference 'apps/«vals»' with key 'values.yaml': error converting YAML to JSON: yaml: line «[n]1»: did not find expected ',' or ']'`,
		near: []near{
			{"HelmRelease", "ValuesError", `could not resolve ConfigMap chart values reference 'apps/converting-yaml' with key 'values.yaml': configmaps "converting-yaml" not found`, "values-missing"},
			{"HelmRelease", "ValuesError", `could not resolve ConfigMap chart values reference 'apps/error' with key 'line': key not found`, "values-missing"},
		},
	},
	{
		kind: "HelmRelease", reason: "InstallFailed", code: "post-renderer",
		message: `Helm install failed for release apps/«web» with chart «app»@1.0.0: error while running post render on files: error in remove for path: '/data/none': Unable to remove nonexistent key: none: missing value`,
		near: []near{
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/post-render with chart app@1.0.0: another operation (install/upgrade/rollback) is in progress`, "release-locked"},
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/web with chart app@1.0.0: execution error at (post/templates/render.yaml:1:4): error while running`, "template"},
		},
	},
	{
		kind: "HelmRelease", reason: "InstallFailed", code: "chart-kube-version",
		message: `Helm install failed for release apps/«web» with chart «app»@1.0.0: chart requires kubeVersion: >=9.0.0 which is incompatible with Kubernetes v1.36.3`,
		near: []near{
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/incompatible with chart kubeversion@1.0.0: another operation (install/upgrade/rollback) is in progress`, "release-locked"},
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/web with chart requires@1.0.0: execution error at (kube/templates/version.yaml:1:4): chart requires Kubernetes 9`, "template"},
		},
	},
	{
		kind: "HelmRelease", reason: "InstallFailed", code: "template",
		message: `Helm install failed for release apps/«web» with chart app@1.0.0: error merging manifests: parsing app/templates/«[u]a».yaml: MalformedYAMLError: yaml: line «[n]3»: did not find expected key`,
		near: []near{
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/merging-manifests with chart app@1.0.0: another operation (install/upgrade/rollback) is in progress`, "release-locked"},
			{"Kustomization", "BuildFailed", `failed to decode Kubernetes YAML from apps/parsing.yaml: MalformedYAMLError: yaml: line 3: mapping values are not allowed`, "build"},
		},
	},
	{
		kind: "HelmRelease", reason: "InstallFailed", code: "template",
		message: "Helm install failed for release apps/«web» with chart app@1.0.0: app/templates/«[u]a».yaml:1:13\n  executing \"app/templates/a.yaml\" at <.Values.x.y.z>:\n    nil pointer evaluating interface {}.y",
		near: []near{
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/nil-pointer with chart executing@1.0.0: another operation (install/upgrade/rollback) is in progress`, "release-locked"},
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/evaluating with chart interface@1.0.0: Unable to continue with install: ConfigMap "nil-pointer" in namespace "apps" exists and cannot be imported into the current release: invalid ownership metadata`, "release-ownership"},
		},
	},
	{
		kind: "HelmRelease", reason: "InstallFailed", code: "namespace-missing", spec: `{"storageNamespace": "nowhere"}`,
		message: `Helm install failed for release apps/«web» with chart app@1.0.0: create: failed to create: namespaces "nowhere" not found`,
		near: []near{
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/failed-to-create with chart app@1.0.0: another operation (install/upgrade/rollback) is in progress`, "release-locked"},
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/web with chart app@1.0.0: create: failed to create: secrets is forbidden: User "x" cannot create resource "secrets" in API group "" in the namespace "nowhere"`, "permission"},
		},
	},
	{
		kind: "HelmRelease", reason: "InstallFailed", code: "namespace-missing",
		message: `Helm install failed for release nowhere/«web» with chart app@1.0.0: server-side apply failed for object nowhere/«web»-cm /v1, Kind=ConfigMap: namespaces "«nowhere»" not found`,
		near: []near{
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/namespaces with chart app@1.0.0: server-side apply failed for object apps/namespaces-cm /v1, Kind=ConfigMap: ConfigMap "namespaces-cm" is invalid: metadata.labels: Invalid value: "x": not found`, "invalid"},
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/web with chart app@1.0.0: server-side apply failed for object apps/namespaces-not-found example.com/v1, Kind=Gizmo: the server could not find the requested resource`, "api-missing"},
		},
	},
	{
		kind: "Kustomization", reason: "ReconciliationFailed", code: "quota",
		message: `Pod/apps/«web» dry-run failed (Forbidden): pods "«web»" is forbidden: failed quota: «few»: must specify limits.memory for: web; requests.cpu for: web`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `Pod/apps/must-specify dry-run failed (Invalid): Pod "must-specify" is invalid: spec.containers[0].resources.limits[memory]: Invalid value: "1": must specify limits`, "invalid"},
			{"Kustomization", "ReconciliationFailed", `Pod/apps/quota dry-run failed (Forbidden): pods "quota" is forbidden: violates PodSecurity "restricted:latest": must specify limits`, "admission"},
		},
	},
	{
		kind: "Kustomization", reason: "ReconciliationFailed", code: "account-missing", spec: `{"serviceAccountName": "«ghost»"}`, live: Live{NoAccount: true},
		message: `ConfigMap/apps/settings dry-run failed (Forbidden): configmaps "settings" is forbidden: User "system:serviceaccount:apps:«ghost»" cannot patch resource "configmaps" in API group "" in the namespace "apps"`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `Pod/apps/service-account dry-run failed (Forbidden): pods "service-account" is forbidden: error looking up service account apps/serviceaccount: serviceaccount "serviceaccount" not found`, "admission"},
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/ghost dry-run failed (Forbidden): configmaps "ghost" is forbidden: User "system:serviceaccount:apps:ghost" cannot patch resource "configmaps" in API group "" in the namespace "apps"`, "permission"},
		},
	},
	{
		kind: "Kustomization", reason: "ReconciliationFailed", code: "permission",
		message: `ConfigMap/apps/«settings» dry-run failed (Forbidden): configmaps "«settings»" is forbidden: User "system:serviceaccount:flux-system:kustomize-controller" cannot patch resource "configmaps" in API group "" in the namespace "apps"`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/kustomize-controller dry-run failed (Invalid): ConfigMap "kustomize-controller" is invalid: metadata.labels: Invalid value: "system:serviceaccount": must be a label`, "invalid"},
			{"Kustomization", "ReconciliationFailed", `Pod/apps/kustomize-controller dry-run failed (Forbidden): pods "kustomize-controller" is forbidden: violates PodSecurity "restricted:latest": patch`, "admission"},
		},
	},
	{
		kind: "HelmRelease", reason: "StateError", code: "permission", spec: `{"serviceAccountName": "weak"}`,
		message: `Could not determine release state: failed to retrieve last release from storage: query: failed to query with labels: secrets is forbidden: User "system:serviceaccount:apps:weak" cannot list resource "secrets" in API group "" in the namespace "apps"`,
		near: []near{
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/release-state with chart app@1.0.0: another operation (install/upgrade/rollback) is in progress`, "release-locked"},
			{"HelmRelease", "ValuesError", `could not resolve Secret chart values reference 'apps/failed-to-retrieve-last-release' with key 'values.yaml': secrets "failed-to-retrieve-last-release" not found`, "values-missing"},
		},
	},
	{
		kind: "Kustomization", reason: "ReconciliationFailed", code: "too-large",
		message: `ConfigMap/apps/«big» dry-run failed (Invalid): ConfigMap "«big»" is invalid: []: Too long: may not be more than 1048576 bytes`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/too-long dry-run failed (Invalid): ConfigMap "too-long" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes`, "invalid"},
			{"Kustomization", "ReconciliationFailed", `Pod/apps/bytes dry-run failed (Forbidden): pods "bytes" is forbidden: violates PodSecurity "restricted:latest": may not be more than 1048576 bytes`, "admission"},
		},
	},
	{
		kind: "Kustomization", reason: "ReconciliationFailed", code: "precondition",
		message: `ConfigMap/apps/«settings» dry-run failed (Conflict): Operation cannot be fulfilled on configmaps "«settings»": uid mismatch: the provided object specified uid abc, and no existing object was found`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/uid-mismatch dry-run failed (Conflict): Operation cannot be fulfilled on configmaps "uid-mismatch": the object has been modified; please apply your changes to the latest version and try again`, "conflict"},
			{"Kustomization", "ReconciliationFailed", `ConfigMap/uid-mismatch/settings not found: namespaces "uid-mismatch" not found`, "namespace-missing"},
		},
	},
	{
		kind: "Kustomization", reason: "ReconciliationFailed", code: "namespace-unset",
		message: "ConfigMap/«settings» namespace not specified: the server could not find the requested resource\n",
		near: []near{
			{"Kustomization", "ReconciliationFailed", `ConfigMap/namespace-not-specified/settings not found: namespaces "namespace-not-specified" not found`, "namespace-missing"},
			{"Kustomization", "ReconciliationFailed", `Gizmo/apps/namespace dry-run failed: the server could not find the requested resource`, "api-missing"},
		},
	},
	{
		kind: "Kustomization", reason: "ReconciliationFailed", code: "api-missing",
		message: "Gizmo/apps/«one» not found: the server could not find the requested resource (patch gizmoes.removed.example.com «one»)\n",
		near: []near{
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/patch-gizmoes not found: namespaces "patch-gizmoes" not found`, "namespace-missing"},
			{"Kustomization", "ReconciliationFailed", "ConfigMap/requested-resource namespace not specified: the server could not find the requested resource\n", "namespace-unset"},
		},
	},
	{
		kind: "Kustomization", reason: "ReconciliationFailed", code: "api-missing",
		message: `Gizmo/apps/«one» dry-run failed: the server could not find the requested resource`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/requested-resource dry-run failed (Invalid): ConfigMap "requested-resource" is invalid: data[server]: Invalid value: "could not find": must be a name`, "invalid"},
			{"Kustomization", "ReconciliationFailed", `ConfigMap/server-could-not-find/settings not found: namespaces "server-could-not-find" not found`, "namespace-missing"},
		},
	},
	{
		kind: "Kustomization", reason: "ReconciliationFailed", code: "invalid", spec: `{"commonMetadata": {"labels": {"team": "not valid!"}}}`,
		message: `ConfigMap/apps/«settings» dry-run failed (Invalid): ConfigMap "«settings»" is invalid: metadata.labels: Invalid value: "not valid!": a valid label must be an empty string or consist of alphanumeric characters`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `ConfigMap/valid-label/settings not found: namespaces "valid-label" not found`, "namespace-missing"},
			{"Kustomization", "ReconciliationFailed", `Pod/apps/valid-label dry-run failed (Forbidden): pods "valid-label" is forbidden: violates PodSecurity "restricted:latest": metadata.labels: alphanumeric characters`, "admission"},
		},
	},
}
