package plugin

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/config"
	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/plugin"
)

// installed returns the Finder for the environment of this process.
func installed(a *app.App) plugin.Finder {
	return plugin.Finder{Folder: pluginDirectory(a), Path: a.Env("PATH"), Reserved: func(name string) bool { return ReservedCommand(a, name) }}
}

// pluginDirectory returns the plugin directory, or "" without a home directory.
func pluginDirectory(a *app.App) string {
	if folder := a.Env(plugin.FolderVariable); folder != "" {
		if absolute, err := filepath.Abs(folder); err == nil {
			return absolute
		}
		return folder
	}
	home := config.Home(a.Env)
	if !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Join(home, ".fluxcd", "plugins")
}

// ownPrograms are the flux binaries whose names look like plugins.
func ownPrograms() []string { return []string{helper.Program, helper.Sandbox} }

// ReservedCommand reports whether a name belongs to a built-in command or a flux binary.
func ReservedCommand(a *app.App, name string) bool {
	for _, own := range ownPrograms() {
		if "flux-"+name == own {
			return true
		}
	}
	return slices.Contains(a.Commands, name) || name == "help" || name == "completion" || strings.HasPrefix(name, "__complete")
}

func pluginCatalog(a *app.App) (*plugin.Catalog, error) {
	address := a.Env(plugin.CatalogVariable)
	if address == "" {
		address = plugin.DefaultCatalog
	}
	catalog, err := plugin.OpenCatalog(address, "flux/"+a.Build.Version)
	if err != nil {
		return nil, hint.Errorf("set "+plugin.CatalogVariable+" to an https URL or a directory", "%s: %w", plugin.CatalogVariable, err)
	}
	return catalog, nil
}

// pluginError adds a remedy if a directory is not writable.
func pluginError(err error) error {
	var known *hint.Error
	if errors.Is(err, fs.ErrPermission) && !errors.As(err, &known) {
		return hint.Errorf("set "+plugin.FolderVariable+" to a writable directory", "%w", err)
	}
	return err
}
