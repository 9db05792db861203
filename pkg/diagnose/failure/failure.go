// Package failure parses typed errors from the messages that controllers write into conditions, events and pod states.
//
// A message is parsed from left to right at the start of each part: after a colon and a space outside quotes. The prefixes that
// controllers add to an error are steps; the first known error ends the search. Names, URLs, tags and quoted text are not
// searched.
package failure

import (
	"slices"
	"strings"
)

// Type is the type of an error.
type Type string

// The errors of the Kubernetes API.
const (
	// Invalid is a validation error of the fields in Fields.
	Invalid Type = "invalid"
	// Undecodable is a manifest that does not match the schema of its kind.
	Undecodable Type = "undecodable"
	// Unauthorized is an action that RBAC forbids: User, Verb, Resource.
	Unauthorized Type = "unauthorized"
	// Quota is an exceeded ResourceQuota, or one that requires a missing field.
	Quota Type = "quota"
	// Terminating is a namespace that is being deleted.
	Terminating Type = "terminating"
	// LimitRange is a request that violates a LimitRange.
	LimitRange Type = "limit-range"
	// PodSecurity is a violation of the Pod Security level of a namespace.
	PodSecurity Type = "pod-security"
	// PriorityClass and ServiceAccount are missing objects that a pod references.
	PriorityClass  Type = "priority-class"
	ServiceAccount Type = "service-account"
	// Admission is a rejection by the webhook or policy in By.
	Admission Type = "admission"
	// Forbidden is any other rejection by an admission plugin.
	Forbidden Type = "forbidden"
	// WebhookDown is a failed call of the admission webhook in By.
	WebhookDown Type = "webhook-down"
	// NoMatch is a kind that the API server does not serve.
	NoMatch Type = "no-match"
	// Conflict is a field that the field manager in By owns.
	Conflict Type = "conflict"
	// NotFound is the missing object in Named.
	NotFound Type = "not-found"
	// Unhealthy means that the objects in Objects did not become ready.
	Unhealthy Type = "unhealthy"
	// Owned is an object that does not belong to the Helm release.
	Owned Type = "owned"
)

// The errors of servers that controllers fetch from.
const (
	// Unreachable is a failed or lost connection.
	Unreachable Type = "unreachable"
	// TimedOut is an exceeded deadline without a cause.
	TimedOut Type = "timed-out"
	// Untrusted is an untrusted certificate, or a failed TLS handshake.
	Untrusted Type = "untrusted"
	// Expired is a certificate that has expired or is not yet valid.
	Expired Type = "expired"
	// PlainHTTP is a server without TLS.
	PlainHTTP Type = "plain-http"
	// Empty is a repository without commits.
	Empty Type = "empty"
	// Provider is an address that does not belong to the cloud provider.
	Provider Type = "provider"
	// HostKey is an unknown or changed SSH host key.
	HostKey Type = "host-key"
	// Unauthenticated is a server that rejects or requires credentials.
	Unauthenticated Type = "unauthenticated"
	// NoRevision is a missing branch, tag, commit or version.
	NoRevision Type = "no-revision"
	// NoRepository is a missing repository, image or bucket.
	NoRepository Type = "no-repository"
	// Rejected is a push that the Git server rejects.
	Rejected Type = "rejected"
	// ServerFailed is an HTTP status of 500 or above.
	ServerFailed Type = "server-failed"
	// Status is another HTTP status.
	Status Type = "status"
	// RateLimited is a server that rate-limits requests.
	RateLimited Type = "rate-limited"
)

