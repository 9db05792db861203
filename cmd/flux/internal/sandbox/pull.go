package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/cachedir"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/release/sigstore"
	"github.com/fluxkit/flux/internal/sandbox/programs"
)

type pullOptions struct {
	version       string
	releases      string
	trustedRoot   string
	skipSignature bool
	prune         bool
	format        string
}

// pulled is the JSON and YAML output.
type pulled struct {
	Version string `json:"version"`
	// Directory has flux-sandbox, kubectl and the controllers.
	Directory string `json:"directory"`
	// Downloaded is false if the sandbox already existed.
	Downloaded bool `json:"downloaded"`
	// Verified is true if the signature of the sandbox was verified when it was downloaded.
	Verified bool `json:"verified"`
	// Removed are the versions that --prune has removed.
	Removed []string `json:"removed,omitempty"`
}

func newPull(a *app.App) *cobra.Command {
	o := &pullOptions{}
	cmd := &cobra.Command{
		Use:   "pull",
		Short: "Download the sandbox binaries",
		Annotations: command.Exits{
			clierr.ExitSuccess: "the sandbox was downloaded or already exists",
			clierr.ExitFailed:  "the download or the verification of the signature or checksum failed",
		}.Annotations(),
		Long: `Download the sandbox of this flux version and platform: flux-sandbox, kubectl
and the Flux controllers. The files are stored in the user's cache directory,
where flux sandbox, test, bisect, rehearse and validate --sandbox find them;
nothing is downloaded if they exist.

Signature:
  The release workflow signs the checksums. The signature is verified before the
  archive is downloaded: the certificate must be issued by Sigstore to the
  release workflow at the tag of the version, and the transparency log must
  contain the signature. The archive is unpacked after its SHA-256 checksum is
  verified. A failed or interrupted download leaves no files behind. Sandboxes
  without a verified signature are downloaded again. The trusted root of
  Sigstore is read from tuf-repo-cdn.sigstore.dev and cached for a day; without
  network access, set --trusted-root to a copy of trusted_root.json.

Versions:
  Builds of flux that are not releases use the newest downloaded sandbox.
  Sandboxes of other versions, about 700 MiB each, are kept until --prune
  removes those that are not running.`,
		Example: `  # Download the sandbox of this version of flux
  flux sandbox pull

  # Download the sandbox of a release, if flux was built from a clone
  flux sandbox pull --version 1.0.0

  # Download the sandbox of this version, and remove unused sandboxes of other versions
  flux sandbox pull --prune

  # Download from a mirror, and verify without access to the internet
  flux sandbox pull --releases https://mirror.example.com/flux/releases --trusted-root trusted_root.json`,
		Args: cobra.NoArgs,
		// The PersistentPreRunE of the parent is for flux-sandbox, which has its own configuration.
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error { return cmd.Root().PersistentPreRunE(cmd, args) },
		RunE:              func(cmd *cobra.Command, _ []string) error { return pull(a, cmd, o) },
	}
	cmd.Flags().StringVar(&o.version, "version", "", "release version (default: the version of flux)")
	cmd.Flags().StringVar(&o.releases, "releases", programs.Address, "URL of the releases, for a mirror")
	cmd.Flags().StringVar(&o.trustedRoot, "trusted-root", "", "path to trusted_root.json of Sigstore (default: read over the network)")
	cmd.Flags().BoolVar(&o.skipSignature, "insecure-skip-signature", false, "verify only the checksum, which does not authenticate the release")
	cmd.Flags().BoolVar(&o.prune, "prune", false, "remove downloaded sandboxes of other versions that are not running")
	command.AddOutput(cmd.Flags(), &o.format, "format of the result", "json", "yaml")
	return cmd
}

