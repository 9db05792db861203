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

// EndCredentialPlugins ends the credential plugins of this process that still run, with the programs
// that they have started. client-go gives no access to them, and they would keep the streams of
// this process open after its exit, so that a pipeline waits for them.
func EndCredentialPlugins() {
	var running []int
	for _, pid := range children(os.Getpid()) {
		// The environment tells them from other children; it cannot be read of a process that has ended.
		environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && bytes.Contains(environment, []byte("KUBERNETES_EXEC_INFO=")) {
			running = append(running, pid)
		}
	}
	for i := 0; i < len(running); i++ {
		running = append(running, children(running[i])...)
	}
	for _, pid := range running {
		_ = syscall.Kill(pid, syscall.SIGTERM) // it may have ended
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
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				found = append(found, child)
			}
		}
	}
	return found
}
