// Command flux-sandbox runs a real Kubernetes API, the real Flux controllers, a
// Git server and an OCI registry on this machine, without containers.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/sandbox/internal/part"
	"github.com/fluxkit/flux/sandbox/internal/state"
	"github.com/fluxkit/flux/sandbox/internal/supervisor"
)

// exitInterrupted is what a shell shows for a program that Ctrl-C ended.
const exitInterrupted = 130

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	ctx := context.Background()
	// Kubernetes' own programs take signals themselves, and only once a process.
	if len(args) < 2 || args[0] != "part" || !part.OwnsSignals(args[1]) {
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
	}
	root := newRootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var quiet silent
	switch {
	case err == nil:
		return 0
	case errors.As(err, &quiet):
		return 1
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "✗ interrupted")
		return exitInterrupted
	}
	fmt.Fprintln(os.Stderr, "✗", err)
	return 1
}

// silent is a failure that the command's output has told already.
type silent struct{ error }

func newRootCommand() *cobra.Command {
	var dir string
	root := &cobra.Command{
		Use:   "flux-sandbox",
		Short: "A real Kubernetes API and the real Flux controllers, without containers",
		Long: `flux-sandbox runs etcd, the Kubernetes API server, its controller manager and scheduler, a fake kubelet, a Git
server, an OCI registry and the Flux controllers as plain processes on this machine. Everything listens on loopback only,
and all state lies in one folder, so several sandboxes can be up side by side.`,
		Example: `  # Start a sandbox and use it
  flux-sandbox up
  eval "$(flux-sandbox env)"
  kubectl get nodes

  # Stop it and forget all it held
  flux-sandbox down --purge`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().StringVar(&dir, "dir", defaultDir(), "folder that holds the sandbox's state")
	// Kubernetes' libraries register a flag for every program that links them.
	if version := pflag.CommandLine.Lookup("version"); version != nil {
		version.Hidden = true
	}
	folder := func() (state.Folder, error) { return state.Open(dir) }
	root.AddCommand(
		newUpCommand(folder), newDownCommand(folder), newStatusCommand(folder), newEnvCommand(folder),
		newLogsCommand(folder), newPartCommand(folder),
		newGitCommand(func() string { return dir }),
	)
	return root
}

// defaultDir is where the XDG rules put state, unless the environment says.
func defaultDir() string {
	if dir := os.Getenv("FLUX_SANDBOX_DIR"); dir != "" {
		return dir
	}
	base := os.Getenv("XDG_STATE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			home = os.TempDir()
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "flux-sandbox")
}

// executable is this program's own path: what a symbolic link to it points to
// does not matter, its neighbours do.
func executable() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this program's own path: %w", err)
	}
	return path, nil
}

// newPartCommand is how the supervisor runs this program as the parts.
func newPartCommand(folder func() (state.Folder, error)) *cobra.Command {
	return &cobra.Command{
		Use:     "part NAME",
		Short:   "Run one part of the sandbox",
		Long:    "Part runs one process of a sandbox. The supervisor calls it; there is no need to do so by hand.",
		Example: "  flux-sandbox part etcd --dir DIR",
		Hidden:  true,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := folder()
			if err != nil {
				return err
			}
			if args[0] != "supervisor" {
				return part.Run(cmd.Context(), args[0], f)
			}
			binary, err := executable()
			if err != nil {
				return err
			}
			return supervisor.Run(cmd.Context(), f, binary, cmd.ErrOrStderr())
		},
	}
}
