// Package plugin implements the plugin command and runs plugins.
package plugin

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/plugin"
	"github.com/fluxkit/flux/internal/terminal/output"
)

// NewCommand returns the plugin command.
func NewCommand(a *app.App) *cobra.Command {
	cmd := command.Group("plugin", "Manage plugins", newPluginInstall(a), newPluginList(a), newPluginSearch(a), newPluginUninstall(a), newPluginUpdate(a))
	cmd.Long = `Manage plugins: programs named flux-NAME that run as "flux NAME". A plugin
cannot replace a built-in command.

Directories:
  Plugins are installed in ~/.fluxcd/plugins, or the directory in
  FLUXCD_PLUGINS. Programs named flux-NAME in the directories of PATH are also
  plugins; the plugin directory takes precedence.

Arguments:
  Arguments after NAME are passed to the plugin. --kubeconfig, --context and
  --namespace before NAME are passed in its environment (KUBECONFIG), so that
  every Kubernetes client in the plugin uses them.

Catalog:
  By default, the catalog of the Flux project is used. FLUXCD_PLUGIN_CATALOG
  sets the URL or directory of another catalog.`
	cmd.Example = `  # Find, install and run a plugin
  flux plugin search
  flux plugin install operator
  flux operator --help

  # Run a plugin on another cluster
  flux --context=staging operator get instances`
	return cmd
}

func newPluginList(a *app.App) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List installed plugins with their versions and paths",
		Long: `List the plugins in the plugin directory and on PATH. The version of plugins
that were not installed by "flux plugin install" is shown as manual.`,
		Example: `  # List plugins
  flux plugin list

  # Print the versions and checksums of installed plugins
  flux plugin list -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return listPlugins(a, cmd, format) },
	}
	command.AddOutput(cmd.Flags(), &format, "output format", "json", "yaml")
	return cmd
}

// pluginEntry is a plugin in JSON and YAML.
type pluginEntry struct {
	Name string `json:"name"`
	Path string `json:"path"`
	// Version and the fields below are set for plugins that flux has installed.
	Version     string           `json:"version,omitempty"`
	InstalledAt string           `json:"installedAt,omitempty"`
	Platform    *plugin.Platform `json:"platform,omitempty"`
}

func listPlugins(a *app.App, cmd *cobra.Command, format string) error {
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	plugins, ignored := installed(a).All(ctx)
	for _, i := range ignored {
		a.UI.Warning("%s is ignored: %s", i.Path, i.Reason)
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	entries := []pluginEntry{} // [] instead of null
	table := output.Table{Headers: []string{"NAME", "VERSION", "PATH"}}
	for _, p := range plugins {
		e, shown := pluginEntry{Name: p.Name, Path: p.Path}, "manual"
		if r := p.Receipt; r != nil {
			e.Version, e.InstalledAt, e.Platform, shown = r.Version, r.InstalledAt, &r.Platform, r.Version
		}
		entries = append(entries, e)
		table.Rows = append(table.Rows, []string{p.Name, shown, p.Path})
	}
	return printPlugins(a, format, entries, table, "no plugins found")
}

// printPlugins prints a list in the selected format.
func printPlugins(a *app.App, format string, entries any, table output.Table, none string) error {
	if format != "" {
		return a.Encode(format, entries)
	}
	if len(table.Rows) == 0 {
		a.UI.Line("%s", none)
		return nil
	}
	return a.Table(table, app.TableStyle{})
}

func newPluginSearch(a *app.App) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "search [query]",
		Short: "List the plugins in the catalog",
		Long: `List the plugins in the catalog whose name or description contains the query,
or all of them.`,
		Example: `  # List all plugins
  flux plugin search

  # Search plugins by keyword
  flux plugin search schema`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return searchPlugins(a, cmd, format, args) },
	}
	command.AddOutput(cmd.Flags(), &format, "output format", "json", "yaml")
	return cmd
}

// catalogEntry is a plugin of the catalog in JSON and YAML.
type catalogEntry struct {
	plugin.Entry
	Installed string `json:"installed,omitempty"`
}

func searchPlugins(a *app.App, cmd *cobra.Command, format string, args []string) error {
	catalog, err := pluginCatalog(a)
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	index, err := catalog.Index(ctx)
	if err != nil {
		return pluginError(err)
	}
	query := strings.ToLower(strings.Join(args, ""))
	finder := installed(a)
	finder.Path = "" // plugins on PATH do not count as installed
	entries := []catalogEntry{}
	table := output.Table{Headers: []string{"NAME", "DESCRIPTION", "INSTALLED"}}
	for _, e := range index.Plugins {
		if !strings.Contains(strings.ToLower(e.Name+"\n"+e.Description), query) {
			continue
		}
		entry := catalogEntry{Entry: e}
		if p, ok := finder.Find(e.Name); ok && p.Receipt != nil {
			entry.Installed = p.Receipt.Version
		}
		entries = append(entries, entry)
		table.Rows = append(table.Rows, []string{e.Name, e.Description, entry.Installed})
	}
	none := "no plugins found in the catalog"
	if query != "" {
		none = fmt.Sprintf("no plugins match %q in the catalog", args[0])
	}
	return printPlugins(a, format, entries, table, none)
}
