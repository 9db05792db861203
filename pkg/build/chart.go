package build

import (
	"context"
	"strings"
)

// Chart locates a Helm chart: in files, in an archive, or in a repository.
type Chart struct {
	// Files are those of a tree with the chart in Folder, and with those that
	// it refers to by file://.
	Files  map[string][]byte `json:"files,omitempty"`
	Folder string            `json:"folder,omitempty"`
	// Archive is a packed chart.
	Archive []byte `json:"archive,omitempty"`

	// URL is a Helm repository (https://), or what holds charts in a registry
	// (oci://). Name is the chart in it; without one, an oci:// URL names the chart.
	URL  string `json:"url,omitempty"`
	Name string `json:"name,omitempty"`
	// Version is a version or a range; "" means the newest release.
	Version string `json:"version,omitempty"`
	// Tag and Digest pin what an oci:// URL means. A digest wins over a tag.
	Tag    string `json:"tag,omitempty"`
	Digest string `json:"digest,omitempty"`
	// Access has the credentials for the repository.
	Access Access `json:"access,omitzero"`
	// Build is appended to the chart's version. The controllers do so with the
	// digest of an OCIRepository, the revision of a source with the reconcile
	// strategy Revision, and the generation of a HelmChart with values files.
	Build string `json:"build,omitempty"`
	// BuildByDigest appends the digest of what is pulled by an oci:// URL.
	BuildByDigest bool `json:"buildByDigest,omitempty"`

	// ValuesFiles are files of the chart whose values replace values.yaml.
	ValuesFiles []string `json:"valuesFiles,omitempty"`
	// IgnoreMissingValuesFiles ignores those that do not exist.
	IgnoreMissingValuesFiles bool `json:"ignoreMissingValuesFiles,omitempty"`
	// Values are the contents of the values files of a chart in a source, whose
	// paths are relative to the source. They replace values.yaml if ReplaceValues is
	// set.
	Values        [][]byte `json:"values,omitempty"`
	ReplaceValues bool     `json:"replaceValues,omitempty"`
}

// Access is how a repository of charts is reached.
type Access struct {
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	// CA, Cert and Key are PEM.
	CA   []byte `json:"ca,omitempty"`
	Cert []byte `json:"cert,omitempty"`
	Key  []byte `json:"key,omitempty"`
	// Insecure allows a registry without TLS.
	Insecure bool `json:"insecure,omitempty"`
	// PassCredentials also gives the password to other hosts that an index names.
	PassCredentials bool `json:"passCredentials,omitempty"`
	// Public allows only public addresses, and the hosts in Hosts.
	Public bool     `json:"public,omitempty"`
	Hosts  []string `json:"hosts,omitempty"`
}

// Release is what a chart is rendered with.
type Release struct {
	Chart     Chart          `json:"chart"`
	Name      string         `json:"name"`
	Namespace string         `json:"namespace"`
	Values    map[string]any `json:"values,omitempty"`
	// Revision counts the releases by this name; the first is an installation,
	// and all others are upgrades. 0 is the same as 1.
	Revision int `json:"revision,omitempty"`
	// KubeVersion is the version that the chart sees, such as v1.33.0; "" is Helm's own.
	KubeVersion string `json:"kubeVersion,omitempty"`
	// APIVersions are what .Capabilities.APIVersions has besides.
	APIVersions []string `json:"apiVersions,omitempty"`
	// Find answers the lookup function of templates; nil finds nothing.
	Find Finder `json:"-"`
	// SkipSchema does not check the values against the chart's schema.
	SkipSchema bool `json:"skipSchema,omitempty"`
}

// Wanted is the object that a template looks up, or all objects of a kind if
// Name is empty.
type Wanted struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
}

// Finder finds what templates look for. It returns nil for an object that is
// not there, and a list where no name is given.
type Finder func(ctx context.Context, wanted Wanted) (map[string]any, error)

// Rendered is a rendered chart: YAML documents.
type Rendered struct {
	Chart     string   `json:"chart"`
	Version   string   `json:"version"`
	CRDs      []string `json:"crds,omitempty"`
	Manifests []string `json:"manifests,omitempty"`
	Hooks     []string `json:"hooks,omitempty"`
}

// VersionMetadata is the part of an artifact's digest (algorithm:hex, optionally after a
// tag) that the controller appends to a chart's version.
func VersionMetadata(revision string) string {
	const shown = 12
	_, hex, ok := strings.Cut(revision[strings.LastIndex(revision, "@")+1:], ":")
	if !ok || len(hex) < shown {
		return ""
	}
	return hex[:shown]
}

// Renderer renders charts. The one of pkg/build/helm does it by Helm's SDK,
// which takes a while to start: programs that need it rarely run it as a
// process of its own.
type Renderer interface {
	Render(ctx context.Context, release Release) (*Rendered, error)
}
