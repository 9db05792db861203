package plugin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/web/download"
)

// versionsShown is the maximum number of versions in an error.
const versionsShown = 10

// unknownError is returned for a plugin that is not in the catalog. others lists the plugins in the catalog, if
// known.
func unknownError(name string, others []string) error {
	remedy, near := "'flux plugin search' lists the plugins", hint.Nearest{Word: name}
	for _, other := range others {
		near.Try("flux plugin install "+other, []string{other})
	}
	if meant := near.Best(); meant != "" {
		remedy = fmt.Sprintf("did you mean '%s'?", meant)
	}
	return hint.Errorf(remedy, "plugin %q not found in the catalog", name)
}

// versionError is returned for a version or digest that is not in the manifest.
func versionError(name, ref string, versions []string) error {
	remedy := fmt.Sprintf("use a version or digest from the plugin manifest, or run 'flux plugin install %s' for the latest version", name)
	if len(versions) > 0 {
		remedy = "available versions: " + strings.Join(versions[:min(versionsShown, len(versions))], ", ")
	}
	if ref == "" {
		return hint.Errorf(remedy, "plugin %q has no versions", name)
	}
	return hint.Errorf(remedy, "plugin %q has no version %q", name, ref)
}

// CatalogError is returned if the catalog cannot be read or is invalid.
type CatalogError struct {
	// Address is the address of the catalog, without credentials and query.
	Address string
	// Invalid reports whether the catalog was read but is not valid.
	Invalid bool
	Err     error
}

func (e *CatalogError) Error() string {
	if e.Invalid {
		return fmt.Sprintf("invalid plugin catalog: %s: %v", e.Address, e.Err)
	}
	return fmt.Sprintf("cannot read the plugin catalog %s: %v", e.Address, e.Err)
}

func (e *CatalogError) Unwrap() error { return e.Err }

// unreadable returns the error for a catalog that cannot be read.
func (c *Catalog) unreadable(err error) error {
	return withRemedy(&CatalogError{Address: c.Address, Err: err}, "check "+CatalogVariable)
}

// invalid returns the error for an invalid file in the catalog.
func (c *Catalog) invalid(file string, err error) error {
	return &hint.Error{
		Err: &CatalogError{Address: c.at(file), Invalid: true, Err: err}, Hint: "check " + CatalogVariable + ", or report it to the maintainers of the catalog",
	}
}

// downloadError is returned if a download fails.
func downloadError(r *Release, err error) error {
	return withRemedy(fmt.Errorf("downloading %s %s: %w", r.Name, r.Version, err), "report it to the maintainers of the catalog, or install another version")
}

// withRemedy adds the hint for a failed request. answered is the hint for a response with an unexpected status.
func withRemedy(err error, answered string) error {
	var status *download.StatusError
	var untrusted *tls.CertificateVerificationError
	remedy := "check the network connection and HTTPS_PROXY, or set " + CatalogVariable + " to a mirror or a directory"
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &untrusted):
		remedy = "the server's certificate is not trusted: set SSL_CERT_FILE to a file with its CA certificate"
	case errors.As(err, &status):
		remedy = answered
	}
	return &hint.Error{Err: err, Hint: remedy}
}

// ForeignError returns the error for a program in the plugin directory that flux did not install and therefore neither
// replaces nor removes.
func ForeignError(path string) error {
	return hint.Errorf("flux does not change this file: move or remove it yourself", "%s was not installed by flux plugin install", path)
}

// NotInstalledError returns the error for a plugin that is not in the plugin directory.
func NotInstalledError(name, folder string) error {
	return hint.Errorf("'flux plugin list' lists the installed plugins", "plugin %q is not installed in %s", name, folder)
}
