package failure

import (
	"net/http"
	"strconv"
	"strings"
)

// end matches the end of a line or of the message.
const end = `\s*(?:\n|$)`

// networkErrors lists the errors of Go's net, crypto and net/http packages.
var networkErrors = []prototype{
	{Type: Expired, pattern: `(?:tls: failed to verify certificate: )?(?P<detail>x509: certificate has expired or is not yet valid: [^\n]*)`},
	{Type: Untrusted, pattern: `tls: failed to verify certificate: (?P<detail>x509: [^\n]*)`},
	{Type: Untrusted, pattern: `(?P<detail>x509: [^\n]*)`},
	{Type: PlainHTTP, pattern: `(?P<detail>http: server gave HTTP response to HTTPS client)`},
	{Type: PlainHTTP, pattern: `(?P<detail>tls: first record does not look like a TLS handshake)`},
	{Type: Untrusted, pattern: `(?P<detail>remote error: tls: [^\n]*)`},
	{Type: Unreachable, pattern: `dial (?:tcp|udp)[46]?(?: (?P<address>[^\s:]+(?::\d+)?|\[[0-9a-f:]+\]:\d+))?: (?P<detail>[^\n]*)`},
	{Type: Unreachable, pattern: `(?P<detail>lookup (?P<address>\S+?)(?: on \S+?)?: (?:no such host|server misbehaving|i/o timeout)[^\n]*)`},
	{Type: Unreachable, pattern: `(?:read|write) (?:tcp|udp)[46]? \S+: (?P<detail>[^\n]*)`},
	{Type: Unreachable, pattern: `(?P<detail>connect: (?:connection refused|no route to host|network is unreachable|connection timed out))`},
	{Type: Unreachable, pattern: `(?P<detail>net/http: TLS handshake timeout)`},
	{Type: Unreachable, pattern: `(?P<detail>(?:unexpected )?EOF|http: server closed idle connection|connection reset by peer|i/o timeout)` + end},
	{Type: TimedOut, pattern: `(?P<detail>context deadline exceeded(?: \(Client\.Timeout[^)\n]*\))?|net/http: request canceled[^\n]*)` + end},
}

// serverErrors lists the errors of HTTP servers, registries and object stores, as printed by Go's HTTP clients,
// go-containerregistry, ORAS, containerd, CRI-O, Helm, minio and go-git.
var serverErrors = []prototype{
	{Type: Status, pattern: `unexpected requesting "[^"\n]*" status code: (?P<code>\d{3})` + end},
	{Type: Status, pattern: `unexpected status code (?P<code>\d{3})(?: (?P<detail>[^\n]*))?`},
	{Type: Status, pattern: `response status code (?P<code>\d{3})(?::? (?P<detail>[^\n]*))?`},
	{Type: Status, pattern: `unexpected status from (?:GET|HEAD|POST) request to \S+: (?P<code>\d{3})(?: (?P<detail>[^\n]*))?`},
	{Type: Status, pattern: `unexpected status(?: code)?: (?P<code>\d{3})(?: (?P<detail>[^\n]*))?`},
	{Type: Status, pattern: `failed to fetch \S+ : (?P<code>\d{3})(?: (?P<detail>[^\n]*))?`},
	{Type: Status, pattern: `HTTP request to \S+ returned status (?P<code>\d{3})(?: \((?P<detail>[^\n]*)\))?`},
	{Type: Status, pattern: `request failed with status code (?P<code>\d{3})(?:: (?P<detail>[^\n]*))?`},
	{Type: Status, pattern: `RESPONSE (?P<code>\d{3})(?:: (?P<detail>[^\n]*))?`},
	{Type: Status, pattern: `(?:GET|POST) https?://\S+: (?P<code>\d{3})(?: (?P<detail>[^\n]*))?`},
	{Type: Status, pattern: `external service '[^'\n]*' returned HTTP (?P<code>\d{3})`},
	{Type: Status, pattern: `googleapi: Error (?P<code>\d{3}): (?P<detail>[^\n]*)`},
	{Type: Unauthenticated, pattern: `(?P<code>UNAUTHORIZED|DENIED): (?P<detail>[^\n]*)`},
	{Type: Provider, pattern: `invalid (?:AWS|Azure|GCP) registry: (?P<detail>'[^'\n]*')`},
	{Type: NoRevision, pattern: `(?P<code>MANIFEST_UNKNOWN|MANIFEST_BLOB_UNKNOWN|BLOB_UNKNOWN): (?P<detail>[^\n]*)`},
	{Type: NoRepository, pattern: `(?P<code>NAME_UNKNOWN|NAME_INVALID): (?P<detail>[^\n]*)`},
	{Type: RateLimited, pattern: `(?P<code>TOOMANYREQUESTS|toomanyrequests): (?P<detail>[^\n]*)`},
	{Type: Unauthenticated, pattern: `(?P<detail>Access Denied\.?|The Access Key Id you provided does not exist in our records\.|The request signature we calculated does not match the signature you provided\.[^\n]*)` + end},
	{Type: NoRepository, pattern: `(?P<detail>The specified bucket does not exist\.?|bucket '[^'\n]*' not found)` + end},
	// Container runtimes.
	{Type: Unauthenticated, pattern: `pull access denied, repository does not exist or may require authorization(?:: [^\n]*)?`},
	{Type: Unauthenticated, pattern: `(?P<detail>requested access to the resource is denied|insufficient_scope: authorization failed)` + end},
	{Type: Status, pattern: `unexpected status code \[[^\]\n]*\]: (?P<code>\d{3})(?: (?P<detail>[^\n]*))?`},
	{Type: Unauthenticated, pattern: `(?P<detail>(?:denied|unauthorized)(?:: [^\n]*)?)` + end, steps: []Step{Pull}},
	{Type: NoRevision, pattern: `(?:\S+: )?(?P<detail>not found)` + end, steps: []Step{Pull}},
	{Type: NoRevision, pattern: `(?P<detail>invalid reference format[^\n]*)`, steps: []Step{Pull}},
	{Type: NoRevision, pattern: `(?P<detail>manifest unknown|manifest for \S+ not found: manifest unknown[^\n]*)` + end},
	{Type: NoRepository, pattern: `(?P<detail>name unknown)` + end},
	{Type: NoRepository, pattern: `repository name not known to registry` + end},
	{Type: NoPlatform, pattern: `(?P<detail>no match for platform in manifest[^\n]*|no matching manifest for [^\n]*)`},
}

