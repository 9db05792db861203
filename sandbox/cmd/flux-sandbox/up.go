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
		Long: `Up starts the sandbox and returns when it is ready. Objects, repositories and ports of an earlier run are kept, also
		after a crash. Ctrl-C before the sandbox is ready stops everything that was started.

		A Flux controller selected by --controllers runs as a real process while a pod with its image is in the cluster; the pods
		of other controllers are simulated like any other pod.`,
		Example: `  # Start a sandbox with all Flux controllers
  flux-sandbox up

  # Start only a control plane, in a separate folder
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
	cmd.Flags().StringVar(&choice, "controllers", choice, "controllers that run as real processes: all, none, or a comma-separated list of names")
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "maximum time to wait until the sandbox is ready")
	return cmd
}

func newDownCommand(folder func() (state.Folder, error)) *cobra.Command {
	purge, timeout := false, 2*time.Minute
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop the sandbox",
		Long: `Down stops every process of the sandbox and returns when all have exited. The data is kept for the next up, unless
		--purge is given. Down succeeds when the sandbox is not up.`,
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
	cmd.Flags().BoolVar(&purge, "purge", false, "also delete the folder of the sandbox")
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "maximum time to wait until every process has exited")
	return cmd
}
