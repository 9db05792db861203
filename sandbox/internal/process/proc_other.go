//go:build !linux

package process

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// birth is the start time of a process as ps tells it.
func birth(pid int) string { return ps(pid, "lstart=") }

// Resident is the memory of a process in bytes, 0 when it is not known.
func Resident(pid int) int64 {
	kib, err := strconv.ParseInt(ps(pid, "rss="), 10, 64)
	if err != nil {
		return 0
	}
	return kib * 1024
}

func ps(pid int, column string) string {
	out, err := exec.Command("ps", "-o", column, "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// childAttributes cannot tie a child's life to its parent's here; the next
// command finds what is left by the recorded identity.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