// status sets the type according to the HTTP status.
func (f *Failure) status() bool {
	code, err := strconv.Atoi(f.Code)
	if err != nil {
		return false
	}
	if code >= http.StatusInternalServerError {
		f.Type, f.Detail = ServerFailed, strings.TrimSpace("HTTP status "+f.Code+" "+http.StatusText(code))
		return true
	}
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		f.Type = Unauthenticated
	case http.StatusNotFound:
		f.Type = NoRevision
		if f.In(Clone, Index, Checkout) {
			f.Type = NoRepository
		}
	case http.StatusTooManyRequests:
		f.Type = RateLimited
	}
	return true
}

// gitErrors lists the errors of go-git, Go's SSH client and Git servers.
var gitErrors = []prototype{
	{Type: HostKey, pattern: `(?:ssh: handshake failed: )?(?P<detail>knownhosts: key (?:mismatch|is unknown|is revoked)|knownhosts: [^\n]*unknown[^\n]*)`},
	{Type: Unauthenticated, pattern: `ssh: handshake failed: (?P<detail>ssh: unable to authenticate, [^\n]*)`},
	{Type: Unauthenticated, pattern: `(?P<detail>ssh: unable to authenticate, [^\n]*)`},
	{Type: Unreachable, pattern: `ssh: handshake failed: (?P<detail>EOF|read tcp [^\n]*)`},
	{Type: Unauthenticated, pattern: `(?P<detail>authentication required)(?::[^\n]*)?` + end},
	{Type: Unauthenticated, pattern: `(?P<detail>authorization failed)(?::[^\n]*)?` + end},
	{Type: Unauthenticated, pattern: `(?P<detail>invalid auth method)` + end},
	{Type: NoRepository, pattern: `(?P<detail>repository not found)(?::[^\n]*)?` + end, steps: []Step{Clone, Checkout, Push}},
	{Type: NoRevision, pattern: `(?P<detail>couldn't find remote ref "[^"\n]*")`},
	{Type: NoRevision, pattern: `(?P<detail>reference not found|object not found)` + end, steps: []Step{Clone, Checkout}},
	{Type: Empty, pattern: `(?P<detail>remote repository is empty|git repository is empty)` + end},
	{Type: NoRevision, pattern: `(?P<detail>unable to resolve commit object for '[^'\n]*': object not found|unable to resolve ref '[^'\n]*' to a specific commit)`},
	{Type: NoRevision, pattern: `(?P<detail>(?:server does not allow request for unadvertised object|upload-pack: not our ref) [0-9a-f]{40})`},
	{Type: NoRevision, pattern: `(?P<detail>no match found for semver: [^\n]*)`},
	{Type: Rejected, pattern: `(?P<detail>command error on \S+: [^\n]*|non-fast-forward update: \S+|unpack error: [^\n]*)`, steps: []Step{Push}},
}

