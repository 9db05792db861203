package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/complete"
	"github.com/fluxkit/flux/internal/cli/plugin"
	"github.com/fluxkit/flux/internal/redact"
)

// Run executes one command line and returns the exit code.
func Run(ctx context.Context, a *app.App, args []string) int {
	defer a.Flush()
	a.LearnEnvironment()
	a.Suggest = newSuggest(ctx, a)
	root := NewRoot(a, args)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		if plugin.Complete(ctx, a, root, args) {
			return clierr.ExitDone
		}
		complete.EveryFlag(a, root)
	} else if handled, err := plugin.Run(ctx, a, root, args); handled {
		return exit(ctx, a, root, err)
	}
	root.SetArgs(args)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	cmd, err := root.ExecuteContextC(ctx)
	err = errors.Join(err, a.Kustomizers.Close())
	return exit(ctx, a, cmd, err)
}

// exit reports an error and turns it into the exit code.
func exit(ctx context.Context, a *app.App, cmd *cobra.Command, err error) int {
	if err == nil {
		return clierr.ExitDone
	}
	var elsewhere *clierr.ExitCodeError
	if errors.As(err, &elsewhere) {
		return elsewhere.Code
	}
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		if errors.Is(err, clierr.ErrStopped) {
			a.UI.Stopped()
		} else {
			a.UI.Failure("interrupted")
		}
		return clierr.ExitInterrupted
	}
	failed := clierr.ExitFailed
	if answersByCode(cmd) {
		failed = clierr.ExitUnanswered
	}
	if errors.Is(err, clierr.ErrReported) {
		a.Report(err)
		return failed
	}
	var lacking *clierr.UsageError
	if errors.As(err, &lacking) {
		a.UI.Line("%s", shortUsage(lacking.Cmd))
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

// answersByCode reports whether a command answers with exit code 1 that there
// are changes or problems, so that its own failures have another code.
func answersByCode(cmd *cobra.Command) bool {
	if cmd == nil {
		return false
	}
	words := strings.Fields(cmd.CommandPath())
	return len(words) > 1 && slices.Contains([]string{"diff", "why", "status"}, words[1])
}
