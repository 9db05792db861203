// Package testlimit defines the upper bound of all waits in tests, and deadlines that tests control.
package testlimit

import "time"

// Wait is the maximum time that a test waits for a condition, a command or a server. A longer wait is
// a failure, even on a busy machine.
const Wait = 4 * time.Minute
