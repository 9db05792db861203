package diagnose

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/fluxkit/flux/pkg/controllers"
)

// subject is an object of Flux that is not ready, as a rule sees it.
type subject struct {
	kind   controllers.Kind
	object controllers.Object
	ready  controllers.Readiness
}

// newSubject reads what an object says of itself.
func newSubject(k controllers.Kind, o controllers.Object) subject {
	ready := k.Ready(o)
	if ready.Status != "True" {
		ready.Message = WithoutFolders(ready.Message)
	}
	return subject{k, o, ready}
}

// WithoutFolders takes the folders out of a message that controllers have worked
// in: they are gone, and say nothing.
func WithoutFolders(message string) string {
	folders := regexp.MustCompile(`/[^\s'"]*/(kustomization|helmchart|gitrepository|bucket|ocirepository)-[^/\s'"]+/(source/)?`)
	return folders.ReplaceAllString(message, "")
}

// Said is what an object says of itself, without the folders that its
// controller works in.
func Said(k controllers.Kind, o controllers.Object) controllers.Readiness {
	return newSubject(k, o).ready
}

func (s subject) text(field string) string { return controllers.Path{field}.String(s.object) }
func (s subject) namespace() string        { return controllers.Namespace(s.object) }
func (s subject) name() string             { return controllers.Name(s.object) }

// command is a flux command on the object.
func (s subject) command(verb string, flags ...string) string {
	return strings.Join(append([]string{"flux", verb, s.kind.Noun(), s.name(), "-n", s.namespace()}, flags...), " ")
}

// again is how to have it tried again once the cause is mended.
func (s subject) again() string {
	if s.kind.HasUpstream() {
		return s.command("reconcile", "--with-source")
	}
	return s.command("reconcile")
}

func (s subject) logs() string { return LogsOf(targetOf(s.kind, s.object)) }

// LogsOf is how to see what the controllers have to say about an object.
func LogsOf(t controllers.Target) string {
	return fmt.Sprintf("flux logs --for %s/%s -n %s", t.Kind, t.Name, t.Namespace)
}

// secret names the Secret that opens a source.
func (s subject) secret() string {
	if name := s.text("spec.secretRef.name"); name != "" {
		return "Secret " + s.namespace() + "/" + name
	}
	return ""
}

// address is where a source is, without credentials.
func (s subject) address() string {
	for _, field := range []string{"spec.url", "spec.endpoint", "spec.image"} {
		if v := s.text(field); v != "" {
			return v
		}
	}
	return "the server"
}

func (s subject) orSecret() string {
	if secret := s.secret(); secret != "" {
		return secret
	}
	return "a Secret that spec.secretRef names"
}

// reference is what spec.ref asks for.
func (s subject) reference() string {
	for _, field := range []string{"commit", "digest", "name", "semver", "tag", "branch"} {
		if v := s.text("spec.ref." + field); v != "" {
			return field + " " + v
		}
	}
	return ""
}
