package review

import (
	"regexp"
	"strings"

	"github.com/fluxkit/flux/pkg/diff"
)

// DefaultIgnored lists the fields that change with each chart version but have no effect of
// their own.
var DefaultIgnored = []string{"labels.helm.sh/chart", "labels.app.kubernetes.io/version", "annotations.checksum/*"}

// Ignore removes the fields that a pattern matches from the changes of all results. A
// pattern is the path of a field, or the part of it after any dot; * matches any
// characters. Ignore does not change the dangers.
func Ignore(results []*diff.Result, patterns []string) {
	var alternatives []string
	for _, p := range patterns {
		if p == "" { // --ignore-field= replaces the defaults
			continue
		}
		alternatives = append(alternatives, strings.ReplaceAll(regexp.QuoteMeta(p), `\*`, `.*`))
	}
	if len(alternatives) == 0 {
		return
	}
	matches := regexp.MustCompile(`(?s)(?:^|\.)(?:` + strings.Join(alternatives, "|") + `)$`).MatchString
	for _, c := range diff.Each(results) {
		*c = c.Without(matches)
	}
}
