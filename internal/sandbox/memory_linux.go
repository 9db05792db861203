package sandbox

import (
	"math"
	"syscall"
)

// memoryLimit returns the virtual memory limit of this process, which the sandbox inherits.
func memoryLimit() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_AS, &limit) != nil {
		return math.MaxUint64
	}
	return limit.Cur
}
