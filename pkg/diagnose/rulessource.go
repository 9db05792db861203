package diagnose

import (
	"fmt"
	"strings"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// fetchers lists the kinds that fetch from a server, gitKinds the kinds that use Git, and appliers
// the kinds that apply objects.
var (
	fetchers = []string{"GitRepository", "OCIRepository", "Bucket", "HelmRepository", "HelmChart", "ImageRepository", "ImagePolicy", "ImageUpdateAutomation"}
	gitKinds = []string{"GitRepository", "ImageUpdateAutomation"}
	appliers = kindsWith(controllers.Kind.Applies) //nolint:gochecknoglobals // taken from the catalog
)

// kindsWith returns the names of the kinds in the catalog that keep accepts.
func kindsWith(keep func(controllers.Kind) bool) []string {
	var names []string
	for _, k := range controllers.Kinds {
		if keep(k) {
			names = append(names, k.Kind)
		}
	}
	return names
}

// sourceRules holds the rules for fetching: for source-controller, scans of
// image-reflector-controller, and clones of image-automation-controller. The reasons are those in
// the API documentation of the controllers.
var sourceRules = []rule{
	{
		code: "secret-missing", types: []failure.Type{failure.NotFound}, when: missesSecret, upstream: true,
		message: func(s subject) string {
			if field := s.origin().secretField(s.failure.Named.Name); field != "" {
				return fmt.Sprintf("%s, referenced by %s, does not exist", s.origin().named(), field)
			}
			return s.origin().named() + " does not exist"
		},
		remedies: func(s subject) []string {
			name := s.failure.Named.Name
			field := s.origin().secretField(name)
			command := s.origin().createSecret(strings.TrimSuffix(strings.TrimPrefix(field, "."), ".name"), orElse(s.failure.Named.Namespace, s.namespace()), name)
			remedies := []string{"create " + s.origin().named() + ": " + command}
			if field != "" {
				remedies = append(remedies, fmt.Sprintf("or correct %s of %s", field, s))
			}
			return append(remedies, s.again())
		},
	},
	{
		code: "source-verification", kinds: []string{"GitRepository", "OCIRepository", "HelmChart"},
		reasons: []string{"VerificationError", "InvalidVerificationMode", "InvalidGitObject", "InvalidTagSignature", "InvalidCommitSignature", "ChartVerificationError"},
		message: withDetail("the signature cannot be verified"),
		remedies: func(s subject) []string {
			return []string{"sign the artifact or commit, or correct .spec.verify of " + s.String(), s.again()}
		},
	},
	{
		code: "controller-storage", kinds: fetchers,
		reasons: []string{"StorageOperationFailed", "ArchiveOperationFailed", "DirectoryCreationFailed", "StatOperationFailed", "AcquireLockFailed", "CacheOperationFailed", "SymlinkUpdateFailed"},
		message: func(s subject) string { return s.kind.Controller + " cannot store the artifact: " + s.detail() },
		remedies: func(s subject) []string {
			return []string{fmt.Sprintf("free or add space on the volume of %[1]s: kubectl%[2]s describe pods -l app=%[1]s", s.kind.Controller, inNamespace(s.home)), s.again()}
		},
	},
	{
		code: "source-address", kinds: fetchers, reasons: []string{"URLInvalid", "ImageURLInvalid"},
		message: withDetail("the address is invalid"),
		remedies: func(s subject) []string {
			return []string{fmt.Sprintf("correct .%s of %s", s.kind.Fetch.Address, s), s.again()}
		},
	},
	{
		code: "source-host-key", kinds: gitKinds, types: []failure.Type{failure.HostKey}, upstream: true,
		message: fixed("the Git server has another SSH host key than known_hosts"),
		remedies: func(s subject) []string {
			return []string{"if the host key was changed on purpose, put the new one into known_hosts of " + s.origin().orCredentials(), s.again()}
		},
	},
	{
		code: "image-push", kinds: []string{"ImageUpdateAutomation"}, steps: []failure.Step{failure.Push},
		types:   []failure.Type{failure.Rejected, failure.Unauthenticated},
		message: withDetail("push rejected (protected branch or read-only credentials)"),
		remedies: func(s subject) []string {
			return []string{fmt.Sprintf("allow the credentials in %s to push to the branch, or set .spec.git.push.branch of %s to another branch", s.origin().credentialsField(), s), s.again()}
		},
	},
	{
		code: "source-authentication", kinds: fetchers, types: []failure.Type{failure.Unauthenticated}, upstream: true,
		message: func(s subject) string {
			switch secret := s.origin().credentials(); {
			case secret != "":
				return fmt.Sprintf("%s rejects the credentials in %s", s.origin().address(), secret)
			case s.kind.Fetch.Credentials == "":
				return fmt.Sprintf("%s rejects its credentials", s.origin().address())
			default:
				return fmt.Sprintf("%s requires credentials, and .%s is not set", s.origin().address(), s.kind.Fetch.Credentials)
			}
		},
		remedies: func(s subject) []string {
			if secret := s.origin().credentials(); secret != "" {
				return []string{fmt.Sprintf("put credentials that may read %s into %s", s.origin().address(), secret), s.again()}
			}
			switch field := s.origin().credentialsField(); {
			case field == "":
				return []string{"correct the credentials of " + s.origin().server(), s.again()}
			case s.kind.Fetch.Credentials == "":
				return []string{"correct the Secret that " + field + " names", s.again()}
			default:
				return []string{"create a Secret with the credentials: " + s.origin().createSecret(s.kind.Fetch.Credentials, s.namespace(), anyName), "set " + field + " to its name", s.again()}
			}
		},
	},
	{
		code: "chart-version", kinds: []string{"HelmChart"}, types: []failure.Type{failure.NoChart, failure.NoRevision, failure.NoRepository},
		message: func(s subject) string { return "chart not found: " + s.detail() },
		remedies: func(s subject) []string {
			return []string{fmt.Sprintf("correct .spec.chart.spec.chart and .spec.chart.spec.version of the HelmRelease of %s, or publish the chart", s), s.again()}
		},
	},
	{
		code: "source-reference", kinds: []string{"GitRepository", "OCIRepository", "ImageRepository", "ImagePolicy", "ImageUpdateAutomation"},
		types: []failure.Type{failure.NoRevision}, upstream: true,
		message: func(s subject) string {
			if r := s.origin().revision(); r != "" {
				return fmt.Sprintf("%s not found in %s", r, s.origin().address())
			}
			return fmt.Sprintf("not found in %s: %s", s.origin().address(), s.detail())
		},
		remedies: func(s subject) []string {
			return []string{"push it, or correct " + s.origin().revisionFields(), s.again()}
		},
	},
	{
		code: "source-not-found", kinds: []string{"Bucket"}, types: []failure.Type{failure.NoRepository, failure.NoRevision},
		message: func(s subject) string {
			return fmt.Sprintf("bucket %q does not exist at %s", s.text("spec.bucketName"), s.origin().address())
		},
		remedies: func(s subject) []string {
			return []string{"create the bucket, or correct " + s.origin().revisionFields(), s.again()}
		},
	},
	{
		code: "source-not-found", kinds: []string{"HelmRepository"}, types: []failure.Type{failure.NoRepository, ""}, steps: []failure.Step{failure.Index},
		message: func(s subject) string {
			return fmt.Sprintf("no valid index.yaml at %s: %s", s.origin().address(), s.detail())
		},
		remedies: func(s subject) []string {
			return []string{"correct .spec.url of " + s.String() + ": index.yaml must be below it", s.again()}
		},
	},
	{
		code: "source-reference", kinds: []string{"OCIRepository", "ImageRepository", "ImagePolicy"}, types: []failure.Type{failure.NoRepository},
		message: func(s subject) string {
			return fmt.Sprintf("%s does not exist, or the credentials do not give access to it", s.origin().address())
		},
		remedies: func(s subject) []string {
			return []string{"push it, or correct " + s.origin().revisionFields(), s.again()}
		},
	},
	{
		code: "source-not-found", kinds: fetchers, types: []failure.Type{failure.NoRepository}, upstream: true,
		message: func(s subject) string {
			return fmt.Sprintf("%s does not exist, or the credentials do not give access to it", s.origin().address())
		},
		remedies: func(s subject) []string {
			fix := "correct the address of " + s.origin().server()
			if field := s.kind.Fetch.Address; field != "" {
				fix = fmt.Sprintf("correct .%s of %s", field, s)
			}
			return []string{fix + ", or give " + s.origin().orCredentials() + " access", s.again()}
		},
	},
	{
		code: "source-tls", kinds: fetchers, types: []failure.Type{failure.Untrusted}, upstream: true,
		message: func(s subject) string {
			return fmt.Sprintf("no trusted TLS connection to %s: %s", s.origin().address(), s.detail())
		},
		remedies: func(s subject) []string {
			if field := s.kind.Fetch.CA; field != "" {
				return []string{fmt.Sprintf("put the CA certificate as ca.crt into a Secret, and set .%s of %s to its name", field, s), s.again()}
			}
			return []string{"add the CA certificate to " + s.origin().server(), s.again()}
		},
	},
	{
		code: "source-rate-limit", kinds: fetchers, types: []failure.Type{failure.RateLimited},
		message: func(s subject) string { return s.origin().address() + " limits the rate of requests" },
		remedies: func(s subject) []string {
			return []string{"raise .spec.interval of " + s.String() + ", or use credentials with a higher limit", s.again()}
		},
	},
	{
		code: "source-unreachable", kinds: fetchers, types: []failure.Type{failure.Unreachable, failure.TimedOut}, upstream: true,
		message: func(s subject) string { return fmt.Sprintf("cannot reach %s: %s", s.origin().address(), s.detail()) },
		remedies: func(s subject) []string {
			fix := "check the address of " + s.origin().server()
			if field := s.kind.Fetch.Address; field != "" {
				fix = fmt.Sprintf("check .%s of %s", field, s)
			}
			return []string{fix + ", and DNS, proxies and NetworkPolicies between the cluster and it", s.again()}
		},
	},
	{
		code: "source-credentials", kinds: fetchers, reasons: []string{"AuthenticationFailed"},
		message: withDetail("the credentials cannot be used"),
		remedies: func(s subject) []string {
			return []string{"correct the keys of " + s.origin().orCredentials(), s.again()}
		},
	},
}

// missesSecret reports whether a Secret that the object names does not exist.
// Substitution and applied objects have other rules.
func missesSecret(s subject) bool {
	if s.failure.Named.Kind != "Secret" || s.failure.In(failure.Substitute, failure.Apply, failure.Install, failure.Upgrade) {
		return false
	}
	return s.origin().secretField(s.failure.Named.Name) != "" || s.failure.In(failure.Credentials)
}

// orCredentials returns the Secret with the credentials, or the field that
// would refer to it.
func (s origin) orCredentials() string {
	if secret := s.credentials(); secret != "" {
		return secret
	}
	if field := s.credentialsField(); field != "" {
		return "the Secret of " + field
	}
	return "the credentials of " + s.server()
}
