//go:build !linux

package sandbox

import "math"

// memoryLimit returns no limit: other systems do not enforce one.
func memoryLimit() uint64 { return math.MaxUint64 }
