package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/sandbox/internal/controller"
	"github.com/fluxkit/flux/sandbox/internal/isolation"
	"github.com/fluxkit/flux/sandbox/internal/lifecycle"
	"github.com/fluxkit/flux/sandbox/internal/part"
	"github.com/fluxkit/flux/sandbox/internal/state"
)

// upOptions contains the flags of up.
type upOptions struct {
	controllers string
	flux        string
	timeout     time.Duration
	// untrusted and allowNetwork determine how this machine is isolated from the objects; namespace is the
	// namespace of Flux.
	untrusted, allowNetwork bool
	namespace               string
	// featureGates lists the feature gates of the API server, e.g. Name=true.
	featureGates string
	parent       int
}

func newUpCommand(folder func() (state.Folder, error)) *cobra.Command {
	o := upOptions{controllers: "all", timeout: 2 * time.Minute}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the sandbox",
		Long: `Start the sandbox and wait until it is ready. Objects, repositories and ports are
kept between runs, even after a crash. Pressing Ctrl-C before the sandbox is
ready stops all processes.

Controllers:
  A Flux controller selected with --controllers runs as a real process while the
  cluster contains a pod with its image. All other pods are simulated.

  --flux installs the CRDs, RBAC, arguments and network policies of an embedded
  Flux version. It runs flux, which must be in the directory of flux-sandbox or
  on PATH. Controllers that run at another version are reported.

Isolation:
  With --untrusted, the objects in the sandbox are untrusted: all components run
  in a network namespace without connections to other machines or to other
  programs on this machine, and the Git server and the registry require the
  credentials that "flux-sandbox env" prints.`,
		Example: `  # Start a sandbox with all Flux controllers
  flux-sandbox up

  # Start a sandbox with Flux 2.10 installed
  flux-sandbox up --flux=2.10

  # Start only a control plane, in a separate directory
  flux-sandbox up --dir /tmp/try --controllers=none`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := folder()
			if err != nil {
				return err
			}
			return o.run(cmd, f)
		},
	}
	cmd.Flags().StringVar(&o.controllers, "controllers", o.controllers, "controllers that run as real processes: all, none, or a comma-separated list of names")
	cmd.Flags().StringVar(&o.flux, "flux", "", "Flux version to install, e.g. 2.10.0 or 2.10 (default: none)")
	cmd.Flags().DurationVar(&o.timeout, "timeout", o.timeout, "maximum time to wait until the sandbox is ready, and then until Flux is installed")
	cmd.Flags().BoolVar(&o.untrusted, "untrusted", false, "treat the objects in the sandbox as untrusted, and isolate the sandbox from this machine")
	cmd.Flags().BoolVar(&o.allowNetwork, "allow-network", false, "with --untrusted: allow the controllers to connect to other machines and to all programs on this machine")
	cmd.Flags().StringVar(&o.namespace, "namespace", "", "namespace of the controllers that run as processes (default: any)")
	cmd.Flags().StringVar(&o.featureGates, "feature-gates", "", "feature gates of the API server, e.g. Name=true,Other=false")
	cmd.Flags().IntVar(&o.parent, "parent", 0, parentUsage)
	_ = cmd.Flags().MarkHidden("parent")                         // for programs
	_ = cmd.RegisterFlagCompletionFunc("flux", completeVersions) // fails only for unknown flags
	return cmd
}

func (o upOptions) run(cmd *cobra.Command, folder state.Folder) error {
	controllers, err := controller.Parse(o.controllers)
	if err != nil {
		return err
	}
	if err := part.CheckFeatureGates(o.featureGates); err != nil {
		return err
	}
	binary, err := executable()
	if err != nil {
		return err
	}
	mode := state.Mode{Untrusted: o.untrusted, Namespace: o.namespace, Isolated: o.untrusted && !o.allowNetwork, FeatureGates: o.featureGates}
	if mode.Isolated {
		if err := isolation.Check(cmd.Context(), binary); err != nil {
			return notIsolated{fmt.Errorf("isolating the sandbox: %w", err)}
		}
	}
	var parent *os.File
	if o.parent != 0 {
		parent = os.NewFile(uintptr(o.parent), "parent")
	}
	up := func() error {
		err := lifecycle.Up(cmd.Context(), lifecycle.Options{
			Folder: folder, Binary: binary, Controllers: controllers, Timeout: o.timeout, Progress: cmd.ErrOrStderr(),
			Mode: mode, Parent: parent,
		})
		return withPurge(err, folder)
	}
	if o.flux == "" {
		return up()
	}
	// An unknown version is reported before anything is started.
	f, err := findFlux(binary)
	if err != nil {
		return err
	}
	d, err := f.distribution(cmd.Context(), o.flux)
	if err != nil {
		return err
	}
	if err := up(); err != nil {
		return err
	}
	return f.install(cmd.Context(), d, folder, o.timeout, cmd.ErrOrStderr())
}

// withPurge adds the fix to the error of a sandbox that does not start with its existing data.
func withPurge(err error, folder state.Folder) error {
	var damaged *lifecycle.DataError
	if !errors.As(err, &damaged) {
		return err
	}
	return fmt.Errorf("%w\n  if the data of the previous run is damaged, remove it and start the sandbox again: flux sandbox down --purge --dir %s", err, quote(string(folder)))
}

func newDownCommand(folder func() (state.Folder, error)) *cobra.Command {
	purge, timeout := false, 2*time.Minute
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop the sandbox",
		Long: `Stop all processes of the sandbox and wait until they have exited. The data is
kept for the next start unless --purge is set. The command succeeds if the
sandbox is not running.`,
		Example: `  # Stop the sandbox and keep its data
  flux-sandbox down

  # Stop it and remove its directory
  flux-sandbox down --purge`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := folder()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, fmt.Errorf("timed out after %s", timeout))
			defer cancel()
			return lifecycle.Down(ctx, f, purge, cmd.ErrOrStderr())
		},
	}
	cmd.Flags().BoolVar(&purge, "purge", false, "also delete the directory of the sandbox")
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "maximum time to wait until every process has exited")
	return cmd
}
