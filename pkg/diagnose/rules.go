package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// rule recognises a cause in what a controller says.
type rule struct {
	// kinds and reasons are those that it holds for, nil for all.
	kinds, reasons []string
	// words are searched for in the message, in lower case; one suffices.
	words []string
	code  string
	// says what is wrong, remedies the ways out.
	says     func(subject) string
	remedies func(subject) []string
}

func fixed(text string) func(subject) string { return func(subject) string { return text } }

var (
	sources  = []string{"GitRepository", "OCIRepository", "Bucket", "HelmRepository", "HelmChart", "ImageRepository"}
	git      = []string{"GitRepository", "ImageUpdateAutomation"}
	appliers = []string{"Kustomization", "HelmRelease"}
)

// rules are tried in order; the first one that fits speaks. The words are those
// of the controllers, of go-git, Helm, kustomize, SOPS and the API server.
var rules = []rule{
	{
		kinds: append([]string{"Receiver", "ImageRepository"}, sources...), words: []string{`secrets "`, "secret not found", "failed to get secret"}, code: "secret-missing",
		says: func(s subject) string {
			return fmt.Sprintf("the Secret that it needs is missing or lacks a key: %s", oneLine(s.ready.Message))
		},
		remedies: func(s subject) []string {
			return []string{"make the Secret, see flux create secret --help", s.again()}
		},
	},
	{
		kinds: git, words: []string{"knownhosts", "known_hosts", "host key", "hostkey"}, code: "source-host-key",
		says: fixed("the Git server shows another host key than the one that is known"),
		remedies: func(s subject) []string {
			return []string{"if the server's key was changed on purpose, put the new one into known_hosts of " + s.secret(), s.again()}
		},
	},
	{
		kinds: []string{"ImageUpdateAutomation"}, words: []string{"push", "read only", "read-only", "protected", "pre-receive"}, code: "image-push",
		says: fixed("the Git server does not take what it pushes"),
		remedies: func(s subject) []string {
			return []string{"let the key or token of its GitRepository write to the branch, or push to another one with spec.git.push.branch", s.again()}
		},
	},
	{
		kinds: sources, reasons: []string{"VerificationFailed"}, words: []string{""}, code: "source-verification",
		says:     fixed("the signature of what was fetched cannot be verified"),
		remedies: func(s subject) []string { return []string{"sign it, or mend the keys in spec.verify", s.again()} },
	},
	{
		kinds: append([]string{"ImageUpdateAutomation"}, sources...),
		words: []string{"authentication required", "unable to authenticate", "authorization failed", "invalid credentials", "unauthorized", "401", "403 forbidden", "status code 403",
			"access denied", "accessdenied", "permission denied", "signaturedoesnotmatch", "invalidaccesskeyid", "denied:", "invalid auth"},
		code: "source-authentication",
		says: func(s subject) string {
			if secret := s.secret(); secret != "" {
				return "the server refuses the credentials in " + secret
			}
			return "the server wants credentials, and spec.secretRef names none"
		},
		remedies: func(s subject) []string {
			if secret := s.secret(); secret != "" {
				return []string{"put a token or key that may read " + s.address() + " into " + secret, s.again()}
			}
			return []string{"make a Secret with flux create secret, and name it in spec.secretRef", s.again()}
		},
	},
	{
		kinds: []string{"HelmChart"}, words: []string{"with version matching", "no chart name found", "no chart version found", "improper constraint", "invalid chart reference"}, code: "chart-version",
		says:     func(s subject) string { return "the repository has no such chart: " + oneLine(s.ready.Message) },
		remedies: func(s subject) []string { return []string{"correct chart and version in the HelmRelease", s.again()} },
	},
	{
		kinds: git, words: []string{"couldn't find remote ref", "reference not found", "unknown revision", "no match found for semver", "not our ref", "unable to find", "object not found"}, code: "source-reference",
		says: func(s subject) string { return "the repository has no such branch, tag or commit: " + s.reference() },
		remedies: func(s subject) []string {
			return []string{"push it, or correct spec.ref", s.again()}
		},
	},
	{
		kinds: []string{"GitRepository"}, words: []string{"repository not found", "not found", "does not exist", "404"}, code: "source-not-found",
		says: func(s subject) string {
			return "there is no repository at " + s.address() + ", or it is not to be seen with these credentials"
		},
		remedies: func(s subject) []string {
			return []string{"correct spec.url, or give " + s.orSecret() + " access", s.again()}
		},
	},
	{
		kinds: []string{"OCIRepository", "ImageRepository"}, words: []string{"manifest_unknown", "manifest unknown", "name_unknown", "name unknown", "not found", "no match found for semver", "404"}, code: "source-reference",
		says: func(s subject) string {
			return "the registry has no such artifact: " + s.address() + " " + s.reference()
		},
		remedies: func(s subject) []string { return []string{"push it, or correct spec.url and spec.ref", s.again()} },
	},
	{
		kinds: []string{"Bucket"}, words: []string{"not found", "does not exist", "nosuchbucket"}, code: "source-not-found",
		says: func(s subject) string {
			return fmt.Sprintf("there is no bucket %q at %s", s.text("spec.bucketName"), s.text("spec.endpoint"))
		},
		remedies: func(s subject) []string {
			return []string{"make it, or correct spec.bucketName and spec.endpoint", s.again()}
		},
	},
	{
		kinds: sources, words: []string{"x509", "certificate", "tls:", "server gave http response to https client"}, code: "source-tls",
		says: func(s subject) string { return "the certificate of " + s.address() + " is not trusted" },
		remedies: func(s subject) []string {
			return []string{"put the authority's certificate as ca.crt into " + s.orSecret(), s.again()}
		},
	},
	{
		kinds: sources, words: []string{"no space left", "storage"}, code: "controller-storage", reasons: []string{"StorageOperationFailed", "ArchiveOperationFailed", "DirectoryCreationFailed"},
		says: fixed("source-controller cannot store what it fetched"),
		remedies: func(s subject) []string {
			return []string{"give its volume more room, or delete sources that nobody needs", s.again()}
		},
	},
	{
		kinds: append([]string{"ImageUpdateAutomation"}, sources...), words: []string{"no such host", "connection refused", "i/o timeout", "dial tcp", "deadline exceeded", "unreachable", "eof", "connection reset", "503", "502"}, code: "source-unreachable",
		says: func(s subject) string { return "the cluster cannot reach " + s.address() },
		remedies: func(s subject) []string {
			return []string{"check the address, and the network from the cluster: DNS, proxies, network policies", s.again()}
		},
	},
	{
		kinds: []string{"HelmRepository"}, words: []string{"404", "not found", "invalid", "unmarshal", "no api version"}, code: "source-not-found",
		says: func(s subject) string { return "there is no index of charts at " + s.address() },
		remedies: func(s subject) []string {
			return []string{"correct spec.url: index.yaml has to lie below it", s.again()}
		},
	},
	{
		kinds: appliers, words: []string{"no matches for kind"}, code: "api-missing",
		says: func(s subject) string { return "the cluster does not serve " + servedNot(s.ready.Message) },
		remedies: func(s subject) []string {
			return []string{
				"if its definition is to come from another object, name that in spec.dependsOn",
				"if the version is no longer served, move the manifests on: flux migrate -f FOLDER does it for Flux's own kinds", s.again(),
			}
		},
	},
	{
		kinds: appliers, words: []string{"exceeded quota"}, code: "quota",
		says:     func(s subject) string { return "a quota is used up: " + after(s.ready.Message, "exceeded quota") },
		remedies: func(s subject) []string { return []string{"raise the ResourceQuota, or ask for less", s.again()} },
	},
	{
		kinds: appliers, words: []string{"violates podsecurity", "denied the request", "admission webhook", "validatingadmissionpolicy"}, code: "admission",
		says:     func(s subject) string { return "an admission rule refuses it: " + oneLine(s.ready.Message) },
		remedies: func(s subject) []string { return []string{"change the manifest, or the rule", s.again()} },
	},
	{
		kinds: appliers, words: []string{"failed calling webhook", "failed to call webhook", "no endpoints available for service"}, code: "webhook-down",
		says:     func(s subject) string { return "an admission webhook does not answer: " + oneLine(s.ready.Message) },
		remedies: func(s subject) []string { return []string{"bring its pods up, or remove its configuration", s.again()} },
	},
	{
		kinds: appliers, words: []string{"is forbidden", "cannot create resource", "cannot patch resource", "cannot get resource"}, code: "permission",
		says: func(s subject) string {
			if account := s.text("spec.serviceAccountName"); account != "" {
				return fmt.Sprintf("ServiceAccount %s/%s may not do it: %s", s.namespace(), account, oneLine(s.ready.Message))
			}
			return "the controller may not do it: " + oneLine(s.ready.Message)
		},
		remedies: func(s subject) []string {
			return []string{"give the account that right with a RoleBinding, or take the object out", s.again()}
		},
	},
	{
		kinds: appliers, words: []string{"field is immutable", "may not be changed", "updates to statefulset spec", "immutable"}, code: "immutable",
		says: func(s subject) string {
			return "it changes what cannot be changed in place: " + oneLine(s.ready.Message)
		},
		remedies: func(s subject) []string {
			if s.kind.Kind == "HelmRelease" {
				return []string{"delete the object, or let it be made anew with spec.upgrade.force", s.again()}
			}
			return []string{"let it be made anew by the annotation kustomize.toolkit.fluxcd.io/force: enabled on the object", s.again()}
		},
	},
	{
		kinds: appliers, words: []string{"conflict with", "apply failed with", "conflicts with"}, code: "conflict",
		says: func(s subject) string { return "another field manager owns a field: " + oneLine(s.ready.Message) },
		remedies: func(s subject) []string {
			return []string{"let one of the two go, or merge by the annotation kustomize.toolkit.fluxcd.io/ssa: Merge", s.again()}
		},
	},
	{
		kinds: []string{"Kustomization"}, words: []string{"sops", "decrypt", "age: ", "no identity matched", "data key"}, code: "decryption",
		says: func(s subject) string {
			if secret := s.text("spec.decryption.secretRef.name"); secret != "" {
				return fmt.Sprintf("the keys in Secret %s/%s do not open an encrypted file", s.namespace(), secret)
			}
			return "an encrypted file cannot be opened: spec.decryption names no keys"
		},
		remedies: func(s subject) []string {
			return []string{"encrypt the file for the cluster's key, or put the right key into the Secret", s.again()}
		},
	},
	{
		kinds: []string{"Kustomization"}, words: []string{"post build failed", "postbuild", "variable substitution", "envsubst", "var substitution", "substitute from", "variable not set"}, code: "substitution",
		says: func(s subject) string { return "a variable cannot be filled in: " + oneLine(s.ready.Message) },
		remedies: func(s subject) []string {
			return []string{"define it in spec.postBuild, or make the ConfigMap or Secret that substituteFrom names", s.again()}
		},
	},
	{
		kinds: []string{"Kustomization"}, words: []string{"path not found"}, code: "build-path",
		says: func(s subject) string {
			return fmt.Sprintf("the source has no such file or folder: %s", oneLine(s.ready.Message))
		},
		remedies: func(s subject) []string {
			return []string{fmt.Sprintf("push it, or correct spec.path, which is %q", s.text("spec.path")), s.again()}
		},
	},
	{
		kinds: appliers, words: []string{`namespaces "`}, code: "namespace-missing",
		says: func(s subject) string { return "a namespace is missing: " + oneLine(s.ready.Message) },
		remedies: func(s subject) []string {
			return []string{"add it to the manifests, or name what brings it in spec.dependsOn", s.again()}
		},
	},
	{
		kinds: []string{"Kustomization"}, reasons: []string{"BuildFailed"}, words: []string{""}, code: "build",
		says: func(s subject) string { return "the manifests do not build: " + oneLine(s.ready.Message) },
		remedies: func(s subject) []string {
			return []string{"see it here: flux build kustomization " + s.name() + " -n " + s.namespace() + " --path " + cmp.Or(s.text("spec.path"), "."), s.again()}
		},
	},
	{
		kinds: []string{"HelmRelease"}, words: []string{"could not resolve", "values reference", "valuesfrom", "values key", "could not find"}, code: "values-missing",
		says: func(s subject) string { return "values are missing: " + oneLine(s.ready.Message) },
		remedies: func(s subject) []string {
			return []string{"make the ConfigMap or Secret that spec.valuesFrom names, or mark it optional", s.again()}
		},
	},
	{
		kinds: []string{"HelmRelease"}, words: []string{"execution error at", "template: ", "parse error at", "values don't meet the specifications", "error converting yaml"}, code: "template",
		says: func(s subject) string {
			return "the chart does not render with these values: " + oneLine(s.ready.Message)
		},
		remedies: func(s subject) []string {
			return []string{"correct spec.values", s.command("reconcile", "--with-source", "--reset")}
		},
	},
	{
		kinds: []string{"HelmRelease"}, words: []string{"another operation", "pending-install", "pending-upgrade", "pending-rollback"}, code: "release-locked",
		says:     fixed("an operation on the release was interrupted and holds it"),
		remedies: func(s subject) []string { return []string{s.command("reconcile", "--force")} },
	},
	{
		kinds: appliers, words: []string{"dry-run failed", "is invalid", "unknown field", "validation error", "strict decoding error"}, code: "invalid",
		says:     func(s subject) string { return "the API server refuses a manifest: " + oneLine(s.ready.Message) },
		remedies: func(s subject) []string { return []string{"correct it", s.again()} },
	},
	{
		kinds: []string{"ImagePolicy"}, words: []string{"no ", "cannot", "unable", "not found"}, code: "image-none",
		says: func(s subject) string { return "no tag of the image fits: " + oneLine(s.ready.Message) },
		remedies: func(s subject) []string {
			return []string{"correct spec.policy and spec.filterTags, or push a tag that fits", "flux get image repository -n " + s.namespace()}
		},
	},
}

