package report

import (
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Finalizers returns the finalizers of an object for a message.
func Finalizers(o controllers.Object) string {
	list := kube.Finalizers(o)
	if len(list) == 0 {
		return "its dependent objects"
	}
	return strings.Join(list, ", ")
}

// OneLine returns a message in one line, with shortened digests.
func OneLine(message string) string {
	return strings.ReplaceAll(controllers.Shorten(message), "\n", " ")
}

// OneIf returns 1 for true and 0 for false.
func OneIf(true bool) int {
	if true {
		return 1
	}
	return 0
}

// Duration returns a duration for JSON, "" for zero.
func Duration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// ShortRevision returns a revision with its hash shortened.
func ShortRevision(revision string) string { return controllers.Shorten(revision) }

// Moment returns a time and its distance from now.
func Moment(a *app.App, t time.Time) string {
	text := t.UTC().Format("2006-01-02 15:04:05 MST")
	if now := a.Now(); t.After(now) {
		return text + " (in " + duration.HumanDuration(t.Sub(now)) + ")"
	}
	return text + " (" + duration.HumanDuration(a.Now().Sub(t)) + " ago)"
}

// SuspendNote returns the reason and the author of a suspension, for the end of
// a message.
func SuspendNote(o controllers.Object) string {
	if note := controllers.SuspensionReason(o); note != "" {
		return ": " + note
	}
	return ""
}

// Unreadable returns why an object could not be read.
func Unreadable(err error) string {
	switch {
	case apierrors.IsNotFound(err):
		return "Not found"
	case apierrors.IsForbidden(err):
		return "Unknown: no permission to read it"
	default:
		return "Unknown: " + redact.Text(err.Error())
	}
}
