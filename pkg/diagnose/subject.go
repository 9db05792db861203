package diagnose

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// subject is a Flux object and its failure. Rules read it.
type subject struct {
	kind   controllers.Kind
	object controllers.Object
	ready  controllers.Readiness
	// attempting is the message about the attempt that repeats the failed one in ready.
	attempting string
	// home is the namespace of the controllers.
	home string
	// failed is the condition with the failure and failure its parsed message.
	// recognize sets them.
	failed  controllers.Readiness
	failure failure.Failure
	evidence
}

// evidence holds the details that need further requests.
type evidence struct {
	// file is the path of the rejected object in the artifact of the source.
	file string
	// providers lists the objects that apply CRDs of a group that is not served.
	providers []string
	// served lists the served versions of the kind.
	served []string
}

// newSubject returns the subject of an object. A release that repeats a failed attempt has failed.
func newSubject(k controllers.Kind, o controllers.Object) subject {
	sub := subject{kind: k, object: o, ready: Said(k, o)}
	sub.repeat()
	return sub
}

// runningAction begins the message of helm-controller while it runs an action.
const runningAction = "Running '"

// repeat sets the failure of the last attempt while helm-controller repeats it: before it runs an
// action, it clears the number of failures unless the generation, the chart and the values are those
// of the last attempt.
func (s *subject) repeat() {
	doing, _ := controllers.FindCondition(s.object, "Reconciling")
	failures := s.text("status.failures")
	if s.ready.Status != "Unknown" || !strings.HasPrefix(doing.Message, runningAction) || failures == "" || failures == "0" ||
		s.text("status.lastAttemptedGeneration") != s.text("metadata.generation") {
		return
	}
	if failed, ok := s.attempted(); ok {
		s.ready, s.attempting = failed, doing.Message
	}
}

// attempted returns the condition that reports a failed action.
func (s subject) attempted() (failed controllers.Readiness, ok bool) {
	for _, name := range s.kind.Attempted {
		if c, ok := controllers.FindCondition(s.object, name); ok && c.Status == "False" && c.Message != "" {
			return controllers.Readiness{Status: c.Status, Reason: c.Reason, Message: WithoutFolders(c.Message)}, true
		}
	}
	return controllers.Readiness{}, false
}

// subject returns the subject of an object of the snapshot.
func (d Doctor) subject(k controllers.Kind, o controllers.Object) subject {
	sub := newSubject(k, o)
	sub.home = d.Home
	return sub
}

// attempt returns the condition with the failure: Ready, unless that reports
// the remediation of an earlier failure.
func (s subject) attempt() controllers.Readiness {
	remediated, is := controllers.FindCondition(s.object, "Remediated")
	if !controllers.RetriesExhausted(s.object) && (!is || remediated.Reason != s.ready.Reason) {
		return s.ready
	}
	if failed, ok := s.attempted(); ok {
		return failed
	}
	return s.ready
}

// folders matches the temporary folders of the controllers.
var folders = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`/[^\s'"]*/(kustomization|helmchart|gitrepository|bucket|ocirepository)-[^/\s'"]+/(source/)?`)
})

// WithoutFolders removes the temporary folders of the controllers from a
// message.
func WithoutFolders(message string) string { return folders().ReplaceAllString(message, "") }

// Said returns the readiness of an object without the temporary folders of its
// controller.
func Said(k controllers.Kind, o controllers.Object) controllers.Readiness {
	ready := k.Ready(o)
	if ready.Status != "True" {
		ready.Message = WithoutFolders(ready.Message)
	}
	return ready
}

func (s subject) text(field string) string { return controllers.Path{field}.String(s.object) }
func (s subject) namespace() string        { return controllers.Namespace(s.object) }
func (s subject) name() string             { return controllers.Name(s.object) }
func (s subject) id() controllers.ID       { return s.kind.IDOf(s.object) }
func (s subject) String() string           { return s.id().String() }

// detail returns the detail of the failure, or the whole message, in one line.
func (s subject) detail() string {
	if s.failure.Detail != "" {
		return oneLine(s.failure.Detail)
	}
	return oneLine(s.failed.Message)
}

// command returns a flux command for the object.
func (s subject) command(verb string, flags ...string) string {
	return strings.Join(append([]string{hint.Command("flux "+verb+" "+s.kind.Noun()+" %s -n %s", s.name(), s.namespace())}, flags...), " ")
}

