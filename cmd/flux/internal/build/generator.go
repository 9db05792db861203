package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/buildflags"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/build/generator"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository/artifacts"
)

func newGenerator(a *app.App) *cobra.Command {
	o, to := &options{}, ""
	k, _ := controllers.FindKind(generator.Kind)
	cmd := &cobra.Command{
		Use:     "artifact-generator [name]",
		Aliases: []string{"ag", "artifactgenerator"},
		Short:   "List or write the artifacts of an ArtifactGenerator",
		Long: `List the files in the ExternalArtifacts that an ArtifactGenerator produces, with
their sizes and digests. --output DIR writes the files of each artifact to
DIR/NAME, which must not exist.

Sources:
  A GitRepository whose clone is the current directory is read from the work
  tree, without files that spec.ignore or .sourceignore excludes. Other sources
  are read from directories in --local-sources or from the artifact in
  source-controller. With --dry-run, no cluster is accessed: the
  ArtifactGenerator, its sources and their generators are read from the work
  tree.`,
		Example: `  # List the files of the artifacts
  flux build artifact-generator my-app

  # Write the files to a directory
  flux build artifact-generator my-app --output ./artifacts

  # Build without cluster access
  flux build ag my-app --generator-file ./apps/generator.yaml --dry-run \
    --local-sources GitRepository/apps/my-app=./my-app

  # Print the paths of all files
  flux build ag my-app -o json | jq -r '.[].files[].path'`,
		ValidArgsFunction: complete.Names(a, k),
		RunE: func(cmd *cobra.Command, names []string) error {
			return a.Interruptible(cmd, func() error { return runGenerator(a, cmd, o, to, names) })
		},
	}
	fs := cmd.Flags()
	o.AddGenerator(fs)
	fs.BoolVar(&o.DryRun, "dry-run", false, "build without cluster access, from the files in the work tree")
	fs.StringVarP(&to, "output", "o", "", "directory to write the artifacts to, or json or yaml to print a report")
	buildflags.AddUntrusted(a, fs, &o.Untrusted)
	return cmd
}

// artifactReport lists the files of an artifact.
type artifactReport struct {
	Name      string           `json:"name"`
	Namespace string           `json:"namespace"`
	Files     []artifacts.File `json:"files"`
}

func runGenerator(a *app.App, cmd *cobra.Command, o *options, to string, names []string) error {
	if err := o.check(cmd, generator.Kind, names); err != nil {
		return err
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
	all, err := artifacts.Of(ctx, builder, namespace, names[0])
	if err != nil {
		return err
	}
	if to != "" && to != "json" && to != "yaml" {
		return writeArtifacts(ctx, a, all, to)
	}
	reports := []artifactReport{}
	for _, artifact := range all {
		files, err := artifacts.Files(ctx, artifact.Files)
		if err != nil {
			return err
		}
		reports = append(reports, artifactReport{artifact.ID.Name, artifact.ID.Namespace, files})
	}
	if to != "" {
		return a.Encode(to, reports)
	}
	return listArtifacts(a, reports)
}

func listArtifacts(a *app.App, reports []artifactReport) error {
	t := output.Table{Headers: []string{"ARTIFACT", "FILE", "SIZE", "DIGEST"}}
	for _, r := range reports {
		if len(r.Files) == 0 {
			a.UI.Warning("ExternalArtifact %s/%s has no files", r.Namespace, r.Name)
		}
		for _, f := range r.Files {
			t.Rows = append(t.Rows, []string{r.Name, f.Path, budget.Size(int64(f.Size)), controllers.Shorten(f.Digest)})
		}
	}
	return a.Table(t, app.TableStyle{})
}

// writeArtifacts writes each artifact to a new directory below dir. The directories are moved there when all
// artifacts are complete.
func writeArtifacts(ctx context.Context, a *app.App, all []artifacts.Artifact, dir string) (err error) {
	for _, artifact := range all {
		if _, err := os.Lstat(filepath.Join(dir, artifact.ID.Name)); err == nil {
			return hint.Errorf("remove it, or set another directory with --output", "%s exists", filepath.Join(dir, artifact.ID.Name))
		}
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	staged, err := os.MkdirTemp(dir, ".flux-build-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(staged)) }()
	for _, artifact := range all {
		if err := os.CopyFS(filepath.Join(staged, artifact.ID.Name), artifact.Files); err != nil {
			return fmt.Errorf("writing ExternalArtifact %s: %w", artifact.ID.Name, err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	for _, artifact := range all {
		if err := os.Rename(filepath.Join(staged, artifact.ID.Name), filepath.Join(dir, artifact.ID.Name)); err != nil {
			return err
		}
		a.UI.Success("%s written to %s", artifact.ID, filepath.Join(dir, artifact.ID.Name))
	}
	return nil
}
