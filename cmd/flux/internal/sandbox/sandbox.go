// Package sandbox implements the sandbox command.
package sandbox

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/internal/sandbox/programs"
)

// NewCommand returns the sandbox command.
func NewCommand(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:         "sandbox COMMAND",
		Short:       "Run a local Kubernetes API and Flux without containers",
		Annotations: command.Exits{command.OtherExit: "the exit code of flux-sandbox"}.Annotations(),
		Long: `Run flux-sandbox: a real Kubernetes API with the real Flux controllers, a Git
server and a registry, all on loopback. The binary is searched for in the
directory of flux, in the download directory of "flux sandbox pull", and on PATH.`,
		Example: `  # Download the sandbox binaries
  flux sandbox pull

  # Start a sandbox, use it in this shell, stop it
  flux sandbox up
  eval "$(flux sandbox env)"
  flux sandbox down`,
		DisableFlagParsing: true,
		// flux-sandbox parses its own flags and configuration.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE:              func(cmd *cobra.Command, args []string) error { return handOver(a, cmd, args) },
		ValidArgsFunction: completeSandbox(a),
	}
	cmd.AddCommand(newPull(a))
	return cmd
}

// completeSandbox completes the commands and flags of flux-sandbox by running it.
func completeSandbox(a *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		program, err := programs.Find(a.Build.Version)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), a.BriefTimeout)
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
}

func handOver(a *app.App, cmd *cobra.Command, args []string) error {
	program, err := programs.Find(a.Build.Version)
	if err != nil && len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
		return cmd.Help()
	}
	if err != nil {
		return err
	}
	child := exec.CommandContext(cmd.Context(), program, args...)
	// flux-sandbox runs flux from its own directory or from PATH. A downloaded sandbox contains no flux.
	if self, err := helper.Self(); err == nil {
		child.Env = append(a.Environ(), "PATH="+filepath.Dir(self)+string(os.PathListSeparator)+a.Env("PATH"))
	}
	child.Stdin, child.Stdout, child.Stderr = a.In, app.Unmasked(a.Out), app.Unmasked(a.Err)
	// On a terminal, the child receives Ctrl-C directly. It must not be killed during its cleanup.
	child.Cancel = func() error { return child.Process.Signal(os.Interrupt) }
	err = child.Run()
	var exited *exec.ExitError
	if errors.As(err, &exited) {
		return &clierr.ExitCodeError{Code: exited.ExitCode()}
	}
	return err
}
