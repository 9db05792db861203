package budget

import (
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/Masterminds/semver/v3"
)

// Limits of version ranges and regular expressions, which are matched against
// an unlimited number of tags, versions or names.
const (
	maxRange        = 256
	maxInstructions = 1000
	maxExpression   = 4096
)

// Range parses a version range that is within the limits.
func Range(text string) (*semver.Constraints, error) {
	if len(text) > maxRange {
		return nil, exceeded(fmt.Sprintf("version range %.32q…", text), "longer than %d bytes", maxRange)
	}
	return semver.NewConstraint(text)
}

// Regexp compiles a regular expression that is within the limits. Repetitions
// such as (x{1000}){1000} make a short expression large.
func Regexp(text string) (*regexp.Regexp, error) {
	name := fmt.Sprintf("regular expression %.32q…", text)
	if len(text) > maxExpression {
		return nil, exceeded(name, "longer than %d bytes", maxExpression)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	compiled, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if len(compiled.Inst) > maxInstructions {
		return nil, exceeded(name, "compiles to more than %d instructions", maxInstructions)
	}
	return regexp.Compile(text)
}
