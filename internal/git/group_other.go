//go:build !unix

package git

import "os/exec"

// separate does nothing: this system has no process groups.
func separate(*exec.Cmd) {}
