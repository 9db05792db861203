// Package record implements the record command.
package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube/recording"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/internal/terminal/ui"
	"github.com/fluxkit/flux/pkg/record"
)

type options struct {
	output        string
	allNamespaces bool
	tail          int
}

// defaultTail is the default of --tail.
const defaultTail = 10_000

// NewCommand returns the record command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "record",
		Short: "Record the state of Flux to a file without secrets",
		Long: `Record the cluster state that the read-only flux commands require to one file:
Flux resources, the objects in their inventories, workloads and pods, events,
CRDs, leases, and recent logs of the controllers and of failing containers.
Attach the file to a bug report, or serve it with "flux replay".

Secrets:
  The data of Secrets and ConfigMaps is not read. Values of HelmReleases,
  substituted variables, patches, environment variables, the specs of custom
  resources, credentials in URLs and arguments, private keys, and the paths of
  Providers and Receivers are masked. Names, labels, images, messages and logs
  are not masked: review the file before you publish it (gunzip -c FILE).

Output:
  Objects that cannot be read are listed, and marked as unknown in the file.
  docs/recording.md describes the format.`,
		Annotations: command.Exits{clierr.ExitFailed: "failure, or an object could not be recorded; the file contains the rest"}.Annotations(),
		Example: `  # Record the cluster
  flux record -o cluster.flux.gz

  # Record one namespace, and the namespace of the controllers
  flux record -n apps -o apps.flux.gz

  # Record on another machine, and replay locally
  ssh bastion flux record > cluster.flux.gz
  flux replay cluster.flux.gz -- flux why`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(a, cmd, o) },
	}
	fs := cmd.Flags()
	fs.StringVarP(&o.output, "output", "o", "-", "path of the file, '-' for standard output")
	fs.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "record all namespaces, the default without -n")
	fs.IntVar(&o.tail, "tail", defaultTail, "maximum number of recent log lines of each controller")
	_ = cmd.MarkFlagFilename("output", "gz") // fails only for unknown flags
	return cmd
}

func run(a *app.App, cmd *cobra.Command, o *options) error {
	if o.tail < 0 {
		return fmt.Errorf("invalid --tail %d: must not be negative", o.tail)
	}
	if o.output == "-" && ui.IsTerminal(a.Out) {
		return hint.Errorf("redirect standard output, or write a file with -o FILE", "the recording is not written to a terminal")
	}
	client, namespace, err := a.Connect(cmd)
	if err != nil {
		return err
	}
	if !cmd.Flags().Changed("namespace") || o.allNamespaces {
		namespace = ""
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	line := a.UI.Progress(a.Now, "recording")
	defer line.Done()
	r := record.Recorder{
		Client: client, Home: a.FluxNamespace(), Namespace: namespace, Now: a.Now(), Flux: a.Build.Version, Lines: o.tail,
		Reading: func(what string) { line.Set("recording %s", what) },
		Missed:  func(what string, err error) { a.UI.Failure("%s: %v", what, err) },
	}
	end, err := write(ctx, a, r, o.output)
	if err != nil {
		return err
	}
	line.Done()
	if o.output != "-" {
		a.UI.Success("recorded %s to %s", output.Amount(end.Objects, "object"), o.output)
	}
	if len(end.Unknown) > 0 {
		a.UI.Failure("the recording is not complete: %s could not be read", output.Amount(len(end.Unknown), "part"))
		return &clierr.ExitCodeError{Code: clierr.ExitFailed}
	}
	return nil
}

// write writes the recording to standard output, or to a file that only the user can read. An
// incomplete file is removed.
func write(ctx context.Context, a *app.App, r record.Recorder, path string) (end recording.End, err error) {
	if path == "-" {
		return r.Write(ctx, app.Unmasked(a.Out))
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".flux-recording-*") // mode 0600
	if err != nil {
		return end, fmt.Errorf("writing %s: %w", path, unwrapped(err))
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name()) // the first error is reported
		}
	}()
	end, err = r.Write(ctx, io.Writer(file))
	if err = errors.Join(err, file.Close()); err != nil {
		return end, err
	}
	return end, os.Rename(file.Name(), path)
}

// unwrapped returns an error without the name of the temporary file.
func unwrapped(err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
