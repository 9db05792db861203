//go:build !windows

package plugin

import (
	"fmt"
	"syscall"
)

// Run replaces this process with a plugin, so that the exit code is the plugin's and
// signals reach the plugin directly. It returns only on failure.
func Run(p Process) (code int, err error) {
	err = syscall.Exec(p.Path, append([]string{p.Path}, p.Args...), p.Env)
	return 1, fmt.Errorf("running the plugin %s: %w", p.Path, err)
}
