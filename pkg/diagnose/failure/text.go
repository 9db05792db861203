package failure

import (
	"strings"

	"github.com/fluxkit/flux/internal/lazy"
)

// longestLine is the maximum length of a message in one line.
const longestLine = 400

// OneLine joins the lines of a message and truncates it.
func OneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > longestLine {
		return string(runes[:longestLine]) + "…"
	}
	return s
}

// Join returns a reason and a message in one line.
func Join(reason, message string) string {
	message = OneLine(message)
	switch {
	case reason == "":
		return message
	case message == "":
		return reason
	}
	return reason + ": " + message
}

// tempDirs matches the temporary directories of the controllers.
var tempDirs = lazy.Regexp(`/[^\s'"]*/((kustomization|helmchart|gitrepository|bucket|ocirepository)-[^/\s'"]+/(source/)?|tmp/[a-z0-9.-]+[0-9]{6,}/)`)

// WithoutTempDirs removes the temporary directories of the controllers from a message.
func WithoutTempDirs(message string) string { return tempDirs().ReplaceAllString(message, "") }
