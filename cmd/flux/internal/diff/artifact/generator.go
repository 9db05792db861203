package artifact

import (
	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/buildflags"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/build/generator"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository/artifacts"
)

type generatorOptions struct {
	buildflags.Options
	format string
}

// NewGeneratorCommand returns the command that compares the artifacts of an ArtifactGenerator.
func NewGeneratorCommand(a *app.App) *cobra.Command {
	o := &generatorOptions{}
	k, _ := controllers.FindKind(generator.Kind)
	cmd := &cobra.Command{
		Use:     "artifact-generator [name]",
		Aliases: []string{"ag", "artifactgenerator"},
		Short:   "Diff the artifacts of an ArtifactGenerator against the cluster",
		Long: `List the files that are added (+), removed (-) and changed (±) in the
ExternalArtifacts of an ArtifactGenerator, compared with the artifacts in
source-watcher. Sources are read as in "flux build artifact-generator". File
modes and the metadata of the artifacts are not compared.`,
		Annotations: command.Exits{
			clierr.ExitSuccess: "the files of the artifacts are equal", clierr.ExitFailed: "files differ, or artifacts are created or deleted",
			clierr.ExitUndetermined: "the comparison failed, or the command line is invalid",
		}.Annotations(),
		Example: `  # Show the changes of the files in the work tree
  flux diff artifact-generator my-app

  # Compare a changed ArtifactGenerator
  flux diff ag my-app --generator-file ./apps/generator.yaml

  # Print the changes as JSON
  flux diff ag my-app -o json`,
		ValidArgsFunction: complete.Names(a, k),
		RunE: func(cmd *cobra.Command, names []string) error {
			return a.Interruptible(cmd, func() error { return runGenerator(a, cmd, o, names) })
		},
	}
	fs := cmd.Flags()
	o.AddGenerator(fs)
	command.AddOutput(fs, &o.format, "print a report", "json", "yaml")
	buildflags.AddUntrusted(a, fs, &o.Untrusted)
	return cmd
}

func runGenerator(a *app.App, cmd *cobra.Command, o *generatorOptions, names []string) error {
	if len(names) != 1 {
		return hint.Errorf(cmd.CommandPath()+" NAME", "one %s name is required", generator.Kind)
	}
	namespace, err := a.Namespace(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	builder, err := o.Builder(a)
	if err != nil {
		return err
	}
	differences, err := artifacts.Compare(ctx, builder, namespace, names[0])
	if err != nil {
		return err
	}
	if err := show(a, o.format, differences); err != nil {
		return err
	}
	if len(differences) > 0 {
		return &clierr.ExitCodeError{Code: clierr.ExitFailed}
	}
	return nil
}

// show prints the differences.
func show(a *app.App, format string, differences []artifacts.Difference) error {
	switch {
	case format != "":
		return a.Encode(format, differences)
	case len(differences) == 0:
		a.UI.Success("no changes detected in the files of the artifacts")
		return nil
	}
	for _, d := range differences {
		if err := a.Printf("► %s %s\n", controllers.FluxID(generator.Artifact, d.Namespace, d.Name), d.Action); err != nil {
			return err
		}
		for _, f := range d.Files {
			if err := a.Printf("%s %s\n", f.Action.Sign(), f.Path); err != nil {
				return err
			}
		}
	}
	return nil
}
