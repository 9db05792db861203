package diff

import (
	"strings"

	"github.com/fluxkit/flux/internal/terminal/fit"
	"github.com/fluxkit/flux/pkg/diff/review"
)

// DangersTopic returns the text about dangers, with the rules.
func DangersTopic() string {
	var list strings.Builder
	for _, r := range review.Rules() {
		name := r.ID
		if r.Notice {
			name += " (notice)"
		}
		list.WriteString("\n  " + name + "\n      " + fit.Fold(strings.Repeat(" ", topicIndent)+"The object "+r.Effect+". "+r.Explanation, topicIndent, topicWidth)[topicIndent:])
	}
	return `A danger is a change that can lose data or interrupt a service. flux diff warns
about dangers on standard error, and reports them in all output formats. With
--fail-on=danger, only dangers exit with 1; other changes and notices do not.

Accept dangers:
  --allow RULE,…
      for all objects of the comparison.
  ` + review.AllowAnnotation + `: RULE,…
      for an object with this annotation. Only the annotation of the current
      object counts: a change cannot allow itself.

  # Fail a pull request only for dangers, and accept major versions of images
  flux diff --base auto --path clusters/production --fail-on=danger --allow major-image-update

Rules:` + list.String()
}

// Indentation and width of the rules in the help topic.
const (
	topicIndent = 6
	topicWidth  = 80
)
