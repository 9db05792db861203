// Package envsubst implements the envsubst command.
package envsubst

import (
	"context"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/envsubst"
	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
)

// NewCommand returns the envsubst command.
func NewCommand(a *app.App) *cobra.Command {
	strict := false
	cmd := &cobra.Command{
		Use:   "envsubst",
		Short: "Substitute environment variables in text",
		Long: `Substitute environment variables in the text on standard input, with the syntax
of postBuild substitutions: ${NAME}, ${NAME:=default}, ${NAME^^},
${NAME/from/to}, and $$ for a dollar sign.

If a line is invalid, nothing is printed.`,
		Example: `  # Substitute the variables of a manifest
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
	text, err := app.ReadStdin(ctx, a)
	if err != nil {
		return err
	}
	var answer strings.Builder
	wrong := 0
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
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

// substituteLine reports every missing variable of a line: the library reports
// only the first.
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