// controllerErrors lists the errors of the controllers and of Helm.
var controllerErrors = []prototype{
	{Type: NoDirectory, pattern: `sparse checkout dir '(?P<key>[^'\n]*)' does not exist in repository`},
	{Type: Expression, pattern: `dependency '(?P<namespace>[a-z0-9-]+)/(?P<name>[a-z0-9.-]+)' is not ready according to readyExpr eval`},
	{Type: KubeVersion, pattern: `chart requires kubeVersion: (?P<detail>.+?) which is incompatible with Kubernetes (?P<version>[^\s]+)`},
	{Type: Template, pattern: `(?P<detail>[^\s:]+/templates/[^\s:]+:\d+:\d+\s+executing (?s:.*))`},
	{Type: Template, pattern: `error merging manifests: parsing (?P<key>[^\s:]+): (?:MalformedYAMLError: )?(?P<detail>[^\n]*)`},
	{Type: NoPath, pattern: `(?:l?stat|open) (?P<key>\S+): no such file or directory`, steps: []Step{Path, Walk}},
	{Type: NoVariable, pattern: `variable not set \(strict mode\): "(?P<key>[^"\n]+)"`},
	{Type: NoVariable, pattern: `template: resourceset:\d+:\d+: executing "resourceset" at <(?P<detail>[^>\n]*)>: map has no entry for key "(?P<key>[^"\n]+)"`, steps: []Step{Fill}},
	{Type: Undecryptable, pattern: `(?P<detail>Error getting data key: [^\n]*|cannot get sops data key[^\n]*)`},
	{Type: Undecryptable, pattern: `(?P<detail>failed to verify sops data integrity: [^\n]*)`},
	{Type: NoValues, pattern: `could not resolve (?P<kind>ConfigMap|Secret) chart values reference '(?P<namespace>[a-z0-9-]+)/(?P<name>[a-z0-9.-]+)'(?: with key '(?P<key>[^'\n]*)')?(?:: (?P<detail>[^\n]*))?`},
	{Type: Template, pattern: `(?P<detail>(?:template|execution error at|parse error at|execution error in|parse error in)(?:: | )\(?[^\s:()]+\.(?:yaml|yml|tpl|txt)[^\n]*)`},
	{Type: Template, pattern: `(?P<detail>YAML parse error on [^\n]*|error converting YAML to JSON: [^\n]*)`},
	{Type: Schema, pattern: `values don't meet the specifications of the schema\(s\) in the following chart\(s\):\s*(?P<detail>(?s:.*))`},
	{Type: Locked, pattern: `another operation \(install/upgrade/rollback\) is in progress`},
	{Type: NoChart, pattern: `(?P<detail>no '[^'\n]*' chart with version matching '[^'\n]*' found|no chart version found for \S+|no chart name found)`},
	{Type: NoChart, pattern: `(?P<detail>could not locate a version matching provided version string [^\n]*|unable to locate any tags in provided repository: \S+)`},
	{Type: NoChart, pattern: `(?P<detail>l?stat \S+?: no such file or directory|no chart found at '[^'\n]*'[^\n]*)`, steps: []Step{Chart}},
	{Type: NoValuesFile, pattern: `no values file found at path '[^'\n]*' \(reference '(?P<key>[^'\n]*)'\)`},
	{Type: Expression, pattern: `failed to evaluate dependency (?P<name>[a-z0-9.-]+): (?P<detail>[^\n]*)`},
	{Type: NoKey, pattern: `invalid ` + keyPart + ` secret data: required fields '?(?P<key>[^'\n]+)'?`},
	{Type: NoMatches, pattern: `no files match pattern '(?P<key>[^'\n]*)' in source '(?P<name>[^'\n]*)'`},
	{Type: NoTag, pattern: `(?P<detail>no tags in database|version list argument cannot be empty|unable to determine latest version from provided list)` + end},
}
