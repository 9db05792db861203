package kube

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// EndCredentialPlugins terminates the running credential plugins of this process and the programs
// that they have started. client-go does not expose them, and they would keep the streams of this
// process open after its exit, so that a pipeline would wait for them.
func EndCredentialPlugins() {
	var running []int
	for _, pid := range children(os.Getpid()) {
		// The environment distinguishes plugins from other child processes. It is not readable
		// after a process has exited.
		environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && bytes.Contains(environment, []byte("KUBERNETES_EXEC_INFO=")) {
			running = append(running, pid)
		}
	}
	for i := 0; i < len(running); i++ {
		running = append(running, children(running[i])...)
	}
	for _, pid := range running {
		_ = syscall.Kill(pid, syscall.SIGTERM) // the process may have exited
	}
}

// children returns the child processes of a process.
func children(pid int) []int {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil
	}
	var found []int
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has exited
		}
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				found = append(found, child)
			}
		}
	}
	return found
}
