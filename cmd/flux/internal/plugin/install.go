package plugin

import (
	"context"
	"errors"
	"runtime"

	"github.com/Masterminds/semver/v3"
	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/plugin"
)

func newPluginInstall(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "install <name>[@<version>|@<digest>]",
		Short: "Install a plugin from the catalog",
		Long: `Download a plugin, verify its SHA-256 checksum and install it in the plugin
directory. Without a version or digest, the latest version is installed. An
installed version is replaced.`,
		Example: `  # Install the latest version
  flux plugin install operator

  # Install a version
  flux plugin install operator@0.46.0

  # Install a plugin by digest
  flux plugin install operator@sha256:febc30806053d028f9e10f5572966ed28ede07c4912ff998936f724d1f693909

  # Install from a directory, without access to the internet
  FLUXCD_PLUGIN_CATALOG=/mnt/catalog flux plugin install operator`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return hint.Errorf(cmd.CommandPath()+" operator", "exactly one plugin name is required")
			}
			return nil
		},
		ValidArgsFunction: completeCatalog(a),
		RunE:              func(cmd *cobra.Command, args []string) error { return installPlugin(a, cmd, args[0]) },
	}
}

func installPlugin(a *app.App, cmd *cobra.Command, word string) error {
	name, ref, err := plugin.ParseRef(word)
	if err != nil {
		return hint.Errorf("flux plugin install NAME[@VERSION]", "%w", err)
	}
	if ReservedCommand(a, name) {
		return hint.Errorf("run 'flux "+name+" --help'", "plugin %q cannot be installed: 'flux %s' is a built-in command", name, name)
	}
	folder, err := changePlugins(a)
	if err != nil {
		return err
	}
	catalog, err := pluginCatalog(a)
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	release, err := releaseOf(ctx, catalog, name, ref)
	if err == nil {
		err = putPlugin(ctx, a, folder, catalog, release)
	}
	if err != nil {
		return pluginError(err)
	}
	a.UI.Success("installed %s v%s", name, release.Version)
	return nil
}

func releaseOf(ctx context.Context, catalog *plugin.Catalog, name, ref string) (*plugin.Release, error) {
	manifest, err := catalog.Manifest(ctx, name)
	if err != nil {
		return nil, err
	}
	return manifest.Release(ref)
}

func putPlugin(ctx context.Context, a *app.App, folder plugin.Directory, catalog *plugin.Catalog, r *plugin.Release) error {
	a.UI.Action("installing %s v%s for %s/%s", r.Name, r.Version, runtime.GOOS, runtime.GOARCH)
	progress := a.UI.Progress(a.Now, "downloading %s v%s", r.Name, r.Version)
	defer progress.Done()
	folder.Downloaded = progress.Bytes
	return folder.Install(ctx, catalog, r)
}

// changePlugins returns the plugin directory for commands that change it.
func changePlugins(a *app.App) (plugin.Directory, error) {
	path := pluginDirectory(a)
	if path == "" {
		return plugin.Directory{}, hint.Errorf("set "+plugin.FolderVariable+" to a directory", "cannot determine the plugin directory: no home directory")
	}
	return plugin.Directory{Path: path, Now: a.Now}, nil
}

func newPluginUninstall(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:     "uninstall <name>",
		Aliases: []string{"delete"},
		Short:   "Uninstall a plugin",
		Long: `Remove a plugin and its receipt from the plugin directory. Programs that were
not installed by "flux plugin install" are not removed.`,
		Example: `  # Uninstall a plugin
  flux plugin uninstall operator`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return hint.Errorf(cmd.CommandPath()+" operator", "exactly one plugin name is required")
			}
			return nil
		},
		ValidArgsFunction: completeInstalled(a),
		RunE: func(_ *cobra.Command, args []string) error {
			folder, err := changePlugins(a)
			if err != nil {
				return err
			}
			if err := folder.Uninstall(args[0]); err != nil {
				return pluginError(err)
			}
			a.UI.Success("uninstalled %s", args[0])
			return nil
		},
	}
}

