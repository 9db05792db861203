// Package failure rebuilds typed errors from the messages that controllers write
// into conditions, events and pod states.
//
// A message is read from left to right, and only where one of its parts begins:
// after a colon and a space that are not in quotes. The prefixes that the
// controllers put before an error are steps; the first error that is known ends
// the search. Names, URLs, tags and quoted text are never searched for words.
package failure

import (
	"slices"
	"strings"
)

// Type is what kind of error a message holds.
type Type string

// The errors of the Kubernetes API.
const (
	// Invalid is a validation error; Fields says which fields.
	Invalid Type = "invalid"
	// Undecodable is a manifest that does not fit the schema of its kind.
	Undecodable Type = "undecodable"
	// Unauthorized is an action that RBAC does not allow: User, Verb, Resource.
	Unauthorized Type = "unauthorized"
	// Quota is a ResourceQuota that is exceeded, or that needs a field to be set.
	Quota Type = "quota"
	// Terminating is a namespace that is being deleted.
	Terminating Type = "terminating"
	// LimitRange is a request outside of a LimitRange.
	LimitRange Type = "limit-range"
	// PodSecurity is a violation of the Pod Security level of a namespace.
	PodSecurity Type = "pod-security"
	// PriorityClass and ServiceAccount are missing objects that a pod names.
	PriorityClass  Type = "priority-class"
	ServiceAccount Type = "service-account"
	// Admission is a rejection by a webhook or a policy, By.
	Admission Type = "admission"
	// Forbidden is any other rejection by an admission plugin.
	Forbidden Type = "forbidden"
	// WebhookDown is an admission webhook, By, that cannot be called.
	WebhookDown Type = "webhook-down"
	// NoMatch is a kind that the API server does not serve.
	NoMatch Type = "no-match"
	// Conflict is a field that another field manager, By, owns.
	Conflict Type = "conflict"
	// NotFound is an object, Named, that does not exist.
	NotFound Type = "not-found"
	// Unhealthy is a list of objects that did not become ready: Objects.
	Unhealthy Type = "unhealthy"
	// Owned is an object that another Helm release, or none, owns.
	Owned Type = "owned"
)

// The errors of servers that controllers fetch from.
const (
	// Unreachable is a connection that cannot be made or is lost.
	Unreachable Type = "unreachable"
	// TimedOut is a deadline that has passed; it does not say why.
	TimedOut Type = "timed-out"
	// Untrusted is a certificate that is not trusted, or a server without TLS.
	Untrusted Type = "untrusted"
	// HostKey is an SSH host key that is not the known one.
	HostKey Type = "host-key"
	// Unauthenticated is a server that rejects the credentials, or wants some.
	Unauthenticated Type = "unauthenticated"
	// NoRevision is a branch, tag, commit or version that does not exist.
	NoRevision Type = "no-revision"
	// NoRepository is a repository, image or bucket that does not exist.
	NoRepository Type = "no-repository"
	// Rejected is a push that the Git server does not accept.
	Rejected Type = "rejected"
	// Status is another HTTP status.
	Status Type = "status"
	// RateLimited is a server that limits the rate of requests.
	RateLimited Type = "rate-limited"
)

// The errors of the controllers and their libraries.
const (
	// Undecryptable is data that the decryption keys do not fit, Encrypted an
	// object with SOPS data that is applied without decryption.
	Undecryptable Type = "undecryptable"
	Encrypted     Type = "encrypted"
	// NoVariable is a variable of post-build substitution that is not set.
	NoVariable Type = "no-variable"
	// NoPath is a path that does not exist in an artifact.
	NoPath Type = "no-path"
	// NoKey is a key, Name, that a Secret or ConfigMap, Named, does not have.
	NoKey Type = "no-key"
	// NoValues is a reference to values that cannot be resolved.
	NoValues Type = "no-values"
	// Template is a chart that does not render.
	Template Type = "template"
	// Schema are values that the schema of a chart does not allow.
	Schema Type = "schema"
	// Locked is a Helm release with an operation in progress.
	Locked Type = "locked"
	// NoChart is a chart or a version of it that does not exist.
	NoChart Type = "no-chart"
	// NoTag is an image without a tag that a policy accepts.
	NoTag Type = "no-tag"
	// NoPlatform is an image without a manifest for the platform of the node.
	NoPlatform Type = "no-platform"
)

// Object is an object of the cluster, as far as a message names it.
type Object struct{ Kind, Group, Namespace, Name string }

// String returns kind, namespace and name, as far as they are known.
func (o Object) String() string {
	var parts []string
	for _, part := range []string{o.Kind, o.Namespace, o.Name} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/")
}

// Failure is an error as a message holds it.
type Failure struct {
	// Type is "" where no error is known: Steps may say more.
	Type Type
	// Steps are the operations that have failed, the outermost first.
	Steps []Step
	// Object is the object that was applied, checked or decrypted.
	Object Object
	// Named is the object that the error itself is about.
	Named Object
	// Objects are the objects of an error that is about several, with the
	// status of each.
	Objects []ObjectStatus
	// Fields are the fields of an object that are not valid.
	Fields []Field
	// User, Verb, Resource and Scope are those of an action that is not allowed.
	User, Verb, Resource, Scope string
	// By is the quota, webhook, policy or field manager that stands against it.
	By string
	// Version is the API version of a kind that is not served.
	Version string
	// Name is that of a variable, path or key that is missing.
	Name string
	// Address is the host and port or the URL of a server.
	Address string
	// Code is an HTTP status or a registry's error code.
	Code string
	// Text is the message from the error on, and Detail what it says besides
	// its names.
	Text, Detail string
}

// ObjectStatus is the status of an object as kstatus has it, and what is known of it.
type ObjectStatus struct {
	Object
	Status, Detail string
}

// In reports whether one of the steps has failed.
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
	// longest bounds how much of a message is read, and deepest how many of its
	// parts.
	longest = 16 << 10
	deepest = 64
)

// Parse reads a message; steps are operations that are known to have failed. What
// it does not know is left empty.
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
