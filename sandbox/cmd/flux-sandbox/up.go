package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/sandbox/internal/controller"
	"github.com/fluxkit/flux/sandbox/internal/lifecycle"
	"github.com/fluxkit/flux/sandbox/internal/state"
)

func newUpCommand(folder func() (state.Folder, error)) *cobra.Command {
	choice, timeout := "all", 2*time.Minute
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the sandbox",
		Long: `Up starts the sandbox and returns when it is ready to use. What an earlier run kept (objects, repositories, ports) is
there again, also after a crash. Ctrl-C before it is ready stops everything again.

With --controllers a Flux controller runs as a real process for as long as a pod with its image is in the cluster; the
pods of controllers that are not named are simulated like any other.`,
		Example: `  # Start a sandbox with all Flux controllers
  flux-sandbox up

  # Start a control plane alone, in a folder of its own
  flux-sandbox up --dir /tmp/try --controllers=none`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := folder()
			if err != nil {
				return err
			}
			controllers, err := controller.Parse(choice)
			if err != nil {
				return err
			}
			binary, err := executable()
			if err != nil {
				return err
			}
			return lifecycle.Up(cmd.Context(), lifecycle.Options{
				Folder: f, Binary: binary, Controllers: controllers, Timeout: timeout, Progress: cmd.ErrOrStderr(),
			})
		},
	}
	cmd.Flags().StringVar(&choice, "controllers", choice, "controllers that run as real processes: all, none, or names between commas")
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "how long to wait until the sandbox is ready")
	return cmd
}

func newDownCommand(folder func() (state.Folder, error)) *cobra.Command {
	purge, timeout := false, 2*time.Minute
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop the sandbox",
		Long: `Down stops every process of the sandbox and returns when they are gone. What the sandbox held stays for the next up,
unless --purge is given. A sandbox that is not up is no failure.`,
		Example: `  # Stop the sandbox and keep its data
  flux-sandbox down

  # Stop it and remove its folder
  flux-sandbox down --purge`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := folder()
			if err != nil {
				return err
			}
			ctx, cancel := contextWithTimeout(cmd, timeout)
			defer cancel()
			return lifecycle.Down(ctx, f, purge, cmd.ErrOrStderr())
		},
	}
	cmd.Flags().BoolVar(&purge, "purge", false, "remove the sandbox's folder too")
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "how long to wait until every process is gone")
	return cmd
}
