// Package charts renders the objects that HelmReleases apply: it finds charts and values, and post-renders
// the output of a Renderer.
package charts

import (
	"context"
	"strings"

	"github.com/fluxkit/flux/pkg/build"
)

// Chart locates a Helm chart in files, in an archive or in a repository.
type Chart struct {
	// Files holds the files of the chart in Folder and of the charts that it references by file://.
	Files  map[string][]byte `json:"files,omitempty"`
	Folder string            `json:"folder,omitempty"`
	// Archive is a packed chart.
	Archive []byte `json:"archive,omitempty"`

	// URL is a Helm repository (https://) or a registry path with charts (oci://). Name is the chart in
	// it. Without a name, an oci:// URL identifies the chart.
	URL  string `json:"url,omitempty"`
	Name string `json:"name,omitempty"`
	// Version is a version or a version range; "" is the newest release.
	Version string `json:"version,omitempty"`
	// Tag and Digest select the artifact of an oci:// URL. Digest takes precedence over Tag.
	Tag    string `json:"tag,omitempty"`
	Digest string `json:"digest,omitempty"`
	// Access holds the credentials and connection settings of the repository.
	Access Access `json:"access,omitzero"`
	// Build is appended to the version of the chart. The controllers append the digest of an
	// OCIRepository, the revision of a source with the reconcile strategy Revision, and the
	// generation of a HelmChart with values files.
	Build string `json:"build,omitempty"`
	// BuildByDigest appends the digest of the artifact that is pulled from an oci:// URL.
	BuildByDigest bool `json:"buildByDigest,omitempty"`

	// ValuesFiles holds paths of files in the chart whose values replace values.yaml.
	ValuesFiles []string `json:"valuesFiles,omitempty"`
	// IgnoreMissingValuesFiles ignores values files that do not exist.
	IgnoreMissingValuesFiles bool `json:"ignoreMissingValuesFiles,omitempty"`
	// Values holds the contents of the values files of a chart in a source, whose paths are
	// relative to the source. They replace values.yaml if ReplaceValues is set.
	Values        [][]byte `json:"values,omitempty"`
	ReplaceValues bool     `json:"replaceValues,omitempty"`
}

// Fixed reports whether the content of the chart is always the same: its files or the digest of its artifact are given.
func (c *Chart) Fixed() bool {
	return c.Files != nil || c.Archive != nil || strings.HasPrefix(c.URL, "oci://") && c.Digest != ""
}

// Access holds the credentials and connection settings of a chart repository.
type Access struct {
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	// CA, Cert and Key are PEM-encoded.
	CA   []byte `json:"ca,omitempty"`
	Cert []byte `json:"cert,omitempty"`
	Key  []byte `json:"key,omitempty"`
	// Insecure allows a registry without TLS.
	Insecure bool `json:"insecure,omitempty"`
	// PassCredentials also sends the credentials to other hosts that an index references.
	PassCredentials bool `json:"passCredentials,omitempty"`
	// Public restricts connections to public addresses and to the hosts in Hosts.
	Public bool     `json:"public,omitempty"`
	Hosts  []string `json:"hosts,omitempty"`
}

// Release holds the release name, values and capabilities that a chart is rendered with.
type Release struct {
	Chart     Chart          `json:"chart"`
	Name      string         `json:"name"`
	Namespace string         `json:"namespace"`
	Values    map[string]any `json:"values,omitempty"`
	// Revision is the number of the release: the first is an installation, all others are upgrades.
	// 0 is the same as 1.
	Revision int `json:"revision,omitempty"`
	// KubeVersion is the Kubernetes version in .Capabilities, such as v1.33.0; "" is the default of
	// Helm.
	KubeVersion string `json:"kubeVersion,omitempty"`
	// APIVersions holds additional entries of .Capabilities.APIVersions.
	APIVersions []string `json:"apiVersions,omitempty"`
	// Find implements the lookup function of templates. Nil finds no objects.
	Find build.Finder `json:"-"`
	// SkipSchema skips the validation of the values against the schema of the chart.
	SkipSchema bool `json:"skipSchema,omitempty"`
	// Reverse reverses the order of map keys, which is undefined in templates: lists that then differ
	// depend on this order.
	Reverse bool `json:"reverse,omitempty"`
	// Secret is set if secret values are used.
	Secret bool `json:"-"`
}

// Rendered holds the YAML documents of a rendered chart.
type Rendered struct {
	Chart     string   `json:"chart"`
	Version   string   `json:"version"`
	CRDs      []string `json:"crds,omitempty"`
	Manifests []string `json:"manifests,omitempty"`
	Hooks     []string `json:"hooks,omitempty"`
	// Varies is set if the same release may be rendered differently at another time: a template uses the time or generates
	// values, or something was fetched without a digest.
	Varies bool `json:"varies,omitempty"`
	// Unserved lists the API versions that templates check for, and that the capabilities do not contain.
	Unserved []string `json:"unserved,omitempty"`
}

// VersionMetadata returns the part of the digest of an artifact (algorithm:hex, optionally after a
// tag) that the controller appends to the version of a chart.
func VersionMetadata(revision string) string {
	const shown = 12
	_, hex, ok := strings.Cut(revision[strings.LastIndex(revision, "@")+1:], ":")
	if !ok || len(hex) < shown {
		return ""
	}
	return hex[:shown]
}

// Renderer renders charts. The implementation in pkg/build/helm uses the SDK of Helm, which is slow to
// start: programs that rarely need it run it in a separate process.
type Renderer interface {
	Render(ctx context.Context, release Release) (*Rendered, error)
}

// Fetcher fetches charts from repositories and registries.
type Fetcher interface {
	// Fetch fetches a chart into the cache of the fetcher, as DIGEST.tgz, unless it is there.
	Fetch(ctx context.Context, chart Chart) (*Fetched, error)
}

// Fetched is a chart in the cache. The digest is the SHA-256 digest in hexadecimal.
type Fetched struct {
	Version string `json:"version"`
	Digest  string `json:"digest"`
}
