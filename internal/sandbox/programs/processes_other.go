//go:build !linux

package programs

import (
	"context"
	"os/exec"
	"runtime"
	"strings"
)

// commandLines returns the command lines of the running processes. The sandbox is not available for Windows.
func commandLines(ctx context.Context) ([]string, error) {
	if runtime.GOOS == "windows" {
		return nil, nil
	}
	out, err := exec.CommandContext(ctx, "ps", "-A", "-ww", "-o", "args=").Output()
	return strings.Split(string(out), "\n"), err
}
