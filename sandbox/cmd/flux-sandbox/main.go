// Command flux-sandbox runs a real Kubernetes API, the real Flux controllers, a
// Git server and an OCI registry on this machine, without containers.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/sandbox/internal/gitcommand"
	"github.com/fluxkit/flux/sandbox/internal/isolation"
	"github.com/fluxkit/flux/sandbox/internal/part"
	"github.com/fluxkit/flux/sandbox/internal/state"
	"github.com/fluxkit/flux/sandbox/internal/supervisor"
)

// exitNotIsolated is the exit code of up if this machine does not support network namespaces.
const exitNotIsolated = 4

// exitInterrupted is the exit code that shells use for a program terminated by SIGINT.
const exitInterrupted = 130

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	ctx := context.Background()
	// The Kubernetes programs install signal handlers themselves, which works only once per process.
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
	if errors.As(err, &notIsolated{}) {
		return exitNotIsolated
	}
	return 1
}

// notIsolated is the error if this machine does not support network namespaces.
type notIsolated struct{ error }

// silent is an error that the output of the command has already reported.
type silent struct{ error }

func newRootCommand() *cobra.Command {
	var dir string
	root := &cobra.Command{
		Use:   "flux-sandbox",
		Short: "A real Kubernetes API and the real Flux controllers, without containers",
		Long: `Run etcd, the Kubernetes API server, its controller manager and scheduler, a
fake kubelet, a Git server, an OCI registry and the Flux controllers as plain
processes on this machine. All servers listen on loopback addresses only. The
state is stored in one directory, so several sandboxes can run at the same time.`,
		Example: `  # Start a sandbox and use it
  flux-sandbox up
  eval "$(flux-sandbox env)"
  kubectl get nodes

  # Stop it and delete its data
  flux-sandbox down --purge`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().StringVar(&dir, "dir", defaultDir(), "directory with the state of the sandbox")
	// The Kubernetes libraries register this flag in every program that links them.
	if version := pflag.CommandLine.Lookup("version"); version != nil {
		version.Hidden = true
	}
	folder := func() (state.Folder, error) { return state.Open(dir) }
	root.AddCommand(
		newUpCommand(folder), newDownCommand(folder), newStatusCommand(folder), newEnvCommand(folder),
		newLogsCommand(folder), newPartCommand(folder),
		newFaultCommand(folder), newRestartCommand(folder), newReachCommand(folder),
		gitcommand.New(func() string { return dir }),
	)
	return root
}

// defaultDir returns $FLUX_SANDBOX_DIR, or the default state directory of the XDG specification.
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

// executable returns the path of this program. Symbolic links are not resolved:
// kubectl and controllers are looked up next to the link.
func executable() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this program's own path: %w", err)
	}
	return path, nil
}

// newPartCommand returns the command with which the supervisor runs this program as a component.
func newPartCommand(folder func() (state.Folder, error)) *cobra.Command {
	parent := 0
	cmd := &cobra.Command{
		Use:     "part NAME",
		Short:   "Run a sandbox component",
		Long:    "Run a single process of a sandbox. Only the supervisor uses this command.",
		Example: "  flux-sandbox part etcd --dir DIR",
		Hidden:  true,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := folder()
			if err != nil {
				return err
			}
			switch args[0] {
			case isolation.Command:
				return isolation.Try()
			case "supervisor":
				binary, err := executable()
				if err != nil {
					return err
				}
				return supervisor.Run(cmd.Context(), f, binary, inherited(parent), cmd.ErrOrStderr())
			}
			return part.Run(cmd.Context(), args[0], f)
		},
	}
	cmd.Flags().IntVar(&parent, "parent", 0, parentUsage)
	return cmd
}

const parentUsage = "inherited file descriptor: the sandbox is stopped and removed when it reaches EOF"

// inherited returns the file of an inherited descriptor, or nil for 0. Components do not inherit it.
func inherited(number int) io.Reader {
	if number == 0 {
		return nil
	}
	syscall.CloseOnExec(number)
	return os.NewFile(uintptr(number), "parent")
}
