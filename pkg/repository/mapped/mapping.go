// Package mapped provides the directories that replace sources: directories set with --map, and sources fetched by
// 'flux test vendor'.
package mapped

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/pkg/controllers"
)

// VendorFolder is the default directory of vendored sources.
const VendorFolder = ".fluxtest"

// Mapping is a directory or file that replaces the sources with a URL.
type Mapping struct {
	// URL is the URL of a GitRepository, HelmRepository or OCIRepository, or the BucketURL of a Bucket.
	URL string `json:"url"`
	// Path is a directory with files, objects or charts, an OCI layout, or a packed chart or artifact.
	Path string `json:"path"`
	// Kind restricts the mapping to sources of a kind, and Ref to GitRepositories with this spec.ref, or
	// to Buckets with this prefix.
	// Mappings of vendored sources have a kind; a Helm repository without charts has no path.
	Kind string         `json:"-"`
	Ref  map[string]any `json:"-"`
	// Added holds files that are served in addition to the files of Path.
	Added map[string][]byte `json:"-"`
	// ETags holds the ETags of Bucket objects. The ETags of other objects are derived from their content.
	ETags map[string]string `json:"-"`
}

// Parse parses the value of --map, URL=PATH.
func Parse(text string) (Mapping, error) {
	url, at, ok := strings.Cut(text, "=")
	if !ok || url == "" || at == "" || !strings.Contains(url, "://") && !strings.Contains(url, "@") {
		return Mapping{}, hint.Errorf("use --map URL=PATH, e.g. --map oci://ghcr.io/stefanprodan/charts=./charts", "invalid mapping %q", text)
	}
	if _, err := os.Stat(at); err != nil {
		return Mapping{}, fmt.Errorf("mapping %s: %w", url, err)
	}
	return Mapping{URL: strings.TrimRight(url, "/"), Path: at}, nil
}

// Serves reports whether the mapping concerns sources of a kind with a URL.
func (m Mapping) Serves(ctx context.Context, kind, url string) bool {
	switch kind {
	case controllers.GitRepository:
		return git.ComparableAddress(url) == git.ComparableAddress(m.URL)
	case controllers.Bucket:
		return Place(url) == Place(m.URL)
	}
	name, below := strings.CutPrefix(url, m.URL+"/")
	if !below || kind == controllers.HelmRepository || !strings.HasPrefix(url, registry.Scheme) {
		return strings.TrimRight(url, "/") == m.URL
	}
	charts, err := ChartsIn(ctx, m.Path)
	return err == nil && slices.ContainsFunc(charts, func(c Chart) bool { return c.Name == name })
}

// BucketURL returns the URL of a Bucket: its endpoint with the name of the bucket.
func BucketURL(object controllers.Object) string {
	text := func(field string) string { return controllers.Path{"spec." + field}.String(object) }
	scheme := "https://"
	if text("insecure") == "true" {
		scheme = "http://"
	}
	return scheme + text("endpoint") + "/" + text("bucketName")
}

// Place returns a URL without its scheme: an endpoint serves one bucket with a name.
func Place(url string) string {
	_, place, _ := strings.Cut(strings.TrimRight(url, "/"), "://")
	return place
}
