package rules

import (
	"strings"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// fetchers lists the kinds that fetch from a server. gitKinds lists the kinds that use Git.
var (
	fetchers = []string{"GitRepository", "OCIRepository", "Bucket", "HelmRepository", "HelmChart", "ImageRepository", "ImagePolicy", "ImageUpdateAutomation", controllers.InputProvider}
	gitKinds = []string{"GitRepository", "ImageUpdateAutomation"}
)

// sourceRules holds the rules for fetching: for source-controller, scans of image-reflector-controller, and clones of
// image-automation-controller. The reasons are those in the API documentation of the controllers.
var sourceRules = []rule{
	{
		code: "secret-missing", types: []failure.Type{failure.NotFound}, when: namesMissingSecret, upstream: true,
		message: "{secret}, referenced by {secret field}, does not exist",
		fixes:   []string{"create {secret}: {create secret}", "or correct {secret field} of {object}"},
	},
	{
		code: "chart-dependency", kinds: []string{"HelmChart"}, steps: []failure.Step{failure.Dependency},
		message: "dependency {variable} of the chart cannot be fetched{from}: {detail}",
		fixes:   []string{"correct repository and version of dependency {variable} in Chart.yaml of the chart, or make the repository reachable from source-controller"},
	},
	{
		code: "source-reference", kinds: []string{"GitRepository"}, types: []failure.Type{failure.NoDirectory},
		message: "directory {variable} of .spec.sparseCheckout does not exist in {revision}",
		fixes:   []string{"correct .spec.sparseCheckout of {object}, or push the directory"},
	},
	{
		code: "chart-values-file", kinds: []string{"HelmChart"}, types: []failure.Type{failure.NoValuesFile},
		message: "values file {variable} does not exist in the source",
		fixes:   []string{"push {variable}, or correct .spec.chart.spec.valuesFiles of the HelmRelease of {object}"},
	},
	{
		code: "update-path", kinds: []string{"ImageUpdateAutomation"}, steps: []failure.Step{failure.Walk},
		message: ".spec.update.path {update path} does not exist in the repository",
		fixes:   []string{"correct .spec.update.path of {object}, or push the directory"},
	},
	{
		code: "signing-key", kinds: []string{"ImageUpdateAutomation"}, steps: []failure.Step{failure.SigningKey},
		message: "cannot use the signing key in Secret {namespace}/{name}: {text}",
		fixes:   []string{"store an armored OpenPGP private key in key git.asc of Secret {namespace}/{name}"},
	},
	{
		code: "secret-key", kinds: []string{"Receiver"}, types: []failure.Type{failure.NoKey},
		message: "{secret} has no key {variable}",
		fixes:   []string{"add key {variable} to {secret}"},
	},
	{
		code: "artifact-empty", kinds: []string{"ArtifactGenerator"}, types: []failure.Type{failure.NoMatches},
		message: "no files in source {name} match {variable}",
		fixes:   []string{"correct .spec.artifacts[].copy of {object}, or push the files"},
	},
	{
		code: "source-empty", kinds: gitKinds, types: []failure.Type{failure.Empty},
		message: "{address} has no commits",
		fixes:   []string{"push a first commit to {address}"},
	},
	{
		code: "source-provider", kinds: []string{"OCIRepository", "HelmRepository", "ImageRepository"}, types: []failure.Type{failure.Provider},
		message: "{detail} is not a registry of provider {provider}",
		fixes:   []string{"correct .spec.provider or {address field} of {object}"},
	},
	{
		code: "source-reference", kinds: []string{"GitRepository"}, types: []failure.Type{failure.NoRevision}, when: abbreviated,
		message: ".spec.ref.commit is abbreviated: a commit ID has 40 digits",
		fixes:   []string{"set .spec.ref.commit of {object} to the full ID of commit {commit}"},
	},
	{
		code: "source-proxy", kinds: []string{"GitRepository", "OCIRepository", "Bucket", "ImageRepository"}, steps: []failure.Step{failure.Proxy}, when: func(s Subject) bool { return proxySecret(s) != "" }, upstream: true,
		message: "cannot reach the proxy in Secret {proxy secret}: {detail}",
		fixes:   []string{"correct the address in Secret {proxy secret} (.spec.proxySecretRef of {object}), or start the proxy"},
	},
	{
		code: "source-proxy", kinds: fetchers, steps: []failure.Step{failure.Proxy}, upstream: true,
		message: "cannot reach the proxy of {controller}: {detail}",
		fixes:   []string{"correct HTTP_PROXY, HTTPS_PROXY and NO_PROXY of Deployment {controller}: kubectl{in home} describe deployment {controller}"},
	},
	{
		code: "secret-missing", types: []failure.Type{failure.NotFound}, steps: []failure.Step{failure.Credentials}, when: missesSecret, upstream: true,
		message: "{secret} does not exist",
		fixes:   []string{"create {secret}: {create secret}"},
	},
	{
		code: "source-verification", kinds: []string{"GitRepository", "OCIRepository", "HelmChart"},
		reasons: []string{"VerificationError", "InvalidVerificationMode", "InvalidGitObject", "InvalidTagSignature", "InvalidCommitSignature", "ChartVerificationError"},
		message: "the signature cannot be verified: {detail}",
		fixes:   []string{"sign the artifact or commit, or correct .spec.verify of {object}"},
	},
	{
		code: "controller-storage", kinds: fetchers,
		reasons: []string{"StorageOperationFailed", "ArchiveOperationFailed", "DirectoryCreationFailed", "StatOperationFailed", "AcquireLockFailed", "CacheOperationFailed", "SymlinkUpdateFailed"},
		message: "{controller} cannot store the artifact: {detail}",
		fixes:   []string{"free or add space on the volume of {controller}: kubectl{in home} describe pods -l app={controller}"},
	},
	{
		code: "source-address", kinds: fetchers, reasons: []string{"URLInvalid", "ImageURLInvalid"},
		message: "the address is invalid: {detail}",
		fixes:   []string{"correct {address field} of {object}"},
	},
	{
		code: "source-host-key", kinds: gitKinds, types: []failure.Type{failure.HostKey}, upstream: true,
		message: "the SSH host key of the Git server does not match known_hosts",
		fixes:   []string{"if the change of the host key is expected, add the new key to known_hosts in {or credentials}"},
	},
	{
		code: "image-push", kinds: []string{"ImageUpdateAutomation"}, steps: []failure.Step{failure.Push}, types: []failure.Type{failure.Rejected, failure.Unauthenticated},
		message: "push rejected (protected branch or read-only credentials): {detail}",
		fixes:   []string{"allow the credentials in {credentials field} to push to the branch, or set .spec.git.push.branch of {object} to another branch"},
	},
	{
		code: "source-authentication", kinds: fetchers, types: []failure.Type{failure.Unauthenticated}, upstream: true,
		when:    func(s Subject) bool { return credentialsOf(s) != "" },
		message: "{address} rejects the credentials in {credentials}",
		fixes:   []string{"update {credentials} with credentials that have read access to {address}"},
	},
	{
		code: "source-authentication", kinds: fetchers, types: []failure.Type{failure.Unauthenticated}, upstream: true,
		when:    func(s Subject) bool { return s.Kind.Fetch.Credentials != "" },
		message: "{address} requires credentials, and {own credentials} is not set",
		fixes:   []string{"create a Secret with the credentials: {create credentials}", "set {credentials field} to its name"},
	},
	{
		code: "source-authentication", kinds: fetchers, types: []failure.Type{failure.Unauthenticated}, upstream: true,
		when:    func(s Subject) bool { return credentialsField(s) != "" },
		message: "{address} rejects its credentials",
		fixes:   []string{"correct the Secret in {credentials field}"},
	},
	{
		code: "source-authentication", kinds: fetchers, types: []failure.Type{failure.Unauthenticated}, upstream: true,
		message: "{address} rejects its credentials",
		fixes:   []string{"correct the credentials of {server}"},
	},
	{
		code: "chart-version", kinds: []string{"HelmChart"}, types: []failure.Type{failure.NoChart, failure.NoRevision, failure.NoRepository},
		message: "chart not found: {detail}",
		fixes:   []string{"correct .spec.chart.spec.chart and .spec.chart.spec.version of the HelmRelease of {object}, or publish the chart"},
	},
	{
		code: "source-reference", kinds: []string{"GitRepository", "OCIRepository", "ImageRepository", "ImagePolicy", "ImageUpdateAutomation"}, types: []failure.Type{failure.NoRevision}, upstream: true,
		when:    func(s Subject) bool { return revisionOf(s) != "" },
		message: "{revision} not found in {address}",
		fixes:   []string{"push {revision}, or correct {revision fields}"},
	},
	{
		code: "source-reference", kinds: []string{"GitRepository", "OCIRepository", "ImageRepository", "ImagePolicy", "ImageUpdateAutomation"}, types: []failure.Type{failure.NoRevision}, upstream: true,
		message: "not found in {address}: {detail}",
		fixes:   []string{"publish the revision, or correct {revision fields}"},
	},
	{
		code: "source-not-found", kinds: []string{"Bucket"}, types: []failure.Type{failure.NoRepository, failure.NoRevision},
		message: "bucket {bucket} does not exist at {address}",
		fixes:   []string{"create the bucket, or correct {revision fields}"},
	},
	{
		code: "source-not-found", kinds: []string{"HelmRepository"}, types: []failure.Type{failure.NoRepository, ""}, steps: []failure.Step{failure.Index},
		message: "no valid index.yaml at {address}: {detail}",
		fixes:   []string{"set .spec.url of {object} to the URL of the directory with index.yaml"},
	},
	{
		code: "source-reference", kinds: []string{"OCIRepository", "ImageRepository", "ImagePolicy"}, types: []failure.Type{failure.NoRepository},
		message: "{address} does not exist, or the credentials do not give access to it",
		fixes:   []string{"publish the artifact, or correct {revision fields}"},
	},
	{
		code: "source-not-found", kinds: fetchers, types: []failure.Type{failure.NoRepository}, upstream: true,
		message: "{address} does not exist, or the credentials do not give access to it",
		fixes:   []string{"correct {address of}, or grant {or credentials} read access"},
	},
	{
		code: "source-tls", kinds: fetchers, types: []failure.Type{failure.Expired}, upstream: true,
		message: "the TLS certificate of {address} has expired or is not yet valid: {detail}",
		fixes:   []string{"renew the server certificate"},
	},
	{
		code: "source-tls", kinds: []string{"OCIRepository", "HelmRepository", "ImageRepository"}, types: []failure.Type{failure.PlainHTTP}, upstream: true,
		when:    func(s Subject) bool { return !strings.HasPrefix(s.Text(s.Kind.Fetch.Address), "http") },
		message: "{address} does not serve TLS: {detail}",
		fixes:   []string{"set .spec.insecure of {object} to true, or enable TLS on the server"},
	},
	{
		code: "source-tls", kinds: fetchers, types: []failure.Type{failure.PlainHTTP}, upstream: true,
		message: "{address} does not serve TLS: {detail}",
		fixes:   []string{"use http:// instead of https:// in {address of}, or enable TLS on the server"},
	},
	{
		code: "source-tls", kinds: fetchers, types: []failure.Type{failure.Untrusted}, upstream: true,
		when:    func(s Subject) bool { return s.Kind.Fetch.CA != "" },
		message: "no trusted TLS connection to {address}: {detail}",
		fixes:   []string{"create a Secret with the CA certificate in key ca.crt, and set {ca field} of {object} to its name"},
	},
	{
		code: "source-tls", kinds: fetchers, types: []failure.Type{failure.Untrusted}, upstream: true,
		message: "no trusted TLS connection to {address}: {detail}",
		fixes:   []string{"add the CA certificate to {server}"},
	},
	{
		code: "source-rate-limit", kinds: fetchers, types: []failure.Type{failure.RateLimited},
		message: "{address} rate-limits requests",
		fixes:   []string{"raise {interval} of {object}, or use credentials with a higher limit"},
	},
	{
		code: "source-server-error", kinds: fetchers, types: []failure.Type{failure.ServerFailed}, upstream: true,
		message: "{address} returned {detail}",
		fixes:   []string{"check the server or its status page; {controller} retries at {interval} of {object}"},
	},
	{
		code: "source-unreachable", kinds: fetchers, types: []failure.Type{failure.Unreachable, failure.TimedOut}, upstream: true,
		message: "cannot reach {address}: {detail}",
		fixes:   []string{"check {address of}, and DNS, proxies and NetworkPolicies between the cluster and the server"},
	},
	{
		code: "chart-invalid", kinds: []string{"HelmChart"}, reasons: []string{"InvalidChartReference"}, types: []failure.Type{""},
		message: "the chart is invalid: {detail}",
		fixes:   []string{"correct the chart, and publish it again"},
	},
	{
		code: "source-credentials", kinds: fetchers, reasons: []string{"AuthenticationFailed"},
		message: "the credentials cannot be used: {detail}",
		fixes:   []string{"correct the keys of {or credentials}"},
	},
}

// missesSecret reports whether a Secret does not exist. Substitution and applied objects have other rules.
func missesSecret(s Subject) bool {
	return s.failure.Named.Kind == "Secret" && !s.failure.In(failure.Substitute, failure.Apply, failure.Install, failure.Upgrade)
}

// abbreviated reports whether the requested commit has fewer digits than a commit ID.
func abbreviated(s Subject) bool {
	commit := s.Text("spec.ref.commit")
	return commit != "" && len(commit) < 40
}

// proxySecret returns the Secret with the address of the proxy, or "".
func proxySecret(s Subject) string {
	return prefixed(s.namespace()+"/", s.Text("spec.proxySecretRef.name"))
}

// namesMissingSecret reports whether a Secret referenced by a field of the object does not exist.
func namesMissingSecret(s Subject) bool {
	return missesSecret(s) && secretField(s, s.failure.Named.Name) != ""
}
