package transport

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// EndCredentialPlugins terminates the running credential plugins of this process and the programs
// that they have started. client-go does not expose them, and they would keep the streams of this
// process open after its exit, so that a pipeline would wait for them.
//
// Afterwards, this process cannot start programs, because client-go would start an ended plugin
// again for the next request that waits for credentials.
func EndCredentialPlugins() {
	syscall.ForkLock.RLock() // never unlocked
	var running []int
	for _, pid := range children(os.Getpid()) {
		// The environment distinguishes plugins from other child processes.
		if bytes.Contains(environment(pid), []byte("KUBERNETES_EXEC_INFO=")) {
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

// environment returns the environment of a child process, or nil after the process has exited. The environment is
// empty while the process replaces its program with another one, so it is read again for about a second, but not
// longer, because a program may also run without an environment.
func environment(pid int) []byte {
	for range 1000 {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil || len(text) > 0 || exited(pid) {
			return text
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// exited reports whether a child process has exited or does not exist.
func exited(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	// The state follows the name of the program, which is in parentheses and may contain parentheses.
	_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	return err != nil || bytes.HasPrefix(state, []byte("Z")) || bytes.HasPrefix(state, []byte("X"))
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
