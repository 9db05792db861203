// Package testlimit has the upper bound of everything that tests wait for.
package testlimit

import "time"

// Wait is the longest time that a test waits for a condition, a command or a server. A wait that takes
// longer has failed, also on a busy machine.
const Wait = 4 * time.Minute
