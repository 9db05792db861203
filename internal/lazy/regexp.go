// Package lazy delays work at the start of a program until its result is used.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp returns a function that returns a regular expression. The first call compiles it, and panics if
// it is invalid. Compiling all of them would make every start of flux 1 ms longer.
func Regexp(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
