package audit

import (
	"strings"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/pkg/audit"
)

// Topic returns the help text on rules and exceptions.
func Topic() string {
	var list strings.Builder
	for _, r := range audit.Rules() {
		list.WriteString(command.Entry(r.ID+" ("+string(r.Severity)+")", r.Summary+" "+r.Reason))
	}
	return `Rules of flux audit and how to exclude them.

A finding is an error, a warning or a note. By default, errors exit with 1; see
--fail-on. flux audit also reports the errors and warnings of flux validate.

A rule can be excluded:

  --allow RULE,…
      for all objects.
  ` + audit.AllowAnnotation + `: RULE,…
      for an object with this annotation.
  ` + audit.File + `
      for matching objects. The file is in the root of the repository. Empty
      fields match everything; other fields are patterns such as web-*:

      allow:
      - rule: mutable-image
        kind: Deployment
        namespace: apps
        name: legacy-*
        path: clusters/staging
        reason: replaced next month

Excluded findings are counted as exceptions. A pull request can add exceptions:
review its changes to the file and the annotations, or ignore exceptions with
--no-exceptions.

Rules:` + list.String() + "\n"
}
