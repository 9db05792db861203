// Package tier selects test cases: a sample on every push, and all cases in the nightly run.
package tier

import "os"

// Nightly reports whether all cases of a table run (TIER=nightly, which make nightly sets) instead of a
// sample.
func Nightly() bool { return os.Getenv("TIER") == "nightly" }
