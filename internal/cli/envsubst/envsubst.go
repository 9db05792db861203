// Package envsubst has the command envsubst.
package envsubst

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/fluxcd/pkg/envsubst"
	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
)

// NewCommand returns the command envsubst.
func NewCommand(a *app.App) *cobra.Command {
	strict := false
	cmd := &cobra.Command{
		Use:   "envsubst",
		Short: "Substitute environment variables in text",
		Long: `Put the values of environment variables for the variables of a text, by the
rules by which postBuild substitutes: ${NAME}, ${NAME:=default}, ${NAME^^},
${NAME/from/to}, and $$ for a dollar sign.

The text comes from standard input. It is printed whole or, where a line is
wrong, not at all.`,
		Example: `  # See what a manifest becomes
  cluster_region=eu-central-1 flux envsubst < deployment.yaml

  # Apply a build, failing on variables that are not set and have no default
  kustomize build ./overlays/production | flux envsubst --strict | kubectl apply -f -`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), a, strict) },
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "fail on variables that are not set and have no default")
	return cmd
}

func run(ctx context.Context, a *app.App, strict bool) error {
	text, err := readStdin(ctx, a)
	if err != nil {
		return err
	}
	var answer strings.Builder
	wrong := 0
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		replaced, err := substituteLine(a, line, strict)
		if err != nil {
			a.UI.Failure("line %d: %s", i+1, err)
			wrong++
		}
		answer.WriteString(replaced + "\n")
	}
	if wrong > 0 {
		return clierr.ErrReported
	}
	if len(text) == 0 {
		return nil
	}
	return a.Document(answer.String())
}

// substituteLine names every variable of a line that is missing; the library
// stops at the first.
func substituteLine(a *app.App, line string, strict bool) (string, error) {
	var missing []string
	replaced, err := envsubst.Eval(line, func(name string) (string, bool) {
		value, set := a.LookupEnv(name)
		if strict && !set {
			missing = append(missing, name)
		}
		return value, set || !strict
	})
	if err == nil {
		return replaced, nil
	}
	if last := len(missing) - 1; last >= 0 && strings.Contains(err.Error(), missing[last]) {
		return "", fmt.Errorf("variable %q is not set and has no default", missing[last])
	}
	return "", err
}

// readStdin reads standard input to its end, or until ctx ends: somebody who
// forgot the input gets away with Ctrl-C.
func readStdin(ctx context.Context, a *app.App) ([]byte, error) {
	type reply struct {
		text []byte
		err  error
	}
	// A read of a terminal cannot be cut short, so on ctx the goroutine stays
	// until the process ends, which it does then.
	answer := make(chan reply, 1)
	go func() {
		text, err := io.ReadAll(a.In)
		answer <- reply{text, err}
	}()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case got := <-answer:
		if got.err != nil {
			return nil, fmt.Errorf("reading standard input: %w", got.err)
		}
		return got.text, nil
	}
}
