package rules

import (
	"regexp"
	"slices"
	"sync"

	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// field is the subject of a message without a rule: a field of the spec, a Secret in a field, or a file in the source.
type field struct {
	// kinds lists the kinds of the Flux object; nil means all.
	kinds []string
	// pattern matches the start of a part of the message, in which quoted text is empty.
	pattern string
	// name is the field, as in "check NAME of OBJECT".
	name string
}

// fields lists the fields in the order in which they are tried. testdata/failures.txt contains the messages.
var fields = []field{
	// References, in all kinds.
	{nil, `can't access '', .*feature gate is disabled|'' feature gate is|\S+ feature gate is not enabled`, "the feature gates of the controller and the references"},
	{[]string{"Kustomization"}, "source `` kind '' not supported|unable to get source '':?|Source '' not found", ".spec.sourceRef"},
	{[]string{"HelmRelease"}, `could not get Source object:?|unknown sourcev1 type|artifact revision \S+ does not match|invalid (artifact revision|chart version) |invalid Chart reference|ExternalArtifact '' is not ready`, ".spec.chartRef"},
	{[]string{"ArtifactGenerator"}, "source `` kind '' not supported|unable to get source ''|source '' is not ready|source alias ''|failed to open source root|fetch sources failed|get sources failed", ".spec.sources"},
	{[]string{"ArtifactGenerator"}, `invalid (copy (source|destination)|exclude pattern|glob pattern) |source (must start|format must|'' does not exist)|destination must start|all files matching|extract strategy|filenames with newlines|failed to (apply copy|copy file|extract tarball|open tarball|stat source|merged YAML)|cannot unmarshal YAML|error reading YAML`, ".spec.artifacts[].copy"},
	{[]string{"ArtifactGenerator"}, `pathPattern "|failed to expand path pattern|failed to walk source`, ".spec.pathPattern"},
	{[]string{"ArtifactGenerator"}, `invalid template "`, "the templates in .spec.artifacts"},
	{[]string{"HelmRelease", "Kustomization"}, `dependency '' (not found|is not ready|revision)|unable to get '' dependency|failed to evaluate dependency`, ".spec.dependsOn"},
	{[]string{"HelmChart"}, `unsupported source kind|failed to get source|no artifact available for|unable to retrieve HelmRepositoryList`, ".spec.sourceRef"},
	{[]string{"ImagePolicy"}, `failed to get the referred ImageRepository|referenced \S+ does not exist|cannot access ''`, ".spec.imageRepositoryRef"},
	{[]string{"ImageUpdateAutomation"}, `source kind '' not supported|failed to get referenced git repository|referenced git repository|can't access ''|invalid source configuration`, ".spec.sourceRef"},

	// Access to other clusters.
	{appliers, `kubernetes cluster unreachable|cluster reachability check|KubeConfig |kubeconfig|(cluster|user) '' (is nil|references)|could not get in-cluster|failed to load KubeConfig|exactly one of \.spec\.kubeConfig|invalid \.spec\.kubeConfig|failed to get access token for cluster|failed to (parse cluster address|parse Kubernetes API)|(the )?Kubernetes API server address|failed to (describe|decode) (EKS|AKS|GKE)|failed to get (EKS|AKS|GKE)|invalid (EKS|AKS|GKE) cluster|(AKS|no kubeconfig found for AKS) cluster|cluster address is required|failed to (create client|create google http transport) for describing`, ".spec.kubeConfig"},

	// Cloud identities.
	{nil, `Workload Identity|missing environment variables for workload identity|azure (client|tenant) ID|invalid \S+ annotation|failed to get (provider|service account)|failed to create (provider access token|kubernetes token)|the specified default service account|failed to get (subject|expiration time) from service account|failed to parse service account token|failed to read service account token|invalid subject format`, "the annotations of the ServiceAccount, .spec.serviceAccountName and .spec.provider"},
	{nil, `AWS|an AWS region|invalid STS endpoint|failed to (presign|sign request|cast token|parse authorization token|build CodeCommit|parse CodeCommit|create (Git|artifact registry) credentials|get access token for)|(no )?authorization (data|token)|invalid authorization token|credentials are nil|environment variable \S+ is not set|containerRegistryDNSSuffix|resourceManagerEndpoint|failed to get container registry suffix|provider '' (not implemented|does not|is not)|a Git repository URL is required|Git URL must|invalid AWS|failed to parse (artifact repository|specified cluster)|empty address|client is required`, ".spec.provider"},
	{nil, `app (ID|installation)|private key must|only one of app installation|failed to find (organization|user) installation|failed to get app information|could not parse private key|invalid API URL|secretRef( '')? (has|with) github app data`, "the GitHub App data in the Secret of .spec.secretRef, and .spec.provider"},

	// Signatures.
	{[]string{"GitRepository", "OCIRepository", "HelmChart", "HelmRelease"}, `unable to (verify|inspect RSA|parse authorized key|read armored|unarmor)|no matching (key|signatures)|payload is empty|signature (is empty|format|verification)|(PGP|SSH) signature|cannot verify|verification (secret|check)|no (public keys|certificates|verifiers|transparency)|unsupported (signature|verification)|'' not found in secret|trust policy|warning: trust policy|failed to (read trusted root|verify \S)|unable to (create Rekor|extract Rekor|get CTLog|get Fulcio|get Rekor|initialize trusted|parse trusted)|nil openpgp|url \S+ does not contain tag`, ".spec.verify"},
	{[]string{"ImageUpdateAutomation"}, `(can not use passphrase|could not (decrypt private key|find signing key|parse SSH signing)|multiple entities|signing key secret|unknown signing key|RSA key size|SSH signing key|unsupported SSH signing|unable to inspect RSA|nil openpgp)`, ".spec.git.commit.signingKey"},

	// Credentials.
	{[]string{"Bucket"}, `STS |spec\.sts\.|failed to (get STS|parse STS)|invalid '' secret data for '' STS`, ".spec.sts"},
	{[]string{"Receiver"}, `secretRef |unable to read token from secret`, ".spec.secretRef"},
	{nil, `invalid '' (auth option|secret data)|invalid auth data|basic auth|bearer token|secret ''|auth secret '' not found|key not found in secret|no auth config for|unable to (get authentication|load Docker|resolve credentials)|malformed basic auth|failed to (detect authentication|configure OCI registry auth|construct auth|parse client certificates|create (shared|token|environment) cred|create Google credentials)|unable to construct auth|unable to parse SAS|SSH identity key|knownhosts|hashed known host|(cannot decode|invalid format for) hashed|unsupported hash type|failed to parse (CA|TLS) cert|failed to append certificates|unable to load cert|cannot retrieve system cert|failed to (get|construct) (TLS config|Helm client's TLS)|failed to get auth`, "the Secret of .spec.secretRef or .spec.certSecretRef"},
	{nil, `proxy (URL|address)|failed to (get proxy|parse proxy)`, ".spec.proxySecretRef"},
	{nil, `failed to get (image pull secret for )?serviceaccount|serviceaccount '' not found`, ".spec.serviceAccountName"},

	// Sources.
	{[]string{"GitRepository"}, `cannot parse url|unknown transport|no transport type|URL cannot contain|failed to parse url|unable to clone`, ".spec.url"},
	{[]string{"GitRepository"}, `ref \S* is invalid|(semver|regex) .*parse error|unable to (checkout|find reference|list tags|resolve)|could(n't find| not (checkout|fetch|create reference)) `, ".spec.ref"},
	{[]string{"GitRepository"}, `no artifact available for include|could not get resource for include|path calculation for include|failed to copy '' include`, ".spec.include"},
	{[]string{"GitRepository"}, `(unable to )?sparse checkout`, ".spec.sparseCheckout"},
	{[]string{"GitRepository", "Bucket", "OCIRepository"}, `failed to load (source )?ignore patterns`, ".spec.ignore or .sourceignore"},
	{[]string{"OCIRepository"}, `URL |invalid (URL|OCI registry URL)|failed to parse url`, ".spec.url"},
	{[]string{"OCIRepository"}, `(semver|regex) '' parse error|listing tags|parsing (digest|manifest)|fetching (digest|manifest)`, ".spec.ref"},
	{[]string{"OCIRepository"}, `failed to (find layer|determine the media|extract (the first )?layer|copy layer|parse artifact|get layer|list layers)|no layers found|unsupported layer|index '' out of|extracting layer|error copying layer`, ".spec.layerSelector"},
	{[]string{"Bucket"}, `(the specified bucket|listing objects from bucket|indexed object)`, ".spec.bucketName"},
	{[]string{"Bucket"}, `(failed to extract account|unable to parse endpoint)`, ".spec.endpoint"},
	{[]string{"HelmRepository"}, `'' URL scheme cannot|URL |invalid Helm repository URL|scheme ''|could not find protocol handler|invalid (OCI|chart) |unable to parse (registry URL|URL|getter)|failed to parse \S+ as URL|unexpected serverURL|no cache path`, ".spec.url and .spec.type"},
	{[]string{"HelmRepository"}, `(failed to (cache|load|close cached|remove cached|create temp file to cache) ?index|(\S+ )?exceeds the maximum index|index (exceeds|not loaded)|empty index|no chart index|unable to get JSON index|looks like "")|\S+ exceeds the maximum|entries not initialized|no API version specified|skipping loading invalid entry|validate failed for|failed to load '' `, "index.yaml of the repository"},

	// Charts.
	{[]string{"HelmChart"}, `(failed to (get chart repository for|add dependency|get a valid)|no (chart )?repository for URL|can't get a valid version for (\d+ subchart|dependency)|dependency (''|\S+) (at version|has an invalid)|invalid (version \S+ for dependency|dependency repository)|aliased repository|no cached repository|found in Chart\.yaml, but missing)`, "the dependencies in Chart.yaml"},
	{[]string{"HelmChart"}, `(no '' found|chart download|can't get a valid version for constraint|invalid (chart name|version/constraint)|chart "" |chart '' has no|could not (get|fetch) tags|failed to (get chart version|download chart)|no chart version|no chart found|'' is not a local|no name set|failed to parse alleged|expected (local|remote)|(local chart|no path set)|\S+ chart not found|no matching version|strict mode|chart reference)`, ".spec.chart and .spec.version"},
	{[]string{"HelmChart"}, `(could not read values|failed to (locate values|merge chart values)|no values file|unmarshaling values|cannot load values)`, ".spec.valuesFiles"},
	{[]string{"HelmChart", "HelmRelease"}, `((cannot|failed to) load |chart (contains|illegally|file|yaml|name|validation|metadata)|Chart\.yaml|error (reading|unpacking) |file '' |no files in chart|unable to (load chart|detect chart)|unsupported chart|only the Chart API|decompressed chart|size of |double-star|invalid chart apiVersion|cannot unmarshal yaml|failed to (parse version from|validate metadata|load chart|process chart|package chart)|absolute path traverses|'' is a directory|chart dependencies processing|chart must be|error evaluating symlink|manifest does not|required layer|could not load config|expected (artifact|config media)|wrong format)`, "the files of the chart"},

	// Releases.
	{[]string{"HelmRelease"}, `(applying|failed to (apply|create|get|parse|update|wait for)) CustomResourceDefinition|CustomResourceDefinition |invalid CRD upgrade|failed to install CRD|failed to parse CRD`, "the CRDs of the chart, .spec.install.crds and .spec.upgrade.crds"},
	{[]string{"HelmRelease"}, `failed to merge value|failed to read values|unsupported values reference|resource not found|key ("" |map "" )|list must terminate|not a list|negative \d|index of|parse error|unable to parse key|unexpected data at end|value name nested|error (parsing|processing) index`, ".spec.valuesFrom"},
	{[]string{"HelmRelease"}, `unable to validate schema|HTTP request (failed|to)|URN not resolved|type mismatch on|"" is not a table`, ".spec.values and values.schema.json of the chart"},
	{[]string{"HelmRelease"}, `(invalid )?[rR]elease name|cannot reuse a name|no name provided`, ".spec.releaseName"},
	{[]string{"HelmRelease"}, `(no|unsupported) Helm storage driver|could not get client set for '' storage|no namespace provided|corrupted release record|release disappeared`, ".spec.storageNamespace"},
	{[]string{"HelmRelease"}, `invalid (annotation|label) selector|invalid (group|kind|name|namespace|version) regex|failed to create ignore rule|(unable to compare|failed to (un)?marshal) `, ".spec.driftDetection.ignore"},
	{[]string{"HelmRelease"}, `(failed to invoke post-renderer|post-renderer ""|error while (running|parsing) post render|unknown post-render)|error (parsing YAML|merging)|writing merged docs|annotating |clearing filename`, ".spec.postRenderers"},
	{[]string{"HelmRelease"}, `unable to build kubernetes object|metadata\.name and|no objects visited|unable to parse metadata|rendering template|cannot (parse|clone) template|error during tpl|unable to get apiresource|failed to (parse manifest|read objects|determine if)`, "the templates of the chart, and .spec.values"},
	{[]string{"HelmRelease"}, `unknown remediation|missing target release|cannot verify previous|Failed to perform remediation|exceeded maximum`, ".spec.install.remediation and .spec.upgrade.remediation"},
	{[]string{"HelmRelease"}, `(\S+|"") has no deployed releases|release: (already exists|not found)|no (release found|revision for release|latest release|deployed)|release has no \d+ version|release not (observed|updated)|release mismatch|(tested|uninstalled) release|previous release name|the release named|release digest|unknown release status|release with status`, "the revisions of the release (helm history)"},
	{[]string{"HelmRelease"}, `(job|pod) \S+ failed|job is failed|invalid service ''|expected \S+ to be a \*`, "the Jobs, pods and Services of the chart"},
	{[]string{"HelmRelease"}, `failed to confirm ServiceAccount`, ".spec.serviceAccountName"},
	{[]string{"HelmRelease"}, `(failed to (download chart|copy and verify|verify artifact|parse digest)|: computed digest|integrity failure|file not found)`, "the artifact of the chart: flux get sources chart"},
	{appliers, `CEL expression|failed to (create|evaluate|parse) (the )?(CEL|expression)|failed to create custom status|failed to evaluate CEL|duplicate custom health check|expression Current|the GroupKind `, ".spec.healthCheckExprs"},

	// Kustomizations.
	{[]string{"Kustomization"}, `(no )?Vault |(Vault (ConfigMap )?'' )|failed to (authenticate with|create Vault|derive Vault|get Vault|issue Kubernetes token)|error writing sops|failed to (parse '' in Vault|verify sops)|(failed to emit|cannot (decrypt|create decryptor)|must provide a key|failed to unmarshal (AWS|Azure|decrypted|token)|failed to decode (Azure|token)|invalid data|unexpected token|not a JWT|failed to load encrypted)`, ".spec.decryption"},
	{[]string{"Kustomization"}, `'' var name is invalid|bad substitution|missing closing brace|unable to parse (default|substitution|variable)|syntax error in pattern|unable to get subsituteFrom|variable not set`, ".spec.postBuild"},
	{[]string{"Kustomization"}, `component path|unable to get components`, ".spec.components"},
	{[]string{"Kustomization"}, `unable to (get patches|convert patch)`, ".spec.patches"},
	{[]string{"Kustomization"}, `unable to get (images|buildMetadata)`, ".spec.images and .spec.buildMetadata"},
	{[]string{"Kustomization"}, `(found multiple kustomization|failed to (read|unmarshal) kustomization|recovered from (kustomize|panic)|YAMLToJSON|UnmarshalJSON|failed to save original|no kustomization file|(path|root) '' (is not|must|cannot)|abs path error|evalsymlink|expected \S+ to be a regular|failed to (lstat|secure join)|error evaluating symlink)`, "the files in .spec.path"},
	{[]string{"Kustomization"}, `\S+ label selector failed|unable to prune|delete failed|pruning for deleted|skiping pruning`, ".spec.prune and .spec.deletionPolicy"},
	{appliers, `\S+ (normalization error|query failed|metadata\.managedFields|termination timeout|immutable field detected|failed to migrate)|can't determine status|(failed to|unable to) (migrate|merge|convert) managed`, "the object that the message starts with"},

	// Images.
	{[]string{"ImageRepository"}, `image '' should not|failed parsing reference`, ".spec.image"},
	{[]string{"ImageRepository"}, `failed to compile regex`, ".spec.exclusionList"},
	{[]string{"ImagePolicy"}, `(invalid regular expression|failed to (filter tags|compile regex))`, ".spec.filterTags"},
	{[]string{"ImagePolicy"}, `(failed to parse invalid numeric|given ImagePolicyChoice|invalid order|invalid policy|semver)`, ".spec.policy"},
	{[]string{"ImagePolicy"}, `failed fetching (descriptor|digest)|failed parsing reference`, ".spec.digestReflectionPolicy"},
	{[]string{"ImageUpdateAutomation"}, `(commit message|template uses|failed to run template|unable to create commit message)`, ".spec.git.commit.messageTemplate"},
	{[]string{"ImageUpdateAutomation"}, `push |and refspecs|empty push|could not (create reference|fetch|checkout)|failed to update source`, ".spec.git.push"},
	{[]string{"ImageUpdateAutomation"}, `source kind '' necessitates`, ".spec.git"},
	{[]string{"ImageUpdateAutomation"}, `failed to parse policy selector|failed to list policies`, ".spec.policySelector"},
	{[]string{"ImageUpdateAutomation"}, `(no update strategy|unsupported update strategy|must supply path|path field cannot|encountered invalid image|reading YAML|relativising|failed to (secure join manifest|apply policies))`, ".spec.update"},

	// Notifications.
	{[]string{"Receiver"}, `(generic-oidc|oidcProviders|oidcProvider|invalid expression for (validation|variable))`, ".spec.oidcProviders"},
	{[]string{"Receiver"}, `invalid resourceFilter`, ".spec.resourceFilter"},
	{[]string{"Receiver"}, `invalid filter expression for resources`, ".spec.resources[].filter"},
}

var fieldExpressions = sync.OnceValue(func() []*regexp.Regexp {
	var all []*regexp.Regexp
	for _, f := range fields {
		all = append(all, regexp.MustCompile(`^(?:`+f.pattern+`)`))
	}
	return all
})

// field returns the subject of a message without a rule, or "". The innermost error counts.
func (s Subject) field(message string) string {
	parts := failure.Parts(message)
	for _, part := range slices.Backward(parts) {
		for i, e := range fieldExpressions() {
			if f := fields[i]; (f.kinds == nil || slices.Contains(f.kinds, s.Kind.Kind)) && e.MatchString(part) {
				return f.name
			}
		}
	}
	return ""
}
