package budget

import (
	"math"
	"runtime/metrics"
)

// Memory returns an error if the live memory of the process exceeds its limit, which GOMEMLIMIT
// overrides. The limit itself makes the garbage collector run more often, and does not end the growth.
// Name is the input that is being read. Memory is fast enough to be called for each object.
func Memory(name string) error {
	used := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/gomemlimit:bytes"}}
	metrics.Read(used)
	live, limit := used[0].Value.Uint64(), used[1].Value.Uint64()
	if live <= limit || limit > math.MaxInt64 {
		return nil
	}
	return exceeded(name, "more than %s of memory are needed: set GOMEMLIMIT to allow more", Size(int64(limit)))
}
