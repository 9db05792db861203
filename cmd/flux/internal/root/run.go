package root

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clusters"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/cmd/flux/internal/plugin"
	"github.com/fluxkit/flux/internal/secrets/redact"
)

// Run executes one command line and returns the exit code.
func Run(ctx context.Context, a *app.App, args []string) int {
	defer a.Flush()
	cmd, err := execute(ctx, a, args)
	var several *clusters.SeveralError
	if errors.As(err, &several) {
		return clusters.Run(ctx, a, several, func(ctx context.Context, fork *app.App) (int, error) {
			defer fork.Flush()
			cmd, err := execute(ctx, fork, args)
			return exit(ctx, fork, cmd, err), err
		})
	}
	return exit(ctx, a, cmd, err)
}

// execute executes one command line, and returns the command and its error.
func execute(ctx context.Context, a *app.App, args []string) (*cobra.Command, error) {
	a.AddEnvironmentSecrets()
	a.Suggest = newSuggest(ctx, a)
	root := NewRoot(a, args)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		if plugin.Complete(ctx, a, root, args) {
			return root, nil
		}
		complete.EveryFlag(a, root)
	} else if handled, err := plugin.Run(ctx, a, root, args); handled {
		return root, err
	}
	root.SetArgs(command.WithKind(root, args))
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	cmd, err := root.ExecuteContextC(ctx)
	return cmd, errors.Join(err, a.Helpers.Close())
}

// exit reports the error of a command and returns the exit code.
func exit(ctx context.Context, a *app.App, cmd *cobra.Command, err error) int {
	if err == nil {
		return clierr.ExitSuccess
	}
	var code *clierr.ExitCodeError
	if errors.As(err, &code) {
		return code.Code
	}
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		if errors.Is(err, clierr.ErrStopped) {
			a.UI.Stopped()
		} else {
			a.UI.Failure("interrupted")
		}
		return clierr.ExitInterrupted
	}
	failed := command.ErrorExit(cmd)
	if errors.Is(err, clierr.ErrReported) {
		a.Report(err)
		return failed
	}
	var usage *clierr.UsageError
	if errors.As(err, &usage) {
		a.UI.Line("%s", shortUsage(usage.Cmd))
	}
	message, hint := clierr.Explain(err, cmd)
	message = a.NameTimeout(message)
	if hint == "" {
		hint = a.Hint(err)
	}
	a.UI.Failure("%s", redact.Text(message))
	if hint != "" {
		a.UI.Line("  %s", redact.Text(hint))
	}
	return failed
}