// again returns the command that reconciles the object after the fix.
func (s subject) again() string {
	if s.kind.HasUpstream() {
		return s.command("reconcile", "--with-source")
	}
	return s.command("reconcile")
}

func (s subject) logs() string { return LogsOf(s.id()) }

// LogsOf returns the command that prints the controller logs of an object.
func LogsOf(t controllers.ID) string {
	return hint.Command("flux logs --for %s -n %s", t.Kind+"/"+t.Name, t.Namespace)
}

// origin is a subject that fetches from a server, or whose source does.
type origin struct{ subject }

func (s subject) origin() origin { return origin{s} }

// server returns the object with the address of a server: the object itself or
// its source.
func (s origin) server() string {
	if s.kind.Fetch.Address == "" {
		if sources := s.kind.SourceOf(s.object); len(sources) == 1 {
			return sources[0].String()
		}
	}
	return s.String()
}

// address returns the address that the object fetches from, without
// credentials.
func (s origin) address() string {
	if field := s.kind.Fetch.Address; field != "" && s.text(field) != "" {
		return withoutUser(s.text(field))
	}
	if s.failure.Address != "" {
		return s.failure.Address
	}
	return "the server of " + s.server()
}

// userOf matches the scheme, user and password of a URL.
var userOf = regexp.MustCompile(`^([a-z0-9+]+://)[^/@\s]*@`)

// withoutUser removes the user and the password from a URL.
func withoutUser(address string) string {
	return userOf.ReplaceAllString(address, "$1")
}

// credentials returns the Secret with the credentials, or "".
func (s origin) credentials() string {
	field := s.kind.Fetch.Credentials
	if field == "" {
		return s.named()
	}
	if name := s.text(field + ".name"); name != "" {
		return "Secret " + s.namespace() + "/" + name
	}
	return ""
}

// named returns the Secret that the message names, or "".
func (s origin) named() string {
	if n := s.failure.Named; n.Kind == "Secret" && n.Name != "" {
		return "Secret " + orElse(n.Namespace, s.namespace()) + "/" + n.Name
	}
	return ""
}

// credentialsField returns the field that refers to the Secret with
// credentials, in the object or its source, or "" if neither kind has one.
func (s origin) credentialsField() string {
	if field := s.kind.Fetch.Credentials; field != "" {
		return "." + field + " of " + s.String()
	}
	if sources := s.kind.SourceOf(s.object); len(sources) == 1 {
		if k, ok := sources[0].Flux(); ok && k.Fetch.Credentials != "" {
			return "." + k.Fetch.Credentials + " of " + sources[0].String()
		}
	}
	return ""
}

// secretField returns the field of the object that names a Secret, or "".
func (s origin) secretField(name string) string {
	i := slices.IndexFunc(s.kind.Secrets, func(field string) bool { return s.text(field+".name") == name })
	if i < 0 {
		return ""
	}
	return "." + s.kind.Secrets[i] + ".name"
}

// revision returns the requested branch, tag or version.
func (s origin) revision() string {
	field := s.kind.Fetch.Revision
	for _, name := range []string{"commit", "digest", "name", "semver", "tag", "branch"} {
		if v := s.text(field + "." + name); v != "" {
			return name + " " + v
		}
	}
	return s.text(field)
}

// revisionFields returns the fields with the revision and the address.
func (s origin) revisionFields() string {
	var fields []string
	for _, field := range []string{s.kind.Fetch.Revision, s.kind.Fetch.Address} {
		if field != "" {
			fields = append(fields, "."+field)
		}
	}
	return strings.Join(fields, " or ") + " of " + s.String()
}

// rejected returns the object that the API server rejected.
func (s rejection) rejected() string {
	o := s.failure.Object
	if o.Kind == "" || o.Name == "" {
		o = s.failure.Named
	}
	if o.Namespace == "" && s.failure.Object.Kind == "" {
		o.Namespace = s.target()
	}
	return o.String()
}

// target returns the namespace to which the object applies.
func (s subject) target() string {
	return orElse(s.text("spec.targetNamespace"), s.namespace())
}

// orElse returns a, or b if a is empty.
func orElse(a, b string) string {
	if a == "" {
		return b
	}
	return a
}
