//go:build !windows

package plugin

import (
	"fmt"
	"syscall"
)

// Run runs a plugin in place of this process, so that the terminal, signals and
// the exit code are the plugin's own. It returns only where that fails.
func Run(p Process) (code int, err error) {
	err = syscall.Exec(p.Path, append([]string{p.Path}, p.Args...), p.Env)
	return 1, fmt.Errorf("running the plugin %s: %w", p.Path, err)
}
