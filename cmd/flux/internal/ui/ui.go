// Package ui implements the ui command. The dashboard is a separate program, flux-ui, because its libraries
// would delay the start of every command.
package ui

import (
	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/ui/overview"
	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/plugin"
)

// NewCommand returns the ui command.
func NewCommand(a *app.App) *cobra.Command {
	return overview.NewCommand(a, func(cmd *cobra.Command, _ overview.Options) error { return start(a, cmd) })
}

// start runs flux-ui with the flags of the command line, the environment and the configuration file.
func start(a *app.App, cmd *cobra.Command) error {
	path, err := helper.Find(helper.Dashboard)
	if err != nil {
		return hint.Errorf("install it in the directory of flux, or print the overview: flux ui --once", "the dashboard requires flux-ui: %w", err)
	}
	args := append([]string{cmd.Name()}, overview.Flags(cmd.Flags(), nil)...)
	code, err := plugin.Run(plugin.Process{Path: path, Args: args, Env: a.Environ(), In: a.In, Out: app.Unmasked(a.Out), Err: app.Unmasked(a.Err)})
	if err == nil && code != clierr.ExitSuccess {
		err = &clierr.ExitCodeError{Code: code}
	}
	return err
}
