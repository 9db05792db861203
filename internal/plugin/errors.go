package plugin

import (
	"fmt"
	"io/fs"
	"net/http"
	"runtime"
	"strings"
)

// UnknownError is returned for a plugin that the catalogue does not have.
type UnknownError struct {
	Name string
	// Known are the plugins that it has, as far as that could be read.
	Known []string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("plugin %q not found in the catalogue", e.Name)
}

// VersionError is returned for a version or digest that the manifest does not have.
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

// PlatformError is returned for a version that was not built for this platform.
type PlatformError struct {
	Name, Version, Digest string
	Offered               []string
}

func (e *PlatformError) Error() string {
	what := e.Name + " " + e.Version
	if e.Digest != "" {
		return fmt.Sprintf("digest %s is that of %s for %s, not for %s/%s", e.Digest, what, strings.Join(e.Offered, ", "), runtime.GOOS, runtime.GOARCH)
	}
	return fmt.Sprintf("plugin %s is not available for %s/%s", what, runtime.GOOS, runtime.GOARCH)
}

// ChecksumError is returned for a download that is not what the catalogue names.
type ChecksumError struct{ URL, Want, Got string }

func (e *ChecksumError) Error() string {
	return fmt.Sprintf("checksum of %s does not match: expected %s, got %s", e.URL, e.Want, e.Got)
}

// CatalogueError is returned where the catalogue cannot be used.
type CatalogueError struct {
	// Address is that of the catalogue, without credentials and query.
	Address string
	// Invalid is set where the catalogue was read and is not valid.
	Invalid bool
	Err     error
}

// DownloadError is returned for a download that could not be fetched.
type DownloadError struct {
	Name, Version string
	Err           error
}

func (e *DownloadError) Error() string {
	return fmt.Sprintf("downloading %s %s: %v", e.Name, e.Version, e.Err)
}

func (e *DownloadError) Unwrap() error { return e.Err }

// StatusError is returned where a server answers a request with a failure.
type StatusError struct {
	URL  string
	Code int
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s: the server answers %d %s", e.URL, e.Code, http.StatusText(e.Code))
}

// Is reports that there is nothing at the URL where the server says so.
func (e *StatusError) Is(target error) bool {
	return target == fs.ErrNotExist && e.Code == http.StatusNotFound
}

func (e *CatalogueError) Error() string {
	if e.Invalid {
		return fmt.Sprintf("invalid plugin catalogue: %s: %v", e.Address, e.Err)
	}
	return fmt.Sprintf("cannot read the plugin catalogue %s: %v", e.Address, e.Err)
}

func (e *CatalogueError) Unwrap() error { return e.Err }

// ForeignError is returned for a program in the plugin folder that flux has not
// installed and therefore neither replaces nor removes.
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
