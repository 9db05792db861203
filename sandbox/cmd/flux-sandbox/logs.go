package main

import (
	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/sandbox/internal/lifecycle"
	"github.com/fluxkit/flux/sandbox/internal/state"
)

func newLogsCommand(folder func() (state.Folder, error)) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs [PART|CONTROLLER]",
		Short: "Show the logs of a component or controller",
		Long: `Print the output of a sandbox component, or of the newest pod of a controller.
Without a name, print the log of the supervisor. "flux-sandbox status" lists the
names.`,
		Example: `  # Show the logs of the API server
  flux-sandbox logs kube-apiserver

  # Follow a controller
  flux-sandbox logs kustomize-controller -f`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := folder()
			if err != nil {
				return err
			}
			name := "supervisor"
			if len(args) == 1 {
				name = args[0]
			}
			return lifecycle.Logs(cmd.Context(), f, name, follow, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "stream new lines until interrupted")
	return cmd
}
