// Package replay implements the replay command.
package replay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/replay"
)

// NewCommand returns the replay command.
func NewCommand(a *app.App) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "replay FILE [-- COMMAND [ARG]...]",
		Short: "Serve a recording as a read-only Kubernetes API",
		Long: `Serve a recording of "flux record" as a read-only Kubernetes API on loopback,
and run a command with a kubeconfig for it. Without a command, the kubeconfig is
printed and the recording is served until Ctrl-C.

Output:
  Commands show the state, including ages, at the time of the recording.
  Requests for data that was not recorded fail, and never return "not found":
  the data of Secrets and ConfigMaps, artifact files, metrics, and objects
  that Flux does not apply. "flux why" therefore lists the drift of ready
  resources under "Could not check".`,
		Annotations: command.Exits{
			command.OtherExit: "the exit code of the command", clierr.ExitInterrupted: "interrupted, the normal end of a replay without a command",
		}.Annotations(),
		Example: `  # Explain what was not ready
  flux replay cluster.flux.gz -- flux why

  # Explore the recording in a shell
  flux replay cluster.flux.gz -- $SHELL

  # Serve the recording to other programs
  flux replay cluster.flux.gz`,
		Args: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			switch {
			case len(args) == 0 || dash == 0:
				return errors.New("the path to a recording is required")
			case dash < 0 && len(args) > 1, dash > 1:
				return hint.Errorf("write -- before the command: flux replay FILE -- COMMAND", "only one recording can be replayed at a time")
			case dash == 1 && len(args) == 1:
				return errors.New("a command is required after --")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return run(a, cmd, format, args[0], args[1:]) },
	}
	command.AddOutput(cmd.Flags(), &format, "print the path of the kubeconfig and the time of the recording", "json")
	return cmd
}

func run(a *app.App, cmd *cobra.Command, format, path string, words []string) (err error) {
	if format != "" && len(words) > 0 {
		return errors.New("--output and a command are mutually exclusive")
	}
	r, err := open(path)
	if err != nil {
		return err
	}
	server, kubeconfig, err := replay.Start(cmd.Context(), r, a.Now())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	folder, err := os.MkdirTemp("", "flux-replay-")
	if err != nil {
		return fmt.Errorf("creating a directory for the kubeconfig: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	config := filepath.Join(folder, "kubeconfig")
	if err := os.WriteFile(config, kubeconfig, 0o600); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	if len(r.Unknown) > 0 {
		a.UI.Warning("the recording is not complete: %s could not be read", output.Amount(len(r.Unknown), "part"))
		for _, what := range r.Unknown {
			a.UI.Line("  %s", what)
		}
	}
	if len(words) > 0 {
		return child(cmd.Context(), a, environment(a, config, r.Home), words)
	}
	if err := announce(a, format, config, r); err != nil {
		return err
	}
	a.Flush()
	<-cmd.Context().Done()
	return clierr.UntilInterrupted(cmd.Context(), context.Cause(cmd.Context()))
}

func open(path string) (*replay.Recording, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the recording: %w", err)
	}
	defer file.Close() //nolint:errcheck // it was read
	r, err := replay.Open(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// announcement is the JSON output.
type announcement struct {
	Kubeconfig string    `json:"kubeconfig"`
	Time       time.Time `json:"time"`
	Namespace  string    `json:"namespace"`
	Unknown    []string  `json:"unknown"`
}

func announce(a *app.App, format, config string, r *replay.Recording) error {
	if format != "" {
		return a.Encode(format, announcement{config, r.Time, r.Home, append([]string{}, r.Unknown...)})
	}
	a.UI.Action("serving the recording of %s, stop with Ctrl-C", r.Time.Format(time.RFC3339))
	text := "export KUBECONFIG=" + hint.Quote(config) + "\n"
	if r.Home != app.DefaultNamespace {
		text += "export FLUX_SYSTEM_NAMESPACE=" + hint.Quote(r.Home) + "\n"
	}
	return a.Print(text)
}

// environment returns the environment of the command: the kubeconfig, and no settings that select
// another cluster or another namespace.
func environment(a *app.App, config, home string) []string {
	env := slices.DeleteFunc(slices.Clone(a.Environ()), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{"KUBECONFIG", "FLUX_CONTEXT", "FLUX_SYSTEM_NAMESPACE"}, name)
	})
	return append(env, "KUBECONFIG="+config, "FLUX_SYSTEM_NAMESPACE="+home)
}

// child runs the command and returns its exit code.
func child(ctx context.Context, a *app.App, env, words []string) error {
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	c.Env = env
	c.Stdin, c.Stdout, c.Stderr = a.In, app.Unmasked(a.Out), app.Unmasked(a.Err)
	// On a terminal, the command receives Ctrl-C directly.
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	err := c.Run()
	var exited *exec.ExitError
	if errors.As(err, &exited) && exited.Exited() {
		return &clierr.ExitCodeError{Code: exited.ExitCode()}
	}
	if err != nil {
		return fmt.Errorf("running %s: %w", words[0], err)
	}
	return nil
}