// The errors of the controllers and their libraries.
const (
	// Undecryptable is data that the decryption keys do not decrypt. Encrypted
	// is an object with SOPS data that is applied without decryption.
	Undecryptable Type = "undecryptable"
	Encrypted     Type = "encrypted"
	// NoVariable is a variable of post-build substitution that is not set.
	NoVariable Type = "no-variable"
	// NoPath is a missing path in an artifact.
	NoPath Type = "no-path"
	// NoKey is the missing key in Name of the Secret or ConfigMap in Named.
	NoKey Type = "no-key"
	// NoValues is a reference to values that cannot be resolved.
	NoValues Type = "no-values"
	// Template is a chart that does not render.
	Template Type = "template"
	// Schema means that values do not match the schema of a chart.
	Schema Type = "schema"
	// Locked is a Helm release with an operation in progress.
	Locked Type = "locked"
	// NoValuesFile is the missing values file in Name.
	NoValuesFile Type = "no-values-file"
	// NoChart is a missing chart or chart version.
	NoChart Type = "no-chart"
	// NoMatches is a pattern in Name that matches no files.
	NoMatches Type = "no-matches"
	// NoTag is an image without a tag that matches the policy.
	NoTag Type = "no-tag"
	// NoEntry is a missing file or directory that a kustomization.yaml lists as Name; Address is its path.
	NoEntry Type = "no-entry"
	// NoBase is the remote base or file in Address that cannot be loaded.
	NoBase Type = "no-base"
	// Malformed is the file in Address that is not valid YAML.
	Malformed Type = "malformed"
	// NoTarget is a patch or replacement for an object that does not exist.
	NoTarget Type = "no-target"
	// Patch is a JSON patch that does not apply.
	Patch Type = "patch"
	// Outside is the kustomization.yaml entry in Name, which is outside the source.
	Outside Type = "outside"
	// Incomplete is a manifest without apiVersion, kind or name, in the file in Address if that is known.
	Incomplete Type = "incomplete"
	// Recursion is the directory in Address, whose kustomization.yaml includes itself.
	Recursion Type = "recursion"
	// Unsupported is a feature of kustomize that Flux does not enable.
	Unsupported Type = "unsupported"
	// SameID is an object that a build contains twice.
	SameID Type = "same-id"
	// NotDirectory is the path in Address, which is a file.
	NotDirectory Type = "not-directory"
	// NoDirectory is the directory in Name, which does not exist in a sparse checkout.
	NoDirectory Type = "no-directory"
	// Expression is a CEL expression of the spec that is false or invalid.
	Expression Type = "expression"
	// TooLarge is an object above the size limit of the API server.
	TooLarge Type = "too-large"
	// Precondition is a UID or resource version in a manifest.
	Precondition Type = "precondition"
	// Unserved is a kind that the API server no longer serves.
	Unserved Type = "unserved"
	// Unscoped is an object without a namespace.
	Unscoped Type = "unscoped"
	// KubeVersion is a chart that does not support the Kubernetes version in Version.
	KubeVersion Type = "kube-version"
	// NoPlatform is an image without a manifest for the platform of the node.
	NoPlatform Type = "no-platform"
)

// Object is a reference to an object, with the parts that a message contains.
type Object struct{ Kind, Group, Namespace, Name string }

// String returns the known parts of kind, namespace and name.
func (o Object) String() string {
	var parts []string
	for _, part := range []string{o.Kind, o.Namespace, o.Name} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/")
}

// Failure is an error that was parsed from a message.
type Failure struct {
	// Type is "" if the error is unknown; Steps may still be set.
	Type Type
	// Steps lists the failed operations, outermost first.
	Steps []Step
	// Object is the object that was applied, checked or decrypted.
	Object Object
	// Named is the object that the error mentions.
	Named Object
	// Objects lists the objects of an error that concerns several.
	Objects []ObjectStatus
	// Fields lists the invalid fields of an object.
	Fields []Field
	// User, Verb, Resource and Scope describe a forbidden action.
	User, Verb, Resource, Scope string
	// By is the quota, webhook, policy or field manager that causes the error.
	By string
	// Version is the API version of a kind that is not served.
	Version string
	// Name is the name of a missing variable, path or key.
	Name string
	// Address is the host and port, or the URL, of a server.
	Address string
	// Code is an HTTP status or the error code of a registry.
	Code string
	// Text is the part of the message that starts with the error. Detail is the explanation of the error.
	Text, Detail string
}

// Rejected returns the object that was applied or, if the message does not contain it, the one that the error mentions.
func (f Failure) Rejected() Object {
	if f.Object.Kind == "" || f.Object.Name == "" {
		return f.Named
	}
	return f.Object
}

// Group returns the API group of a kind that is not served.
func (f Failure) Group() string {
	if group, _, ok := strings.Cut(f.Version, "/"); ok {
		return group
	}
	return f.Named.Group
}

// ObjectStatus is an object with its status (kstatus) and an explanation.
type ObjectStatus struct {
	Object
	Status, Detail string
}

// In reports whether one of the steps failed.
func (f Failure) In(steps ...Step) bool {
	for _, s := range f.Steps {
		for _, step := range steps {
			if s == step {
				return true
			}
		}
	}
	return false
}

const (
	// longest is the maximum length of a message to parse. deepest is the maximum number of its parts.
	longest = 16 << 10
	deepest = 64
)

// Parse parses a message. steps are operations that are known to have failed. Unknown parts are left empty.
func Parse(message string, steps ...Step) Failure {
	if len(message) > longest {
		message = message[:longest]
	}
	message = strings.TrimSpace(message)
	f := Failure{Text: message, Steps: slices.Clone(steps)}
	at := 0
	for range deepest {
		rest := message[at:]
		if f.typed(rest) {
			return f
		}
		if n := f.step(rest); n > 0 {
			at += n
			continue
		}
		next := boundary(rest)
		if next < 0 {
			break
		}
		at += next
	}
	return f
}