// recognise finds the rule for what a controller says of an object.
func recognise(s subject) (Finding, bool) {
	message := strings.ToLower(s.ready.Message)
	for _, r := range rules {
		if r.kinds != nil && !slices.Contains(r.kinds, s.kind.Kind) || r.reasons != nil && !slices.Contains(r.reasons, s.ready.Reason) {
			continue
		}
		if slices.ContainsFunc(r.words, func(word string) bool { return strings.Contains(message, word) }) {
			return Finding{Object: targetOf(s.kind, s.object), Code: r.code, Message: r.says(s), Remedies: r.remedies(s)}, true
		}
	}
	return Finding{}, false
}

// servedNot is what an API server does not know, out of its message.
func servedNot(message string) string {
	_, rest, ok := strings.Cut(message, "no matches for kind ")
	if !ok {
		return oneLine(message)
	}
	kind, rest, _ := strings.Cut(strings.TrimPrefix(rest, `"`), `"`)
	_, version, ok := strings.Cut(rest, `in version "`)
	version, _, _ = strings.Cut(version, `"`)
	if !ok || version == "" {
		return kind
	}
	return kind + " in version " + version
}

// after is the rest of a message from a word on.
func after(message, word string) string {
	if i := strings.Index(strings.ToLower(message), word); i >= 0 {
		return oneLine(message[i:])
	}
	return oneLine(message)
}
