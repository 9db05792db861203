package plugin

import (
	"fmt"
	"runtime"
	"strings"
)

// UnknownError is returned for a plugin that is not in the catalog.
type UnknownError struct {
	Name string
	// Known are the names of the plugins in the catalog, if it could be read.
	Known []string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("plugin %q not found in the catalog", e.Name)
}

// VersionError is returned for a version or digest that is not in the manifest.
type VersionError struct {
	Name, Ref string
	Known     []string
}

func (e *VersionError) Error() string {
	if e.Ref == "" {
		return fmt.Sprintf("plugin %q has no versions", e.Name)
	}
	return fmt.Sprintf("plugin %q has no version %q", e.Name, e.Ref)
}

// PlatformError is returned for a version that is not available for this platform.
type PlatformError struct {
	Name, Version, Digest string
	Offered               []string
}

func (e *PlatformError) Error() string {
	what := e.Name + " " + e.Version
	if e.Digest != "" {
		return fmt.Sprintf("digest %s belongs to %s for %s, not for %s/%s", e.Digest, what, strings.Join(e.Offered, ", "), runtime.GOOS, runtime.GOARCH)
	}
	return fmt.Sprintf("plugin %s is not available for %s/%s", what, runtime.GOOS, runtime.GOARCH)
}

// ChecksumError is returned for a download that does not match the checksum in the catalog.
type ChecksumError struct{ URL, Want, Got string }

func (e *ChecksumError) Error() string {
	return fmt.Sprintf("checksum of %s does not match: expected %s, got %s", e.URL, e.Want, e.Got)
}

// CatalogError is returned if the catalog cannot be read or is invalid.
type CatalogError struct {
	// Address is the address of the catalog, without credentials and query.
	Address string
	// Invalid reports whether the catalog was read but is not valid.
	Invalid bool
	Err     error
}

// DownloadError is returned if a download fails.
type DownloadError struct {
	Name, Version string
	Err           error
}

func (e *DownloadError) Error() string {
	return fmt.Sprintf("downloading %s %s: %v", e.Name, e.Version, e.Err)
}

func (e *DownloadError) Unwrap() error { return e.Err }

func (e *CatalogError) Error() string {
	if e.Invalid {
		return fmt.Sprintf("invalid plugin catalog: %s: %v", e.Address, e.Err)
	}
	return fmt.Sprintf("cannot read the plugin catalog %s: %v", e.Address, e.Err)
}

func (e *CatalogError) Unwrap() error { return e.Err }

// ForeignError is returned for a program in the plugin folder that was not installed by flux,
// which therefore neither replaces nor removes it.
type ForeignError struct{ Name, Path string }

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s was not installed by flux plugin install", e.Path)
}

// NotInstalledError is returned for a plugin that is not in the plugin folder.
type NotInstalledError struct{ Name, Folder string }

func (e *NotInstalledError) Error() string {
	return fmt.Sprintf("plugin %q is not installed in %s", e.Name, e.Folder)
}

// BusyError is returned while another process changes the plugin folder.
type BusyError struct{ Folder string }

func (e *BusyError) Error() string { return "another flux plugin command is changing " + e.Folder }
