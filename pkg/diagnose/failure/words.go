package failure

import (
	"regexp/syntax"
	"slices"
)

// fewest is the minimum length of a literal.
const fewest = 4

// Words returns the literal texts of all patterns. A test uses them as object names, which must not change the classification.
func Words() []string {
	var words []string
	for _, p := range prefixes {
		words = literals(words, p.pattern)
	}
	for _, list := range [][]prototype{buildErrors, apiErrors, forbidden, networkErrors, serverErrors, gitErrors, controllerErrors} {
		for _, p := range list {
			words = literals(words, p.pattern)
		}
	}
	words = slices.Concat(words, immutable, immutableBut)
	slices.Sort(words)
	return slices.Compact(words)
}

// literals appends the literal texts of a pattern.
func literals(words []string, pattern string) []string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return words
	}
	var walk func(*syntax.Regexp)
	walk = func(re *syntax.Regexp) {
		if re.Op == syntax.OpLiteral && len(re.Rune) >= fewest {
			words = append(words, string(re.Rune))
		}
		for _, sub := range re.Sub {
			walk(sub)
		}
	}
	walk(re)
	return words
}
