package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/sandbox/internal/fault"
	"github.com/fluxkit/flux/sandbox/internal/lifecycle"
	"github.com/fluxkit/flux/sandbox/internal/part"
	"github.com/fluxkit/flux/sandbox/internal/state"
)

func newFaultCommand(folder func() (state.Folder, error)) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fault",
		Short: "Make the Git server or the registry fail",
		Long: `Make requests to the Git server over HTTP and HTTPS, or to the registry, fail.
Pushes to the Git server are not affected. Changes take effect immediately.`,
		Example: `  # Make the registry respond with 429 for 20 seconds
  flux-sandbox fault set registry --status=429 --for=20s`,
	}
	cmd.AddCommand(newFaultSetCommand(folder), newFaultClearCommand(folder))
	return cmd
}

// rootOf returns the root directory of a server.
func rootOf(folder func() (state.Folder, error), server string) (string, error) {
	f, err := folder()
	if err != nil {
		return "", err
	}
	if !slices.Contains([]string{part.Git, part.Registry}, server) {
		return "", fmt.Errorf("unknown server %q: must be %s or %s", server, part.Git, part.Registry)
	}
	if !f.Exists() {
		return "", fmt.Errorf("no sandbox in %s: start one with flux-sandbox up", f)
	}
	return f.Path(server), nil
}

func newFaultSetCommand(folder func() (state.Folder, error)) *cobra.Command {
	var f fault.Fault
	var during time.Duration
	cmd := &cobra.Command{
		Use:   "set git|registry",
		Short: "Start a fault",
		Long:  "Start a fault for a server, replacing its current fault.",
		Example: `  # Close all connections to the Git server
  flux-sandbox fault set git --down

  # Reject all credentials
  flux-sandbox fault set git --status=401`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			root, err := rootOf(folder, args[0])
			if err != nil {
				return err
			}
			if f.Status != 0 && (f.Status < 400 || f.Status > 599) {
				return errors.New("--status must be from 400 to 599")
			}
			if during > 0 {
				f.Until = time.Now().Add(during)
			}
			return fault.Set(root, f)
		},
	}
	cmd.Flags().BoolVar(&f.Down, "down", false, "close connections without a response")
	cmd.Flags().IntVar(&f.Status, "status", 0, "HTTP status of all responses")
	cmd.Flags().DurationVar(&f.Delay, "delay", 0, "delay of each response")
	cmd.Flags().DurationVar(&during, "for", 0, "duration of the fault (default: until it is cleared)")
	cmd.MarkFlagsMutuallyExclusive("down", "status", "delay")
	cmd.MarkFlagsOneRequired("down", "status", "delay")
	return cmd
}

func newFaultClearCommand(folder func() (state.Folder, error)) *cobra.Command {
	return &cobra.Command{
		Use:     "clear git|registry",
		Short:   "End a fault",
		Long:    "End the current fault of a server, if any.",
		Example: "  # Make the Git server respond normally again\n  flux-sandbox fault clear git",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			root, err := rootOf(folder, args[0])
			if err != nil {
				return err
			}
			return fault.Clear(root)
		},
	}
}

func newRestartCommand(folder func() (state.Folder, error)) *cobra.Command {
	return &cobra.Command{
		Use:     "restart kube-apiserver",
		Short:   "Restart the API server",
		Long:    "Stop the API server, start it again, and wait until it is ready. Clients are disconnected.",
		Example: "  # Restart the API server\n  flux-sandbox restart kube-apiserver",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := folder()
			if err != nil {
				return err
			}
			if args[0] != part.APIServer {
				return fmt.Errorf("%s cannot be restarted: only %s can", args[0], part.APIServer)
			}
			return lifecycle.RestartAPIServer(cmd.Context(), f)
		},
	}
}

func newReachCommand(folder func() (state.Folder, error)) *cobra.Command {
	return &cobra.Command{
		Use:   "reach 127.0.0.1:PORT",
		Short: "Make a local server available in an isolated sandbox",
		Long: `Allow the components of a sandbox started with --untrusted to connect to a
loopback address of this machine, and wait until it is reachable. Other addresses
remain unreachable.`,
		Example: "  # Allow the controllers to fetch charts from a local server\n  flux-sandbox reach 127.0.0.1:8879",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := folder()
			if err != nil {
				return err
			}
			return lifecycle.Reach(cmd.Context(), f, args[0])
		},
	}
}
