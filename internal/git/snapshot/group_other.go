//go:build !unix

package snapshot

import "os/exec"

// separate does nothing: this system has no process groups.
func separate(*exec.Cmd) {}
