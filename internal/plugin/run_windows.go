package plugin

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
)

// Run runs a plugin with the streams of this process and returns its exit code.
func Run(p Process) (code int, err error) {
	// Ctrl-C is sent to every process in the console, and the plugin handles it.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	cmd := exec.Command(p.Path, p.Args...)
	cmd.Env = p.Env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.In, p.Out, p.Err
	err = cmd.Run()
	var exited *exec.ExitError
	if errors.As(err, &exited) {
		return exited.ExitCode(), nil
	}
	if err != nil {
		return 1, fmt.Errorf("running the plugin %s: %w", p.Path, err)
	}
	return 0, nil
}
