package rules

// applyExamples are messages of kustomize-controller v1.9 and helm-controller v1.6, with
// the errors of a Kubernetes 1.36 API server, ssa, kustomize and Helm v4.
var applyExamples = []example{
	{
		kind: "Kustomization", reason: "AccessDenied", code: "access-denied", spec: `{"sourceRef": {"kind": "GitRepository", "name": "«app»", "namespace": "other"}}`,
		message: `can't access 'GitRepository/other/«app»', cross-namespace references have been blocked`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/access-denied dry-run failed (Forbidden): configmaps "access-denied" is forbidden: User "x" cannot patch resource "configmaps" in API group "" in the namespace "cross-namespace-references-have-been-blocked"`, "permission"},
			{"Bucket", "BucketOperationFailed", `failed to confirm existence of 'accessdenied' bucket: Access Denied.`, "source-authentication"},
		},
	},
	{
		kind: "Kustomization", reason: "ArtifactFailed", code: "artifact-unreachable",
		message: `failed to download archive: GET http://«[u]127.0.0.1:1/x».tar.gz giving up after 10 attempt(s): Get "http://«[u]127.0.0.1:1/x».tar.gz": dial tcp 127.0.0.1:1: connect: connection refused`,
		near: []near{
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to clone 'http://127.0.0.1:1/download-archive.git': Get "http://127.0.0.1:1/download-archive.git/info/refs": dial tcp 127.0.0.1:1: connect: connection refused`, "source-unreachable"},
			{"Kustomization", "ArtifactFailed", `kustomization path not found: stat failed-to-download-archive: no such file or directory`, "build-path"},
		},
	},
	{
		kind: "Kustomization", reason: "ReconciliationFailed", code: "api-missing",
		message: `Gizmo/apps/«one» dry-run failed: no matches for kind "Gizmo" in version "«nowhere.example.com»/v1"`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `Service/apps/no-matches-for-kind dry-run failed (Invalid): Service "no-matches-for-kind" is invalid: spec.ports: Required value`, "invalid"},
			{"Kustomization", "BuildFailed", `kustomize build failed: no matches for Id Gizmo.v1.nowhere.example.com/one.[noNs]; failed to find unique target for patch`, "build"},
		},
	},
	{
		kind: "HelmRelease", reason: "InstallFailed", code: "api-missing",
		message: `Helm install failed for release apps/«web» with chart «app»@0.1.0: unable to build kubernetes objects from release manifest: resource mapping not found for name: "«one»" namespace: "apps" from "": no matches for kind "Gizmo" in version "nowhere.example.com/v1"
ensure CRDs are installed first`,
		near: []near{
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/no-matches with chart no-matches@0.1.0: execution error at (no-matches/templates/a.yaml:1:4): no matches for kind "Gizmo" in version "v1"`, "template"},
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/crds with chart ensure-crds@0.1.0: another operation (install/upgrade/rollback) is in progress`, "release-locked"},
		},
	},
	{
		kind: "Kustomization", reason: "ReconciliationFailed", code: "quota",
		message: `ConfigMap/apps/«settings» dry-run failed (Forbidden): configmaps "«settings»" is forbidden: exceeded quota: «few», requested: configmaps=1, used: configmaps=1, limited: configmaps=1`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/exceeded-quota dry-run failed (Forbidden): configmaps "exceeded-quota" is forbidden: User "system:serviceaccount:apps:exceeded-quota" cannot patch resource "configmaps" in API group "" in the namespace "apps"`, "permission"},
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/a dry-run failed (Forbidden): configmaps "a" is forbidden: ValidatingAdmissionPolicy 'exceeded-quota' with binding 'b' denied request: exceeded quota: few, requested: a`, "admission"},
		},
	},
	{
		kind: "Kustomization", reason: "ReconciliationFailed", code: "limit-range",
		message: `PersistentVolumeClaim/apps/«data» dry-run failed (Forbidden): persistentvolumeclaims "«data»" is forbidden: maximum storage usage per PersistentVolumeClaim is 1Gi, but request is «[n]5»Gi`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `Service/apps/maximum-cpu-usage-per-container dry-run failed (Invalid): Service "maximum-cpu-usage-per-container" is invalid: spec.type: Unsupported value: "maximum": supported values: "ClusterIP"`, "invalid"},
			{"Kustomization", "ReconciliationFailed", `Pod/apps/a dry-run failed (Forbidden): pods "a" is forbidden: violates PodSecurity "restricted:latest": maximum cpu usage per Container is 1`, "admission"},
		},
	},
	{
		kind: "Kustomization", reason: "ReconciliationFailed", code: "namespace-terminating",
		message: `ConfigMap/apps/«settings» dry-run failed (Forbidden): configmaps "«settings»" is forbidden: unable to create new content in namespace apps because it is being terminated`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/terminated dry-run failed (Forbidden): configmaps "terminated" is forbidden: User "x" cannot create resource "configmaps" in API group "" in the namespace "being-terminated"`, "permission"},
			{"Kustomization", "ReconciliationFailed", `ConfigMap/being-terminated/unable-to-create not found: namespaces "being-terminated" not found`, "namespace-missing"},
		},
	},
	{
		kind: "Kustomization", reason: "ReconciliationFailed", code: "admission",
		message: `Pod/apps/«web» dry-run failed (Forbidden): pods "«web»" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "«web»" must set securityContext.allowPrivilegeEscalation=false)`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `Pod/apps/violates-podsecurity dry-run failed (Invalid): Pod "violates-podsecurity" is invalid: spec.containers: Required value`, "invalid"},
			{"Kustomization", "HealthCheckFailed", `health check failed after 10s: timeout waiting for: [Pod/apps/violates-podsecurity status: 'InProgress']`, "health"},
		},
	},
	{
		kind: "Kustomization", reason: "ReconciliationFailed", code: "admission",
		message: `ConfigMap/apps/«settings» dry-run failed (Forbidden): admission webhook "«policy».example.com" denied the request: «[t]no settings here»`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `Service/apps/admission-webhook dry-run failed (Invalid): Service "admission-webhook" is invalid: metadata.annotations: Invalid value: "admission webhook \"x\" denied the request: y": bad`, "invalid"},
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/a dry-run failed (InternalError): Internal error occurred: failed calling webhook "denied.the.request": failed to call webhook: Post "https://a.b.svc:443/?timeout=10s": dial tcp 10.0.0.1:443: connect: connection refused`, "webhook-down"},
		},
	},
	{
		kind: "Kustomization", reason: "ReconciliationFailed", code: "webhook-down",
		message: `ConfigMap/apps/«settings» dry-run failed (InternalError): Internal error occurred: failed calling webhook "«policy».example.com": failed to call webhook: Post "https://«[u]gone».apps.svc:443/?timeout=10s": service "«gone»" not found`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/failed-calling-webhook dry-run failed (Forbidden): admission webhook "failed.to.call.webhook" denied the request: failed calling webhook "x": no endpoints`, "admission"},
			{"Kustomization", "HealthCheckFailed", `health check failed after 10s: timeout waiting for: [Deployment/apps/failed-to-call-webhook status: 'InProgress']`, "health"},
		},
	},
	{
		kind: "Kustomization", reason: "ReconciliationFailed", code: "permission",
		message: `ConfigMap/apps/«settings» dry-run failed (Forbidden): configmaps "«settings»" is forbidden: User "system:serviceaccount:apps:«weak»" cannot patch resource "configmaps" in API group "" in the namespace "apps"`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/is-forbidden dry-run failed (Forbidden): configmaps "is-forbidden" is forbidden: exceeded quota: cannot-patch-resource, requested: configmaps=1, used: configmaps=1, limited: configmaps=1`, "quota"},
			{"Kustomization", "ReconciliationFailed", `StatefulSet/apps/db dry-run failed (Invalid): StatefulSet.apps "db" is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals' are forbidden`, "immutable"},
		},
	},
	{
		kind: "Kustomization", reason: "ReconciliationFailed", code: "immutable",
		message: `Deployment/apps/«web» dry-run failed (Invalid): Deployment.apps "«web»" is invalid: spec.selector: Invalid value: {"matchLabels":{"app":"«[t]other»"}}: field is immutable`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `Service/apps/immutable-cache dry-run failed (Invalid): Service "immutable-cache" is invalid: spec.ports[0].port: Invalid value: 99999: must be between 1 and 65535, inclusive`, "invalid"},
			{"Kustomization", "ReconciliationFailed", `Deployment/apps/web dry-run failed (Invalid): Deployment.apps "web" is invalid: [spec.template.metadata.labels: Invalid value: {"app":"other"}: ` + "`selector` does not match template `labels`" + `, spec.selector: Invalid value: {"matchLabels":{"app":"web"}}: field is immutable]`, "invalid"},
			{"Kustomization", "ReconciliationFailed", `Ingress/apps/web dry-run failed (Invalid): Ingress.networking.k8s.io "web" is invalid: spec.rules[0].http.paths[0].path: Invalid value: "conflicts with: field is immutable": must be an absolute path`, "invalid"},
		},
	},
	{
		kind: "HelmRelease", reason: "UpgradeFailed", code: "immutable",
		message: `Helm upgrade failed for release apps/«web» with chart «app»@0.2.0: server-side apply failed for object apps/«web» apps/v1, Kind=Deployment: Deployment.apps "«web»" is invalid: spec.selector: Invalid value: {"matchLabels":{"app":"other"}}: field is immutable`,
		near: []near{
			{"HelmRelease", "UpgradeFailed", `Helm upgrade failed for release apps/field-is-immutable with chart immutable@0.2.0: values don't meet the specifications of the schema(s) in the following chart(s):
immutable:
- at '/replicas': field is immutable`, "template"},
			{"HelmRelease", "UpgradeFailed", `Helm upgrade failed for release apps/web with chart app@0.2.0: server-side apply failed for object apps/immutable /v1, Kind=Service: Service "immutable" is invalid: spec.type: Unsupported value: "field is immutable": supported values: "ClusterIP"`, "invalid"},
		},
	},
	{
		kind: "Kustomization", reason: "ReconciliationFailed", code: "invalid",
		message: `Service/apps/«web» dry-run failed (Invalid): Service "«web»" is invalid: spec.ports[0].port: Invalid value: «[n]99999»: must be between 1 and 65535, inclusive`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/is-invalid dry-run failed (Forbidden): configmaps "is-invalid" is forbidden: User "is invalid: spec" cannot patch resource "configmaps" in API group "" in the namespace "apps"`, "permission"},
			{"Kustomization", "BuildFailed", `kustomize build failed: Invalid value: the kustomization is invalid: spec`, "build"},
		},
	},
	{
		kind: "HelmRelease", reason: "InstallFailed", code: "invalid",
		message: `Helm install failed for release apps/«web» with chart «app»@0.1.0: failed to create resource: Service "«web»" is invalid: [spec.ports[0].port: Invalid value: «[n]99999»: must be between 1 and 65535, inclusive, spec.type: Unsupported value: "«[t]Wrong»": supported values: "ClusterIP", "ExternalName"]`,
		near: []near{
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/is-invalid with chart is-invalid@0.1.0: template: is-invalid/templates/a.yaml:1:3: executing "a" at <.Values.x>: nil pointer evaluating interface {}.y`, "template"},
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/web with chart app@0.1.0: resource Deployment/apps/is-invalid not ready. status: InProgress, message: Service "x" is invalid: spec: Required value`, "health"},
		},
	},
	{
		kind: "Kustomization", reason: "ReconciliationFailed", code: "invalid",
		message: `Deployment/apps/«web» dry-run failed: failed to create typed patch object (apps/«web»; apps/v1, Kind=Deployment): .spec.replicas: expected numeric (int or float), got string`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `ConfigMap/typed-patch/expected-numeric not found: namespaces "typed-patch" not found`, "namespace-missing"},
			{"Kustomization", "BuildFailed", `kustomize build failed: invalid Kustomization: json: unknown field "failed to create typed patch object"`, "build"},
		},
	},
	{
		kind: "Kustomization", reason: "ReconciliationFailed", code: "conflict",
		message: `Deployment/apps/«web» apply failed: Operation cannot be fulfilled on deployments.apps "«web»": the object has been modified; please apply your changes to the latest version and try again`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `Deployment/apps/object-modified apply failed: Deployment.apps "object-modified" is invalid: spec.replicas: Invalid value: -1: the object has been modified`, "invalid"},
			{"Kustomization", "DependencyNotReady", `dependency 'apps/object-has-been-modified' is not ready`, ""},
		},
	},
	{
		kind: "Kustomization", reason: "ReconciliationFailed", code: "conflict",
		message: `Deployment/apps/«web» dry-run failed (FieldManagerConflict): Apply failed with 1 conflict: conflict with "«[t]kubectl»" using apps/v1: .spec.replicas`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `Ingress/apps/conflict-with dry-run failed (Invalid): Ingress.networking.k8s.io "conflict-with" is invalid: spec.rules[0].host: Invalid value: "Apply failed with 1 conflict: conflict with \"x\"": a lowercase RFC 1123 subdomain`, "invalid"},
			{"Kustomization", "ReconciliationFailed", `Ingress/apps/a dry-run failed (Forbidden): admission webhook "validate.nginx" denied the request: host "a" and path "/" is already defined, conflicts with b`, "admission"},
		},
	},
	{
		kind: "Kustomization", reason: "ReconciliationFailed", code: "namespace-missing",
		message: `ConfigMap/nowhere/«settings» not found: namespaces "nowhere" not found`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `ServiceAccount/apps/namespaces dry-run failed (Forbidden): serviceaccounts "namespaces" is forbidden: User "namespaces \"x\" not found" cannot patch resource "serviceaccounts" in API group "" in the namespace "apps"`, "permission"},
			{"Kustomization", "BuildFailed", `substitute from 'ConfigMap/namespaces' error: ConfigMap "namespaces" not found`, "substitution"},
		},
	},
	{
		kind: "Kustomization", reason: "HealthCheckFailed", code: "health",
		message: `health check failed after 10.026s: timeout waiting for: [Deployment/apps/«sops-operator» status: 'NotFound', Deployment/apps/«web» status: 'InProgress']`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/timeout-waiting-for dry-run failed (Invalid): ConfigMap "timeout-waiting-for" is invalid: data[timeout waiting for]: Invalid value: "x": a valid config key`, "invalid"},
			{"Kustomization", "HealthCheckFailed", `health check failed after 10s: context deadline exceeded`, ""},
		},
	},
	{
		kind: "HelmRelease", reason: "InstallFailed", code: "health",
		message: `Helm install failed for release apps/«web» with chart «app»@0.1.0: resource Deployment/apps/«web» not ready. status: InProgress, message: Available: 0/1
context deadline exceeded`,
		near: []near{
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/not-ready with chart not-ready@0.1.0: failed to create resource: namespaces "apps" not found`, "namespace-missing"},
			{"HelmRelease", "ArtifactFailed", `Could not load chart: resource not ready`, ""},
		},
	},
	{
		kind: "Kustomization", reason: "ReconciliationFailed", code: "decryption",
		message: `Secret/apps/«locked» is SOPS encrypted, configuring decryption is required for this secret to be reconciled`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `Deployment/apps/sops dry-run failed (Invalid): Deployment.apps "sops" is invalid: spec.template.spec.containers[0].image: Required value`, "invalid"},
			{"Kustomization", "HealthCheckFailed", `health check failed after 10s: timeout waiting for: [Deployment/apps/is-sops-encrypted status: 'InProgress']`, "health"},
		},
	},
	{
		kind: "Kustomization", reason: "BuildFailed", code: "decryption", spec: `{"decryption": {"provider": "sops", "secretRef": {"name": "«sops-age»"}}}`,
		message: `decryption failed for '/v1, Kind=Secret/«locked»': failed to decrypt and format 'apps/«locked»' yaml data: cannot get sops data key: Failed to get the data key required to decrypt the SOPS file.

Group 0: FAILED
  age1xyz: FAILED
    - | no identity matched any of the recipients`,
		near: []near{
			{"Kustomization", "BuildFailed", `kustomize build failed: accumulating resources: accumulation err='accumulating resources from 'sops-decrypt.yaml': open sops-decrypt.yaml: no such file or directory'`, "build"},
			{"Kustomization", "ReconciliationFailed", `Service/apps/data-key dry-run failed (Invalid): Service "data-key" is invalid: spec.ports[0].name: Invalid value: "cannot get sops data key": must be lower case`, "invalid"},
		},
	},
	{
		kind: "Kustomization", reason: "BuildFailed", code: "decryption",
		message: `decryption failed for '/v1, Kind=Secret/«locked»': failed to decrypt and format 'apps/«locked»' yaml data: Error unmarshalling input yaml: «[t]mapping values are not allowed»`,
		near: []near{
			{"Kustomization", "BuildFailed", `kustomize build failed: error converting YAML to JSON: decryption failed: mapping values are not allowed`, "build"},
			{"Kustomization", "ReconciliationFailed", `Secret/apps/decryption-failed dry-run failed (Invalid): Secret "decryption-failed" is invalid: data[decryption failed for]: Invalid value: "yaml": bad key`, "invalid"},
		},
	},
	{
		kind: "Kustomization", reason: "BuildFailed", code: "substitution",
		message: `post build failed for '/v1, Kind=ConfigMap/«settings»': envsubst error: variable substitution failed: variable not set (strict mode): "«[t]cluster_name»"`,
		near: []near{
			{"Kustomization", "BuildFailed", `kustomize build failed: open post-build-envsubst.yaml: no such file or directory`, "build"},
			{"Kustomization", "ReconciliationFailed", `ConfigMap/apps/variable-not-set dry-run failed (Invalid): ConfigMap "variable-not-set" is invalid: data[variable substitution failed]: Invalid value: "a": bad key`, "invalid"},
		},
	},
	{
		kind: "Kustomization", reason: "BuildFailed", code: "substitution",
		message: `post build failed for '/v1, Kind=ConfigMap/«settings»': substitute from 'ConfigMap/«gone»' error: configmaps "«gone»" not found`,
		near: []near{
			{"Kustomization", "ArtifactFailed", `kustomization path not found: stat /tmp/kustomization-1/substitute-from: no such file or directory`, "build-path"},
			{"HelmRelease", "ValuesError", `could not resolve ConfigMap chart values reference 'apps/substitute-from' with key 'values.yaml': configmaps "substitute-from" not found`, "values-missing"},
		},
	},
	{
		kind: "Kustomization", reason: "BuildFailed", code: "substitution",
		message: `post build failed for '/v1, Kind=ConfigMap/«settings»': envsubst error: variable substitution failed: «[t]unable to parse variable name»`,
		near: []near{
			{"Kustomization", "BuildFailed", `kustomize build failed: unable to parse variable name of envsubst.yaml`, "build"},
			{"Kustomization", "HealthCheckFailed", `health check failed after 10s: timeout waiting for: [Deployment/apps/variable-substitution-failed status: 'InProgress']`, "health"},
		},
	},
	{
		kind: "Kustomization", reason: "ArtifactFailed", code: "build-path", spec: `{"path": "./«[u]apps/gone»"}`,
		message: `kustomization path not found: stat /tmp/kustomization-1234/«[u]apps/gone»: no such file or directory`,
		near: []near{
			{"Kustomization", "BuildFailed", `kustomize build failed: kustomization path not found: x`, "build"},
			{"Kustomization", "ReconciliationFailed", `Ingress/apps/path-not-found dry-run failed (Invalid): Ingress.networking.k8s.io "path-not-found" is invalid: spec.rules: Required value`, "invalid"},
		},
	},
	{
		kind: "Kustomization", reason: "BuildFailed", code: "build",
		message: `kustomize build failed: accumulating resources: accumulation err='accumulating resources from '«[u]gone».yaml': open «[u]gone».yaml: no such file or directory'`,
		near: []near{
			{"Kustomization", "ReconciliationFailed", `Service/apps/kustomize-build-failed dry-run failed (Invalid): Service "kustomize-build-failed" is invalid: spec.ports: Required value`, "invalid"},
			{"Kustomization", "DependencyNotReady", `dependency 'apps/kustomize-build-failed' is not ready`, ""},
		},
	},
	{
		kind: "HelmRelease", reason: "ValuesError", code: "values-missing",
		message: `could not resolve ConfigMap chart values reference 'apps/«gone»' with key '«values.yaml»': configmaps "«gone»" not found`,
		near: []near{
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/could-not-resolve with chart values-reference@0.1.0: another operation (install/upgrade/rollback) is in progress`, "release-locked"},
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/values with chart values@0.1.0: failed to create resource: ConfigMap "values" is invalid: data[a b]: Invalid value: "could not resolve": bad`, "invalid"},
		},
	},
	{
		kind: "HelmRelease", reason: "ValuesError", code: "values-missing",
		message: `could not resolve Secret chart values reference 'apps/«settings»' with key '«values.yaml»': key not found`,
		near: []near{
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/chart-values with chart key-not-found@0.1.0: another operation (install/upgrade/rollback) is in progress`, "release-locked"},
			{"HelmRelease", "ArtifactFailed", `Could not load chart: values reference with key not resolved`, ""},
		},
	},
	{
		kind: "HelmRelease", reason: "InstallFailed", code: "template",
		message: `Helm install failed for release apps/«web» with chart «app»@0.1.0: execution error at («app»/templates/app.yaml:1:4): «[t]from is wanted»`,
		near: []near{
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/template with chart template@0.1.0: failed to create resource: Deployment.apps "template" is invalid: spec.template.spec.containers: Required value`, "invalid"},
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/execution-error with chart app@0.1.0: resource Job/apps/parse-error not ready. status: Failed, message: Job Failed. failed: 1/1`, "health"},
		},
	},
	{
		kind: "HelmRelease", reason: "UpgradeFailed", code: "release-locked",
		message: `Helm upgrade failed for release apps/«web» with chart «app»@0.2.0: another operation (install/upgrade/rollback) is in progress`,
		near: []near{
			{"HelmRelease", "UpgradeFailed", `Helm upgrade failed for release apps/another-operation with chart pending-upgrade@0.2.0: cannot patch "pending-install" with kind Service: Service "pending-install" is invalid: spec.ports: Required value`, "invalid"},
			{"HelmRelease", "UpgradeFailed", `Helm upgrade failed for release apps/web with chart app@0.2.0: execution error at (app/templates/a.yaml:1:1): another operation (install/upgrade/rollback) is in progress`, "template"},
		},
	},
	{
		kind: "HelmRelease", reason: "InstallFailed", code: "release-ownership",
		message: `Helm install failed for release apps/«web» with chart «app»@0.1.0: unable to continue with install: ConfigMap "«settings»" in namespace "apps" exists and cannot be imported into the current release: invalid ownership metadata; label validation error: missing key "app.kubernetes.io/managed-by": must be set to "Helm"`,
		near: []near{
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/ownership-metadata with chart app@0.1.0: failed to create resource: configmaps "cannot-be-imported" is forbidden: exceeded quota: ownership, requested: configmaps=1, used: configmaps=1, limited: configmaps=1`, "quota"},
			{"HelmRelease", "InstallFailed", `Helm install failed for release apps/web with chart app@0.1.0: failed to create resource: namespaces "exists" not found`, "namespace-missing"},
		},
	},
	{
		kind: "HelmRelease", reason: "ArtifactFailed", code: "chart-version",
		message: `Could not load chart: stat «[u]charts/app»: no such file or directory`,
		near: []near{
			{"HelmRelease", "ArtifactFailed", `Could not load chart: artifact digest mismatch of stat`, ""},
			{"HelmRelease", "SourceNotReady", `HelmChart 'apps/could-not-load-chart' is not ready: latest generation of object has not been reconciled`, ""},
		},
	},
	{
		kind: "ImagePolicy", reason: "Failure", code: "image-none",
		message: `version list argument cannot be empty`,
		near: []near{
			{"ImagePolicy", "InvalidPolicy", `invalid policy: given version list argument cannot be empty`, "image-policy"},
			{"ImagePolicy", "AccessDenied", `cannot access 'ImageRepository/apps/version-list-argument-cannot-be-empty', cross-namespace references have been blocked`, "access-denied"},
		},
	},
	{
		kind: "ImagePolicy", reason: "InvalidPolicy", code: "image-policy",
		message: `invalid policy: improper constraint: «[t]one»`,
		near: []near{
			{"ImagePolicy", "AccessDenied", `cannot access 'ImageRepository/apps/invalid-policy-improper-constraint', cross-namespace references have been blocked`, "access-denied"},
			{"ImagePolicy", "ImageURLInvalid", `could not parse reference: invalid-policy`, "source-address"},
		},
	},
}
