// Command measure runs a command and prints its cost as JSON. It is a separate program,
// because on Linux the peak memory of a child includes the memory of the process that
// starts it, and bench is large.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	if err := measure(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func measure(line []string) error {
	want := 0
	if len(line) > 0 {
		if code, ok := strings.CutPrefix(line[0], "-exit="); ok {
			var err error
			if want, err = strconv.Atoi(code); err != nil {
				return err
			}
			line = line[1:]
		}
	}
	if len(line) == 0 {
		return fmt.Errorf("usage: measure [-exit=CODE] COMMAND [ARG…]")
	}
	cmd := exec.Command(line[0], line[1:]...)
	start := time.Now()
	out, err := cmd.CombinedOutput()
	wall := time.Since(start)
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != want {
		return fmt.Errorf("want exit code %d: %w\n%s", want, err, out)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return fmt.Errorf("this system does not report the resource usage of a process")
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]int64{
		"wall":   wall.Nanoseconds(),
		"cpu":    (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Nanoseconds(),
		"memory": usage.Maxrss,
	})
}
