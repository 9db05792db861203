package isolation

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// memory is the maximum of the writable memory of a process. Flux limits the memory of a controller to 1 GiB in a cluster.
const memory = 4 << 30

// Memory limits the memory of a running process.
func Memory(pid int) error {
	err := unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: memory, Max: memory}, nil)
	if err != nil && !errors.Is(err, unix.ESRCH) { // the process has exited
		return fmt.Errorf("limiting the memory of a process: %w", err)
	}
	return nil
}
