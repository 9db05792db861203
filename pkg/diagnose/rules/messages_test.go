package rules

// example is a message of a real component with the expected code, "" if no rule
// may match. The text between « and » is variable: [n], [u] and [t] in front of
// it mark a number, a part of a URL or path, and quoted text; others are names.
type example struct {
	kind, reason, message, code string
	// spec is the spec of the object as JSON, with the same names.
	spec string
	// live is what the cluster has of the failure.
	live Live
	// near are near misses: messages with similar words and their codes.
	near []near
}

type near struct{ kind, reason, message, code string }

// sourceExamples are messages of source-controller and the image controllers, v1.9 and
// v1.2, with the errors of go-git v5, go-containerregistry, minio and Go's net.
var sourceExamples = []example{
	{
		kind: "GitRepository", reason: "AuthenticationFailed", code: "secret-missing", spec: `{"secretRef": {"name": "«git»"}}`,
		message: `failed to get secret 'apps/«git»': secrets "«git»" not found`,
		near: []near{
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to clone 'http://git/secrets.git': couldn't find remote ref "refs/heads/secrets"`, "source-reference"},
			{"Kustomization", "ReconciliationFailed", `Pod/apps/web dry-run failed (Invalid): Pod "web" is invalid: spec.volumes[0].secret.secretName: Invalid value: "secrets \"x\" not found": must be a name`, "invalid"},
		},
	},
	{
		kind: "OCIRepository", reason: "AuthenticationFailed", code: "secret-missing", spec: `{"secretRef": {"name": "«gone»"}}`,
		message: `failed to get credential: failed to get secret 'apps/«gone»': secrets "«gone»" not found`,
		near: []near{
			{"OCIRepository", "OCIArtifactPullFailed", `failed to determine artifact digest: GET http://registry/v2/secret-not-found/manifests/v1: MANIFEST_UNKNOWN: manifest unknown`, "source-reference"},
			{"OCIRepository", "AuthenticationFailed", `failed to get credential: invalid docker config of secrets "x" not found`, "source-credentials"},
		},
	},
	{
		kind: "GitRepository", reason: "AuthenticationFailed", code: "secret-missing",
		message: `failed to get secret 'other/«git»': secrets "«git»" not found`,
		near: []near{
			{"GitRepository", "AuthenticationFailed", `failed to get secret 'other/git': secrets "git" is forbidden: User "x" cannot get resource "secrets" in API group "" in the namespace "other"`, "source-credentials"},
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to clone 'https://git/secret': repository not found: `, "source-not-found"},
		},
	},
	{
		kind: "Kustomization", reason: "BuildFailed", code: "secret-missing", spec: `{"decryption": {"provider": "sops", "secretRef": {"name": "«sops-age»"}}}`,
		message: `secrets "«sops-age»" not found`,
		near: []near{
			{"Kustomization", "BuildFailed", `kustomize build failed: accumulating resources: open secrets-not-found.yaml: no such file or directory`, "build"},
			{"Kustomization", "ReconciliationFailed", `ConfigMap/nowhere/secrets not found: namespaces "nowhere" not found`, "namespace-missing"},
		},
	},
	{
		kind: "Receiver", reason: "TokenNotFound", code: "secret-missing", spec: `{"secretRef": {"name": "«gone»"}}`,
		message: `unable to read token from secret 'apps/«gone»' error: Secret "«gone»" not found`,
		near: []near{
			{"Receiver", "TokenNotFound", `invalid "token" in secret 'apps/token': required fields token`, ""},
			{"Receiver", "ValidationFailed", `the filter of receiver secret-missing does not compile: Secret not found`, ""},
		},
	},
	{
		kind: "GitRepository", reason: "GitOperationFailed", code: "source-host-key",
		message: `failed to checkout and determine revision: unable to list remote for 'ssh://git@«[u]git.example.com»/fleet': ssh: handshake failed: knownhosts: key mismatch`,
		near: []near{
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to clone 'ssh://git@git/knownhosts-key-mismatch': authentication required: `, "source-authentication"},
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to list remote for 'ssh://git@hostkey/knownhosts': ssh: handshake failed: EOF`, "source-unreachable"},
		},
	},
	{
		kind: "ImageUpdateAutomation", reason: "GitOperationFailed", code: "image-push", spec: `{"sourceRef": {"kind": "GitRepository", "name": "«app»"}}`,
		message: `failed to update source: failed to push to remote: command error on refs/heads/«[u]main»: pre-receive hook declined`,
		near: []near{
			{"ImageUpdateAutomation", "GitOperationFailed", `failed to checkout source: unable to clone 'https://git/push-protected-read-only.git': authentication required: Unauthorized`, "source-authentication"},
			{"ImageUpdateAutomation", "UpdateFailed", `failed to apply policies: open /push/protected/pre-receive: permission denied`, ""},
		},
	},
	{
		kind: "ImageUpdateAutomation", reason: "GitOperationFailed", code: "image-push",
		message: `failed to update source: failed to push to remote: authorization failed: «[t]denied»`,
		near: []near{
			{"ImageUpdateAutomation", "GitOperationFailed", `failed to update source: failed to push to remote: dial tcp 10.0.0.1:40123: connect: connection refused`, "source-unreachable"},
			{"ImageUpdateAutomation", "RemovedTemplateField", `template uses removed 'push' field. See: https://fluxcd.io/authorization-failed`, ""},
		},
	},
	{
		kind: "GitRepository", reason: "InvalidCommitSignature", code: "source-verification",
		message: `signature verification of commit '«4f0fd71»' failed: unable to verify Git commit: unable to verify payload with any of the given key rings`,
		near: []near{
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to clone 'https://git/verification-failed': repository not found: `, "source-not-found"},
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to clone 'https://git/a': couldn't find remote ref "refs/heads/signature"`, "source-reference"},
		},
	},
	{
		kind: "GitRepository", reason: "GitOperationFailed", code: "source-authentication", spec: `{"url": "https://«[u]git.example.com»/fleet", "secretRef": {"name": "«git»"}}`,
		message: `failed to checkout and determine revision: unable to list remote for 'https://«[u]git.example.com»/fleet': authentication required: «[t]Unauthorized»`,
		near: []near{
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to list remote for 'http://127.0.0.1:40123/401.git': Get "http://127.0.0.1:40123/401.git/info/refs?service=git-upload-pack": dial tcp 127.0.0.1:40123: connect: connection refused`, "source-unreachable"},
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to clone 'https://git/authentication-required': couldn't find remote ref "refs/tags/build-14012"`, "source-reference"},
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to resolve commit object for '4014014014014014014014014014014014014014': object not found`, "source-reference"},
		},
	},
	{
		kind: "GitRepository", reason: "GitOperationFailed", code: "source-authentication",
		message: `failed to checkout and determine revision: unable to list remote for 'ssh://git@«[u]git.example.com»/fleet': ssh: handshake failed: ssh: unable to authenticate, attempted methods [none publickey], no supported methods remain`,
		near: []near{
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to list remote for 'ssh://git@unable-to-authenticate/fleet': ssh: handshake failed: read tcp 10.0.0.1:22->10.0.0.2:4011: read: connection reset by peer`, "source-unreachable"},
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to list remote for 'ssh://git@denied/fleet': dial tcp: lookup denied: no such host`, "source-unreachable"},
		},
	},
	{
		kind: "OCIRepository", reason: "OCIArtifactPullFailed", code: "source-authentication", spec: `{"url": "oci://«[u]registry.example.com»/app"}`,
		message: `failed to determine artifact digest: GET https://«[u]registry.example.com»/v2/app/manifests/v1: UNAUTHORIZED: authentication required; [map[Action:pull Class: Name:app Type:repository]]`,
		near: []near{
			{"OCIRepository", "OCIArtifactPullFailed", `failed to determine artifact digest: GET http://127.0.0.1:5000/v2/app/manifests/20240119: MANIFEST_UNKNOWN: manifest unknown; unknown tag=20240119`, "source-reference"},
			{"OCIRepository", "OCIArtifactPullFailed", `failed to determine artifact digest: Get "http://127.0.0.1:50401/v2/": dial tcp 127.0.0.1:50401: connect: connection refused`, "source-unreachable"},
		},
	},
	{
		kind: "OCIRepository", reason: "OCIArtifactPullFailed", code: "source-authentication",
		message: `failed to determine artifact digest: HEAD https://«[u]registry.example.com»/v2/app/manifests/v1: unexpected status code 403 Forbidden (HEAD responses have no body, use GET for details)`,
		near: []near{
			{"OCIRepository", "OCIArtifactPullFailed", `failed to determine artifact digest: HEAD https://registry/v2/403/manifests/v1: unexpected status code 500 Internal Server Error (HEAD responses have no body, use GET for details)`, "source-server-error"},
			{"OCIRepository", "OCIArtifactPullFailed", `failed to determine artifact digest: HEAD https://registry/v2/403/manifests/forbidden: unexpected status code 404 Not Found (HEAD responses have no body, use GET for details)`, "source-reference"},
		},
	},
	{
		kind: "Bucket", reason: "BucketOperationFailed", code: "source-authentication", spec: `{"endpoint": "«[u]minio.example.com»", "secretRef": {"name": "«minio»"}}`,
		message: `failed to confirm existence of '«app»' bucket: The Access Key Id you provided does not exist in our records.`,
		near: []near{
			{"Bucket", "BucketOperationFailed", `bucket 'access-denied' not found`, "source-not-found"},
			{"Bucket", "BucketOperationFailed", `failed to confirm existence of 'accessdenied' bucket: Get "http://minio:40311/accessdenied/": dial tcp 10.0.0.1:40311: i/o timeout`, "source-unreachable"},
		},
	},
	{
		kind: "HelmRepository", reason: "Failed", code: "source-authentication", spec: `{"url": "https://«[u]charts.example.com»"}`,
		message: `failed to fetch Helm repository index: failed to cache index to temporary file: failed to fetch https://«[u]charts.example.com»/index.yaml : 401 Unauthorized`,
		near: []near{
			{"HelmRepository", "Failed", `failed to fetch Helm repository index: failed to cache index to temporary file: failed to fetch http://charts:40100/401/index.yaml : 404 Not Found`, "source-not-found"},
			{"HelmRepository", "Failed", `failed to fetch Helm repository index: failed to cache index to temporary file: failed to fetch http://charts:40100/index.yaml : 500 Internal Server Error`, "source-server-error"},
		},
	},
	{
		kind: "ImageRepository", reason: "ReadOperationFailed", code: "source-authentication", spec: `{"image": "«[u]registry.example.com/app»"}`,
		message: `scan failed: GET https://«[u]registry.example.com»/v2/app/tags/list: DENIED: «[t]requested access to the resource is denied»`,
		near: []near{
			{"ImageRepository", "ReadOperationFailed", `scan failed: GET https://registry/v2/denied/tags/list: NAME_UNKNOWN: repository name not known to registry`, "source-reference"},
			{"ImageRepository", "ReadOperationFailed", `scan failed: Get "https://registry:40100/v2/": context deadline exceeded`, "source-unreachable"},
		},
	},
	{
		kind: "HelmChart", reason: "ChartPullError", code: "chart-version",
		message: `chart pull error: failed to get chart version for remote reference: no '«podinfo»' chart with version matching '«9.x»' found`,
		near: []near{
			{"HelmChart", "ChartPullError", `chart pull error: failed to download chart for remote reference: failed to fetch http://charts:40401/with-version-matching-9.tgz : 401 Unauthorized`, "source-authentication"},
			{"HelmChart", "ChartPackageError", `chart package error: no space left on device`, ""},
		},
	},
	{
		kind: "HelmChart", reason: "InvalidChartReference", code: "chart-version",
		message: `invalid chart reference: stat «[u]charts/gone»: no such file or directory`,
		near: []near{
			{"HelmChart", "DependencyBuildError", `dependency build error: failed to add remote dependency 'no-such-file-or-directory': Get "https://charts/invalid-chart-reference/index.yaml": dial tcp 10.0.0.1:443: connect: no route to host`, "chart-dependency"},
			{"HelmChart", "ValuesFilesError", `values files merge error: failed to merge chart values: no values file found at path 'invalid-chart-reference'`, ""},
		},
	},
	{
		kind: "HelmChart", reason: "ChartPullError", code: "source-authentication", spec: `{"sourceRef": {"kind": "HelmRepository", "name": "«charts»"}}`,
		message: `chart pull error: failed to download chart for remote reference: failed to fetch https://«[u]charts.example.com»/app-0.1.0.tgz : 401 Unauthorized`,
		near: []near{
			{"HelmChart", "ChartPullError", `chart pull error: failed to download chart for remote reference: failed to fetch https://charts/401-unauthorized.tgz : 404 Not Found`, "chart-version"},
			{"HelmChart", "ChartPullError", `chart pull error: failed to get chart version for remote reference: no 'unauthorized' chart with version matching '401' found`, "chart-version"},
		},
	},
	{
		kind: "ImagePolicy", reason: "Failure", code: "source-authentication",
		message: `failed fetching descriptor for image "«[u]registry.example.com»/app:v1": GET https://«[u]registry.example.com»/v2/app/manifests/v1: UNAUTHORIZED: «[t]authentication required»`,
		near: []near{
			{"ImagePolicy", "Failure", `failed fetching descriptor for image "registry/unauthorized:v1": GET https://registry/v2/unauthorized/manifests/v1: MANIFEST_UNKNOWN: manifest unknown`, "source-reference"},
			{"ImagePolicy", "Failure", `failed fetching descriptor for image "registry/app:UNAUTHORIZED": Get "https://registry/v2/": dial tcp 10.0.0.1:443: i/o timeout`, "source-unreachable"},
		},
	},
	{
		kind: "GitRepository", reason: "GitOperationFailed", code: "source-reference", spec: `{"url": "https://«[u]git»/fleet", "ref": {"tag": "«build-14012»"}}`,
		message: `failed to checkout and determine revision: unable to clone 'https://«[u]git»/fleet': couldn't find remote ref "refs/tags/«[t]build-14012»"`,
		near: []near{
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to list remote for 'http://git/reference-not-found': authentication required: `, "source-authentication"},
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to list remote for 'http://git/x': repository not found: couldn't find remote ref`, "source-not-found"},
		},
	},
	{
		kind: "GitRepository", reason: "GitOperationFailed", code: "source-reference",
		message: `failed to checkout and determine revision: no match found for semver: «[t]>=9.0.0»`,
		near: []near{
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: semver parse error: improper constraint: no-match-found`, ""},
			{"OCIRepository", "OCIArtifactPullFailed", `failed to determine the artifact tag for 'oci://registry/no-match-found-for-semver': GET https://registry/v2/x/tags/list: UNAUTHORIZED: authentication required`, "source-authentication"},
		},
	},
	{
		kind: "OCIRepository", reason: "OCIArtifactPullFailed", code: "source-reference", spec: `{"url": "oci://«[u]registry»/app", "ref": {"tag": "«[n]20240119»"}}`,
		message: `failed to determine artifact digest: GET http://«[u]registry»/v2/app/manifests/«[n]20240119»: MANIFEST_UNKNOWN: manifest unknown; unknown tag=«[n]20240119»`,
		near: []near{
			{"OCIRepository", "OCIArtifactPullFailed", `failed to determine artifact digest: GET http://registry/v2/manifest-unknown/manifests/404: TOOMANYREQUESTS: too many requests`, "source-rate-limit"},
			{"OCIRepository", "OCIArtifactLayerOperationFailed", `failed to extract layer contents from artifact: tar: name unknown: manifest_unknown.yaml`, ""},
		},
	},
	{
		kind: "Bucket", reason: "BucketOperationFailed", code: "source-not-found", spec: `{"endpoint": "minio", "bucketName": "«app»"}`,
		message: `bucket '«app»' not found`,
		near: []near{
			{"Bucket", "BucketOperationFailed", `fetch from bucket 'not-found' failed: failed to get 'nosuchbucket' object: Access Denied.`, "source-authentication"},
			{"Bucket", "ArchiveOperationFailed", `unable to archive artifact to storage: bucket not found`, "controller-storage"},
		},
	},
	{
		kind: "HelmRepository", reason: "Failed", code: "source-not-found", spec: `{"url": "https://«[u]charts»"}`,
		message: `failed to fetch Helm repository index: failed to cache index to temporary file: failed to fetch https://«[u]charts»/index.yaml : 404 Not Found`,
		near: []near{
			{"HelmRepository", "Failed", `failed to fetch Helm repository index: failed to cache index to temporary file: Get "http://charts:40400/index.yaml": dial tcp 127.0.0.1:40400: connect: connection refused`, "source-unreachable"},
			{"HelmRepository", "Failed", `failed to fetch Helm repository index: failed to cache index to temporary file: Get "https://charts/404": tls: failed to verify certificate: x509: certificate signed by unknown authority`, "source-tls"},
		},
	},
	{
		kind: "HelmRepository", reason: "IndexationFailed", code: "source-not-found",
		message: `failed to load Helm repository from index YAML: failed to load index: no API version specified`,
		near: []near{
			{"HelmRepository", "IndexationFailed", `failed to calculate revision: invalid index.yaml`, ""},
			{"HelmRepository", "URLInvalid", `invalid Helm repository URL: scheme "failed-to-load" not supported`, "source-address"},
		},
	},
	{
		kind: "ImageRepository", reason: "ReadOperationFailed", code: "source-reference", spec: `{"image": "«[u]registry/app»"}`,
		message: `scan failed: GET https://«[u]registry»/v2/app/tags/list: NAME_UNKNOWN: repository name not known to registry; map[name:app]`,
		near: []near{
			{"ImageRepository", "ReadOperationFailed", `scan failed: GET https://registry/v2/name_unknown/tags/list: unexpected status code 503 Service Unavailable`, "source-server-error"},
			{"ImageRepository", "ImageURLInvalid", `image 'name_unknown:404' should not include a tag; remove ':404'`, "source-address"},
		},
	},
	{
		kind: "GitRepository", reason: "GitOperationFailed", code: "source-not-found", spec: `{"url": "https://«[u]git»/gone"}`,
		message: `failed to checkout and determine revision: unable to list remote for 'https://«[u]git»/gone': repository not found: «[t]404 page not found»`,
		near: []near{
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to list remote for 'http://127.0.0.1:40400/not-found.git': Get "http://127.0.0.1:40400/not-found.git/info/refs?service=git-upload-pack": dial tcp 127.0.0.1:40400: connect: connection refused`, "source-unreachable"},
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to clone 'https://git/repository-not-found': remote repository is empty`, "source-empty"},
		},
	},
	{
		kind: "HelmChart", reason: "ChartPullError", code: "source-tls", spec: `{"sourceRef": {"kind": "HelmRepository", "name": "«charts»"}}`,
		message: `chart pull error: failed to download chart for remote reference: Get "https://«[u]charts.example.com»/app-0.1.0.tgz": tls: failed to verify certificate: x509: certificate signed by unknown authority`,
		near: []near{
			{"HelmChart", "ChartPullError", `chart pull error: failed to download chart for remote reference: failed to fetch https://x509/tls-certificate.tgz : 404 Not Found`, "chart-version"},
			{"HelmChart", "ChartPullError", `chart pull error: failed to download chart for remote reference: Get "https://certificate/unknown-authority.tgz": dial tcp 10.0.0.1:443: connect: connection refused`, "source-unreachable"},
		},
	},
	{
		kind: "HelmRepository", reason: "Failed", code: "source-tls", spec: `{"url": "https://«[u]charts»"}`,
		message: `failed to fetch Helm repository index: failed to cache index to temporary file: Get "https://«[u]charts»/index.yaml": tls: failed to verify certificate: x509: certificate signed by unknown authority`,
		near: []near{
			{"HelmRepository", "Failed", `failed to fetch Helm repository index: failed to cache index to temporary file: Get "https://x509-certificate/index.yaml": dial tcp: lookup x509-certificate on 10.96.0.10:53: no such host`, "source-unreachable"},
			{"OCIRepository", "OCIArtifactPullFailed", `failed to determine artifact digest: GET https://tls/v2/certificate/manifests/x509: NAME_UNKNOWN: repository name not known to registry`, "source-reference"},
		},
	},
	{
		kind: "GitRepository", reason: "ArchiveOperationFailed", code: "controller-storage",
		message: `unable to archive artifact to storage: write /data/gitrepository/apps/«app»/x.tar.gz: no space left on device`,
		near: []near{
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to clone 'https://storage/no-space-left': authentication required: `, "source-authentication"},
			{"Kustomization", "ReconciliationFailed", `PersistentVolumeClaim/apps/storage dry-run failed (Forbidden): persistentvolumeclaims "storage" is forbidden: maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 5Gi`, "limit-range"},
		},
	},
	{
		kind: "OCIRepository", reason: "OCIArtifactPullFailed", code: "source-rate-limit", spec: `{"url": "oci://«[u]registry»/app"}`,
		message: `failed to determine artifact digest: GET https://«[u]registry»/v2/app/manifests/v1: TOOMANYREQUESTS: You have reached your pull rate limit.`,
		near: []near{
			{"OCIRepository", "OCIArtifactPullFailed", `failed to determine artifact digest: GET https://toomanyrequests/v2/app/manifests/429: MANIFEST_UNKNOWN: manifest unknown`, "source-reference"},
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to list remote for 'http://git:42900/a': dial tcp 10.0.0.1:42900: connect: connection refused`, "source-unreachable"},
		},
	},
	{
		kind: "GitRepository", reason: "GitOperationFailed", code: "source-unreachable", spec: `{"url": "http://«[u]git»:«[n]40123»/fleet"}`,
		message: `failed to checkout and determine revision: unable to list remote for 'http://«[u]git»:«[n]40123»/fleet': Get "http://«[u]git»:«[n]40123»/fleet/info/refs?service=git-upload-pack": dial tcp 127.0.0.1:«[n]40123»: connect: connection refused`,
		near: []near{
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to clone 'https://git/connection-refused-i-o-timeout': repository not found: dial tcp`, "source-not-found"},
			{"GitRepository", "GitOperationFailed", `failed to checkout and determine revision: unable to clone 'https://git/a': couldn't find remote ref "refs/heads/dial-tcp: connect: connection refused"`, "source-reference"},
		},
	},
	{
		kind: "ImageRepository", reason: "ReadOperationFailed", code: "source-unreachable", spec: `{"image": "«[u]registry/app»"}`,
		message: `scan failed: Get "https://«[u]registry»/v2/": dial tcp: lookup «registry» on 10.96.0.10:53: no such host`,
		near: []near{
			{"ImageRepository", "AuthenticationFailed", `failed to configure authentication options: no such host key in secret`, "source-credentials"},
			{"ImageRepository", "ReadOperationFailed", `scan failed: GET https://registry/v2/dial-tcp-lookup/no-such-host/tags/list?n=1000: NAME_UNKNOWN: repository name not known to registry`, "source-reference"},
		},
	},
	{
		kind: "GitRepository", reason: "AuthenticationFailed", code: "source-credentials",
		message: `failed to configure authentication options: secret '«apps»/«git»': malformed key`,
		near: []near{
			{"GitRepository", "GitOperationFailed", `failed to create Git client: authentication options of AuthenticationFailed`, ""},
			{"Kustomization", "BuildFailed", `kustomize build failed: AuthenticationFailed: no such file`, "build"},
		},
	},
	{
		kind: "GitRepository", reason: "URLInvalid", code: "source-address",
		message: `failed to parse url '«[u]http://git/%zz»': parse "«[u]http://git/%zz»": invalid URL escape "%zz"`,
		near: []near{
			{"GitRepository", "GitOperationFailed", `failed to create Git client: URLInvalid`, ""},
			{"OCIRepository", "OCIArtifactPullFailed", `failed to determine artifact digest: GET https://registry/v2/invalid-url/manifests/1: MANIFEST_UNKNOWN: manifest unknown`, "source-reference"},
		},
	},
}
