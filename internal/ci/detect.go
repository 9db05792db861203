package ci

import (
	"slices"
	"strings"
)

// otherSigns lists the variable CI, which most systems set, and variables of systems without pull requests.
var otherSigns = []string{"CI", "TEAMCITY_VERSION"}

// Detected reports whether flux runs in a CI system.
func Detected(env func(string) string) bool {
	return slices.ContainsFunc(systems, func(s system) bool { return s.runs(env) }) ||
		slices.ContainsFunc(otherSigns, func(name string) bool {
			value := env(name)
			return value != "" && value != "0" && !strings.EqualFold(value, "false")
		})
}
