package changes

import (
	"strings"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/pkg/diff/review"
)

// Topic returns the help text on dangers and their rules.
func Topic() string {
	var list strings.Builder
	for _, r := range review.Rules() {
		name := r.ID
		if r.Notice {
			name += " (notice)"
		}
		list.WriteString(command.Entry(name, "The object "+r.Effect+". "+r.Explanation))
	}
	return `A danger is a change that can lose data or interrupt a service. flux diff warns
about dangers on standard error, and reports them in all output formats. With
--fail-on=danger, only dangers exit with 1; other changes and notices do not.

Accept dangers:
  --allow RULE,…
      for all objects of the comparison.
  ` + review.AllowAnnotation + `: RULE,…
      for an object with this annotation. An annotation that the change itself
      adds has no effect.

  # Fail a pull request only for dangers, and accept major image updates
  flux diff --base auto --path clusters/production --fail-on=danger --allow major-image-update

Rules:` + list.String()
}
