package plugin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/config"
	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/plugin"
	"github.com/fluxkit/flux/internal/web/download"
)

// installed returns the Finder for the environment of this process.
func installed(a *app.App) plugin.Finder {
	return plugin.Finder{Folder: folder(a), Path: a.Env("PATH"), Reserved: func(name string) bool { return ReservedCommand(a, name) }}
}

// folder returns the plugin folder, or "" without a home directory.
func folder(a *app.App) string {
	if folder := a.Env(PluginFolderVariable); folder != "" {
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

// ownPrograms are the programs of flux that are named like plugins.
func ownPrograms() []string { return []string{helper.Program, helper.Sandbox} }

// ReservedCommand reports whether a name is that of a built-in command or of a
// program of flux.
func ReservedCommand(a *app.App, name string) bool {
	for _, own := range ownPrograms() {
		if "flux-"+name == own {
			return true
		}
	}
	return slices.Contains(a.Commands, name) || name == "help" || name == "completion" || strings.HasPrefix(name, "__complete")
}

func pluginCatalog(a *app.App) (*plugin.Catalog, error) {
	address := a.Env(pluginCatalogVariable)
	if address == "" {
		address = plugin.DefaultCatalog
	}
	catalog, err := plugin.OpenCatalog(address, "flux/"+a.Build.Version)
	if err != nil {
		return nil, hint.Errorf("set "+pluginCatalogVariable+" to an https URL or a directory", "%s: %w", pluginCatalogVariable, err)
	}
	return catalog, nil
}

// pluginError adds the remedy to an error of the plugin package.
func pluginError(err error) error {
	if remedy := pluginHint(err); remedy != "" {
		return &hint.Error{Err: err, Hint: remedy}
	}
	return err
}

// pluginHint returns the remedy for an error, or "".
func pluginHint(err error) string {
	var unknown *plugin.UnknownError
	var version *plugin.VersionError
	var platform *plugin.PlatformError
	var checksum *plugin.ChecksumError
	var foreign *plugin.ForeignError
	var absent *plugin.NotInstalledError
	var busy *plugin.BusyError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return ""
	case errors.As(err, &unknown):
		return unknownPluginHint(unknown)
	case errors.As(err, &version) && len(version.Known) > 0:
		return "available versions: " + strings.Join(version.Known[:min(versionsShown, len(version.Known))], ", ")
	case errors.As(err, &version):
		return fmt.Sprintf("take a version or the digest from the manifest of the plugin, or run 'flux plugin install %s' for the latest version", version.Name)
	case errors.As(err, &platform) && platform.Digest == "":
		return "available for: " + strings.Join(platform.Offered, ", ")
	case errors.As(err, &checksum):
		return "nothing was installed: run the command again, and report it to the plugin's maintainers if the checksum differs again"
	case errors.As(err, &foreign):
		return "flux does not change this file: move or remove it yourself"
	case errors.As(err, &absent):
		return "'flux plugin list' lists the installed plugins"
	case errors.As(err, &busy):
		return "run the command again when it has finished"
	case errors.Is(err, fs.ErrPermission):
		return "set " + PluginFolderVariable + " to a writable directory"
	}
	return fetchHint(err)
}

func unknownPluginHint(e *plugin.UnknownError) string {
	near := hint.Nearest{Word: e.Name}
	for _, known := range e.Known {
		near.Try("flux plugin install "+known, []string{known})
	}
	if meant := near.Best(); meant != "" {
		return fmt.Sprintf("did you mean '%s'?", meant)
	}
	return "'flux plugin search' lists the plugins"
}

// fetchHint returns the remedy for a failed request.
func fetchHint(err error) string {
	var catalog *plugin.CatalogError
	var broken *plugin.DownloadError
	var status *download.StatusError
	var untrusted *tls.CertificateVerificationError
	isCatalog := errors.As(err, &catalog)
	switch {
	case !isCatalog && !errors.As(err, &broken):
		return ""
	case isCatalog && catalog.Invalid:
		return "check " + pluginCatalogVariable + ", or report it to the maintainers of the catalog"
	case errors.As(err, &untrusted):
		return "the server's certificate is not trusted: set SSL_CERT_FILE to a file with its certificate authority"
	case errors.As(err, &status) && !isCatalog:
		return "report it to the maintainers of the catalog, or install another version"
	case errors.As(err, &status):
		return "check " + pluginCatalogVariable
	}
	return "check the network connection and HTTPS_PROXY, or set " + pluginCatalogVariable + " to a mirror or a directory"
}