func newPluginUpdate(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:     "update [name]",
		Aliases: []string{"upgrade"},
		Short:   "Update installed plugins",
		Long: `Update a plugin, or all plugins that "flux plugin install" installed, to the
latest versions in the catalog. If an update fails, the installed version is kept.`,
		Example: `  # Update all plugins
  flux plugin update

  # Update a plugin
  flux plugin update operator`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeInstalled(a),
		RunE:              func(cmd *cobra.Command, args []string) error { return updatePlugins(a, cmd, args) },
	}
}

func updatePlugins(a *app.App, cmd *cobra.Command, args []string) error {
	folder, err := changePlugins(a)
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	plugins, err := updatable(ctx, a, folder, args)
	if err != nil {
		return pluginError(err)
	}
	if len(plugins) == 0 {
		a.UI.Line("no plugins to update")
		return nil
	}
	catalog, err := pluginCatalog(a)
	if err != nil {
		return err
	}
	var failed error
	for _, p := range plugins {
		err := updatePlugin(ctx, a, folder, catalog, p)
		var unreadable *plugin.CatalogError
		switch {
		case err == nil:
		case ctx.Err() != nil || errors.As(err, &unreadable) && !unreadable.Invalid:
			return pluginError(err) // further updates would fail for the same reason
		default:
			a.Report(pluginError(err))
			failed = clierr.ErrReported
		}
	}
	return failed
}

// updatable returns the installed plugins, or the named one. Plugins that were not installed by
// flux are reported and skipped.
func updatable(ctx context.Context, a *app.App, folder plugin.Directory, args []string) ([]plugin.Plugin, error) {
	finder := installed(a)
	finder.Path = ""
	if len(args) == 0 {
		all, _ := finder.All(ctx)
		var managed []plugin.Plugin
		for _, p := range all {
			if p.Receipt == nil {
				a.UI.Warning("skipping %s: not installed by flux plugin install", p.Name)
				continue
			}
			managed = append(managed, p)
		}
		return managed, context.Cause(ctx)
	}
	p, ok := finder.Find(args[0])
	if !ok {
		return nil, plugin.NotInstalledError(args[0], folder.Path)
	}
	if p.Receipt == nil {
		return nil, plugin.ForeignError(p.Path)
	}
	return []plugin.Plugin{p}, nil
}

func updatePlugin(ctx context.Context, a *app.App, folder plugin.Directory, catalog *plugin.Catalog, p plugin.Plugin) error {
	release, err := releaseOf(ctx, catalog, p.Name, "")
	if err != nil {
		return err
	}
	if !isOlder(p.Receipt.Version, release.Version) {
		a.UI.Success("%s already up to date (v%s)", p.Name, p.Receipt.Version)
		return nil
	}
	if err := putPlugin(ctx, a, folder, catalog, release); err != nil {
		return err
	}
	a.UI.Success("updated %s v%s → v%s", p.Name, p.Receipt.Version, release.Version)
	return nil
}

// isOlder reports whether an installed version is older than another one. Versions that are not
// semver are compared for equality.
func isOlder(installed, latest string) bool {
	a, err := semver.StrictNewVersion(installed)
	if err != nil {
		return installed != latest
	}
	b, err := semver.StrictNewVersion(latest)
	return err == nil && a.LessThan(b)
}

// completeInstalled completes the plugins that flux has installed.
func completeInstalled(a *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(given) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		finder := installed(a)
		finder.Path = ""
		all, _ := finder.All(cmd.Context())
		var names []string
		for _, p := range all {
			if p.Receipt != nil {
				names = append(names, p.Name)
			}
		}
		return complete.Matching(names, nil, prefix), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeCatalog completes the plugins of the catalog, if it responds in
// time.
func completeCatalog(a *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, prefix string) ([]string, cobra.ShellCompDirective) {
		catalog, err := pluginCatalog(a)
		if err != nil || len(given) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), a.BriefTimeout)
		defer cancel()
		index, err := catalog.Index(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, e := range index.Plugins {
			names = append(names, e.Name)
		}
		return complete.Matching(names, nil, prefix), cobra.ShellCompDirectiveNoFileComp
	}
}
