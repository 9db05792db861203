//go:build !linux

package process

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// birth returns the start time of a process as printed by ps.
func birth(pid int) string { return ps(pid, "lstart=") }

// Resident returns the resident memory of a process in bytes, or 0 if it is unknown.
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

// childAttributes starts a process group. This system has no parent-death signal;
// the next command finds remaining children by their recorded identity.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
