package helper

import (
	"context"
	"fmt"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/fluxkit/flux/internal/budget"
)

// The exit codes of the helper process that Process distinguishes.
const (
	// ExitMemory is the exit code of a process that exceeded its memory limit.
	ExitMemory = 75
	// exitCrash is the exit code of the Go runtime when it cannot allocate memory.
	exitCrash = 2
)

// LimitMemory limits the memory of this process. It calls exit when the limit is exceeded.
//
// The garbage collector keeps the memory below three quarters of the limit if possible. The memory is measured every
// few milliseconds. If it grows faster, the process exceeds the data limit of the system and ends. The address space
// is not limited, because the Go runtime reserves more of it than it needs.
func LimitMemory(ctx context.Context, exit func(code int)) error {
	debug.SetMemoryLimit(budget.HelperMemory / 4 * 3)
	if err := limitData(budget.HelperData); err != nil {
		return fmt.Errorf("limiting the memory: %w", err)
	}
	go watchMemory(ctx, exit)
	return nil
}

func watchMemory(ctx context.Context, exit func(code int)) {
	used := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	every := time.NewTicker(5 * time.Millisecond)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		metrics.Read(used)
		if used[0].Value.Uint64()-used[1].Value.Uint64() > budget.HelperMemory {
			exit(ExitMemory)
		}
	}
}
