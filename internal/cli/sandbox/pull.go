package sandbox

import (
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/sandboxrelease"
)

type pullOptions struct {
	version  string
	releases string
	format   string
}

// pulled is the answer in JSON and YAML.
type pulled struct {
	Version string `json:"version"`
	// Directory has flux-sandbox, kubectl and the controllers.
	Directory string `json:"directory"`
	// Downloaded is false if the sandbox was there already.
	Downloaded bool `json:"downloaded"`
}

func newPull(a *app.App) *cobra.Command {
	o := &pullOptions{}
	cmd := &cobra.Command{
		Use:   "pull",
		Short: "Download the programs of the sandbox",
		Long: `Download flux-sandbox, kubectl and the Flux controllers from the release of this
version of flux, for this platform, to the cache directory of the user. There,
'flux sandbox', 'flux test', 'flux bisect', 'flux rehearse' and 'flux validate
--sandbox' find them. Nothing is downloaded if they are there already.

The SHA-256 checksum that the release publishes is compared before the archive is
unpacked. If the download fails or is interrupted, nothing is left.

A build of flux that is not a release uses the newest downloaded sandbox.`,
		Example: `  # Download the sandbox of this version of flux
  flux sandbox pull

  # Download that of another release, for a flux that was built from a clone
  flux sandbox pull --version 1.0.0

  # Download from a mirror
  flux sandbox pull --releases https://mirror.example.com/flux/releases`,
		Args: cobra.NoArgs,
		// That of the parent is for flux-sandbox, which has its own configuration.
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error { return cmd.Root().PersistentPreRunE(cmd, args) },
		RunE:              func(cmd *cobra.Command, _ []string) error { return pull(a, cmd, o) },
	}
	cmd.Flags().StringVar(&o.version, "version", "", "version of the release (default: that of flux)")
	cmd.Flags().StringVar(&o.releases, "releases", sandboxrelease.Address, "URL of the releases, for a mirror")
	command.AddOutput(cmd.Flags(), &o.format, "format of the result", "json", "yaml")
	return cmd
}

func pull(a *app.App, cmd *cobra.Command, o *pullOptions) error {
	version := o.version
	if version == "" {
		version = a.Build.Version
		if !sandboxrelease.IsRelease(version) {
			return hint.Errorf("set a release with --version, or build the sandbox in a clone with 'make sandbox controllers'",
				"flux %s is not a release and has no sandbox", version)
		}
	}
	version, err := sandboxrelease.Normalize(version)
	if err != nil {
		return err
	}
	store, err := sandboxrelease.Open()
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	progress := a.UI.Progress(a.Now, "downloading the sandbox of flux %s", version)
	defer progress.Done()
	downloaded, err := store.Pull(ctx, sandboxrelease.Release{
		Version: version, Address: o.releases, Agent: "flux/" + a.Build.Version, Now: a.Now, Downloaded: progress.Bytes,
		Started: func() {
			a.UI.Action("downloading the sandbox of flux %s for %s/%s", version, runtime.GOOS, runtime.GOARCH)
		},
	})
	progress.Done()
	if err != nil {
		return err
	}
	return o.report(a, pulled{version, store.At(version), downloaded})
}

func (o *pullOptions) report(a *app.App, r pulled) error {
	if r.Downloaded {
		a.UI.Success("downloaded the sandbox of flux %s to %s", r.Version, r.Directory)
	} else {
		a.UI.Success("the sandbox of flux %s is already in %s", r.Version, r.Directory)
	}
	if used, err := app.FindSandbox(a); err == nil && filepath.Dir(used) != r.Directory {
		a.UI.Warning("flux %s uses %s instead", a.Build.Version, used)
	} else if err != nil {
		a.UI.Warning("flux %s does not use it: it uses the sandbox of its own version", a.Build.Version)
	}
	if o.format == "" {
		return nil
	}
	return a.Encode(o.format, r)
}
