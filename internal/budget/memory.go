package budget

import (
	"math"
	"runtime/metrics"
)

// clusterMemory is the live memory at which reading ends, unless GOMEMLIMIT is larger.
const clusterMemory = 768 << 20

// Memory returns an error if the process has too much live memory to read more. GOMEMLIMIT alone only
// makes the garbage collector run more often and does not stop the growth. name identifies the input
// that is being read. Memory is fast enough to be called for each object.
func Memory(name string) error {
	used := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/gomemlimit:bytes"}}
	metrics.Read(used)
	live, limit := used[0].Value.Uint64(), max(clusterMemory, used[1].Value.Uint64())
	if live <= limit || limit >= math.MaxInt64 {
		return nil
	}
	return exceeded(name, "requires more than %s of memory: set GOMEMLIMIT to allow more", Size(int64(limit)))
}
