package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// sandboxProgram is a program of its own, because a whole Kubernetes is in it.
const sandboxProgram = "flux-sandbox"

func newSandbox(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "sandbox COMMAND",
		Short: "Run a local Kubernetes API and Flux without containers",
		Long: `Hands over to flux-sandbox, which lies beside flux or on PATH: a real
Kubernetes API with the real Flux controllers, a Git server and a registry,
all on loopback.`,
		Example: `  # Start it, use it in this shell, stop it
  flux sandbox up
  eval "$(flux sandbox env)"
  flux sandbox down`,
		DisableFlagParsing: true,
		// The sandbox has flags and a configuration of its own.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE:              func(cmd *cobra.Command, args []string) error { return a.handOver(cmd, args) },
		ValidArgsFunction: a.completeSandbox,
	}
}

// completeSandbox asks the program, which completes its own commands and flags.
func (a *app) completeSandbox(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	program, err := findBeside(sandboxProgram)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	words := slices.Concat([]string{cobra.ShellCompRequestCmd}, args, []string{prefix})
	out, err := exec.CommandContext(ctx, program, words...).Output()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	last := len(lines) - 1
	directive, err := strconv.Atoi(strings.TrimPrefix(lines[last], ":"))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return lines[:last], cobra.ShellCompDirective(directive)
}

func (a *app) handOver(cmd *cobra.Command, args []string) error {
	program, err := findBeside(sandboxProgram)
	if err != nil {
		return hinted("build it with 'make sandbox', or put it on PATH", "%s lies neither beside flux nor on PATH", sandboxProgram)
	}
	child := exec.CommandContext(cmd.Context(), program, args...)
	child.Stdin, child.Stdout, child.Stderr = a.in, unmasked(a.out), unmasked(a.err)
	// An interrupt reaches the child by itself where there is a terminal; it
	// cleans up, so it must not be killed while it does.
	child.Cancel = func() error { return child.Process.Signal(os.Interrupt) }
	err = child.Run()
	var exited *exec.ExitError
	if errors.As(err, &exited) {
		return &exitCodeError{exited.ExitCode()}
	}
	return err
}

// findBeside looks for a program in the folder of this one, then on PATH.
func findBeside(name string) (string, error) {
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if self, err := os.Executable(); err == nil {
		if resolved, err := filepath.EvalSymlinks(self); err == nil {
			self = resolved
		}
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), name)); err == nil {
			return path, nil
		}
	}
	return exec.LookPath(name)
}