func pull(a *app.App, cmd *cobra.Command, o *pullOptions) error {
	if o.skipSignature && o.trustedRoot != "" {
		return errors.New("--trusted-root and --insecure-skip-signature are mutually exclusive")
	}
	version := o.version
	if version == "" {
		version = a.Build.Version
		if !programs.IsRelease(version) {
			return hint.Errorf("set a release with --version, or build the sandbox in a clone with 'make sandbox controllers'",
				"flux %s is not a release and has no sandbox", version)
		}
	}
	version, err := programs.Normalize(version)
	if err != nil {
		return err
	}
	store, err := programs.Open()
	if err != nil {
		return err
	}
	verify, err := o.verifier(a)
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	progress := a.UI.Progress(a.Now, "downloading the sandbox of flux %s", version)
	defer progress.Done()
	downloaded, err := store.Pull(ctx, programs.Release{
		Version: version, Address: o.releases, Agent: agent(a), Verify: verify, Now: a.Now, Downloaded: progress.Bytes,
		Started: func() {
			a.UI.Action("downloading the sandbox of flux %s for %s/%s", version, runtime.GOOS, runtime.GOARCH)
		},
	})
	progress.Done()
	if err != nil {
		return err
	}
	result := pulled{Version: version, Directory: store.At(version), Downloaded: downloaded, Verified: store.Verified(version)}
	report(a, result)
	if err := o.others(ctx, a, store, &result); err != nil || o.format == "" {
		return err
	}
	return a.Encode(o.format, result)
}

// others removes the sandboxes of other versions with --prune, and otherwise lists them after a
// download.
func (o *pullOptions) others(ctx context.Context, a *app.App, store programs.Store, result *pulled) error {
	keep := []string{result.Version, a.Build.Version}
	if !o.prune {
		versions, err := store.Others(keep...)
		if err == nil && result.Downloaded && len(versions) > 0 {
			a.UI.Action("sandboxes of other versions are kept (%s): remove them with 'flux sandbox pull --prune'", strings.Join(versions, ", "))
		}
		return err
	}
	removed, running, err := store.Prune(ctx, keep...)
	for _, version := range removed {
		a.UI.Success("removed the sandbox of flux %s", version)
	}
	for _, version := range running {
		a.UI.Warning("the sandbox of flux %s is running and was not removed: stop it with 'flux sandbox down'", version)
	}
	result.Removed = removed
	return err
}

func agent(a *app.App) string { return "flux/" + a.Build.Version }

// verifier returns the function that verifies the signature of the checksums, nil if it is skipped.
func (o *pullOptions) verifier(a *app.App) (func(ctx context.Context, file, bundle []byte, by sigstore.Identity) error, error) {
	if o.skipSignature {
		return nil, nil
	}
	var trusted []byte
	if o.trustedRoot != "" {
		file, err := os.Open(o.trustedRoot)
		if err != nil {
			return nil, fmt.Errorf("reading --trusted-root: %w", err)
		}
		defer func() { _ = file.Close() }() // read-only
		if trusted, err = budget.ReadAll(file, o.trustedRoot, "the file", sigstore.RootMax); err != nil {
			return nil, fmt.Errorf("reading --trusted-root: %w", err)
		}
		if len(trusted) == 0 {
			return nil, fmt.Errorf("reading --trusted-root: %s is empty", o.trustedRoot)
		}
	}
	cache, err := cachedir.User("sigstore")
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, file, bundle []byte, by sigstore.Identity) error {
		err := sigstore.Verify(ctx, a.Helpers, sigstore.Request{
			File: file, Bundle: bundle, Identity: by, TrustedRoot: trusted, Cache: string(cache), Agent: agent(a),
		})
		if err == nil {
			a.UI.Success("verified that %s signed the checksums", by.Subject)
		}
		return err
	}, nil
}

func report(a *app.App, r pulled) {
	if !r.Verified {
		a.UI.Warning("the signature of flux %s was not verified", r.Version)
	}
	if r.Downloaded {
		a.UI.Success("downloaded the sandbox of flux %s to %s", r.Version, r.Directory)
	} else {
		a.UI.Success("the sandbox of flux %s is already in %s", r.Version, r.Directory)
	}
	if used, err := programs.Find(a.Build.Version); err == nil && filepath.Dir(used) != r.Directory {
		a.UI.Warning("flux %s uses %s instead", a.Build.Version, used)
	} else if err != nil {
		a.UI.Warning("flux %s does not use this sandbox: it requires the sandbox of its own version", a.Build.Version)
	}
}
