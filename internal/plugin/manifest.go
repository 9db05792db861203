package plugin

import (
	"fmt"
	"path"
	"runtime"
	"strings"

	"github.com/Masterminds/semver/v3"
	"go.yaml.in/yaml/v3"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/internal/terminal/printable"
)

const (
	apiVersion   = "cli.fluxcd.io/v1beta1"
	manifestKind = "Plugin"
	catalogKind  = "PluginCatalog"
)

var checksumForm = lazy.Regexp(`^sha256:[0-9a-f]{64}$`)

// Manifest describes a plugin and its versions.
type Manifest struct {
	APIVersion  string    `yaml:"apiVersion"`
	Kind        string    `yaml:"kind"`
	Name        string    `yaml:"name"`
	Description string    `yaml:"description"`
	Homepage    string    `yaml:"homepage"`
	Source      string    `yaml:"source"`
	Bin         string    `yaml:"bin"`
	Versions    []Version `yaml:"versions"`
}

// Version is a release of a plugin.
type Version struct {
	Version   string     `yaml:"version"`
	Platforms []Platform `yaml:"platforms"`
}

// Platform describes the download of a release for an operating system and architecture.
type Platform struct {
	OS       string `yaml:"os" json:"os"`
	Arch     string `yaml:"arch" json:"arch"`
	URL      string `yaml:"url" json:"url"`
	Checksum string `yaml:"checksum" json:"checksum"`
	// ExtractPath is the path of the program in the archive (default: the manifest's bin).
	ExtractPath string `yaml:"extractPath,omitempty" json:"extractPath,omitempty"`
}

// Index lists the plugins of a catalog.
type Index struct {
	APIVersion string  `yaml:"apiVersion"`
	Kind       string  `yaml:"kind"`
	Plugins    []Entry `yaml:"plugins"`
}

// Entry is a plugin in an Index.
type Entry struct {
	Name        string `yaml:"name" json:"name"`
	Description string `yaml:"description" json:"description"`
	Homepage    string `yaml:"homepage" json:"homepage,omitempty"`
	Source      string `yaml:"source" json:"source,omitempty"`
	License     string `yaml:"license" json:"license,omitempty"`
}

// Release is an installable version of a plugin for one platform.
type Release struct {
	Name, Version string
	Platform      Platform
	// bin is the name of the program in the archive.
	bin string
}

// parseManifest parses the manifest of a plugin. Manifests are untrusted, so each field
// is validated before it is used in a path or a request.
func parseManifest(data []byte, name string) (*Manifest, error) {
	if err := budget.YAML("", data); err != nil {
		return nil, err
	}
	var m Manifest
	if err := yaml.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("invalid YAML: %s", printable.Line(err.Error()))
	}
	switch {
	case m.APIVersion != apiVersion || m.Kind != manifestKind:
		return nil, fmt.Errorf("apiVersion %q and kind %q must be %s and %s", m.APIVersion, m.Kind, apiVersion, manifestKind)
	case m.Name != name:
		return nil, fmt.Errorf("name %q must be %q", m.Name, name)
	case !validName(installable(), m.Bin):
		return nil, fmt.Errorf("bin %q must be a file name of lower-case letters, digits and hyphens", m.Bin)
	}
	m.Description, m.Homepage, m.Source = printable.Line(m.Description), printable.Line(m.Homepage), printable.Line(m.Source)
	return &m, nil
}

// parseIndex parses the list of plugins of a catalog.
func parseIndex(data []byte) (*Index, error) {
	if err := budget.YAML("", data); err != nil {
		return nil, err
	}
	var i Index
	if err := yaml.Unmarshal(data, &i); err != nil {
		return nil, fmt.Errorf("invalid YAML: %s", printable.Line(err.Error()))
	}
	if i.APIVersion != apiVersion || i.Kind != catalogKind {
		return nil, fmt.Errorf("apiVersion %q and kind %q must be %s and %s", i.APIVersion, i.Kind, apiVersion, catalogKind)
	}
	for n := range i.Plugins {
		e := &i.Plugins[n]
		if !validName(installable(), e.Name) {
			return nil, fmt.Errorf("name %q of plugin %d must consist of lower-case letters, digits and hyphens", e.Name, n+1)
		}
		e.Description, e.Homepage = printable.Line(e.Description), printable.Line(e.Homepage)
		e.Source, e.License = printable.Line(e.Source), printable.Line(e.License)
	}
	return &i, nil
}

// Release returns the release for this platform with a version or a checksum (sha256:…), or the
// latest release for "".
func (m *Manifest) Release(ref string) (*Release, error) {
	if strings.HasPrefix(ref, "sha256:") {
		return m.byChecksum(ref)
	}
	v, err := m.version(ref)
	if err != nil {
		return nil, err
	}
	var offered []string
	for _, p := range v.Platforms {
		if p.OS == runtime.GOOS && p.Arch == runtime.GOARCH {
			return m.release(v.Version, p)
		}
		offered = append(offered, printable.Line(p.OS+"/"+p.Arch))
	}
	return nil, hint.Errorf("available for: "+strings.Join(offered, ", "), "plugin %s %s is not available for %s/%s", m.Name, v.Version, runtime.GOOS, runtime.GOARCH)
}

// byChecksum returns the release whose download has the given checksum.
func (m *Manifest) byChecksum(checksum string) (*Release, error) {
	if !checksumForm().MatchString(checksum) {
		return nil, fmt.Errorf("invalid digest %q: must be sha256: and 64 hexadecimal digits", checksum)
	}
	for _, v := range m.Versions {
		for _, p := range v.Platforms {
			if p.Checksum != checksum {
				continue
			}
			if p.OS != runtime.GOOS || p.Arch != runtime.GOARCH {
				if _, err := semver.StrictNewVersion(v.Version); err != nil {
					return nil, m.notSemantic(v.Version)
				}
				return nil, fmt.Errorf("digest %s belongs to %s %s for %s, not for %s/%s", checksum, m.Name, v.Version, printable.Line(p.OS+"/"+p.Arch), runtime.GOOS, runtime.GOARCH)
			}
			return m.release(v.Version, p)
		}
	}
	return nil, versionError(m.Name, checksum, nil)
}

// version returns a version by its number, or the latest for "".
func (m *Manifest) version(number string) (*Version, error) {
	number = strings.TrimPrefix(number, "v")
	var latest *Version
	var highest *semver.Version
	var known []string
	for i := range m.Versions {
		v := &m.Versions[i]
		parsed, err := semver.StrictNewVersion(v.Version)
		if err != nil {
			return nil, m.notSemantic(v.Version)
		}
		if v.Version == number {
			return v, nil
		}
		known = append(known, v.Version)
		if latest == nil || newer(parsed, highest) {
			latest, highest = v, parsed
		}
	}
	if number != "" || latest == nil {
		return nil, versionError(m.Name, number, known)
	}
	return latest, nil
}

func (m *Manifest) notSemantic(version string) error {
	return fmt.Errorf("version %q of plugin %q is not a semantic version", version, m.Name)
}

// newer reports whether a takes precedence over b: releases precede pre-releases, and higher versions precede lower
// ones.
func newer(a, b *semver.Version) bool {
	if (a.Prerelease() == "") != (b.Prerelease() == "") {
		return a.Prerelease() == ""
	}
	return a.GreaterThan(b)
}

func (m *Manifest) release(version string, p Platform) (*Release, error) {
	if _, err := semver.StrictNewVersion(version); err != nil {
		return nil, m.notSemantic(version)
	}
	if !checksumForm().MatchString(p.Checksum) {
		return nil, fmt.Errorf("checksum %q of %s %s must be sha256: and 64 hexadecimal digits", p.Checksum, m.Name, version)
	}
	if p.ExtractPath != "" {
		p.ExtractPath = path.Clean(strings.TrimPrefix(p.ExtractPath, "/"))
		if p.ExtractPath == "." || p.ExtractPath == ".." || strings.HasPrefix(p.ExtractPath, "../") {
			return nil, fmt.Errorf("extractPath of %s %s must be a path inside the archive", m.Name, version)
		}
	}
	return &Release{Name: m.Name, Version: version, Platform: p, bin: m.Bin}, nil
}

// inArchive returns the path of the program in the archive.
func (r *Release) inArchive() wanted {
	if r.Platform.ExtractPath != "" {
		return wanted{path: r.Platform.ExtractPath, exact: true}
	}
	return wanted{path: programName(r.bin)}
}

// ParseRef splits NAME, NAME@VERSION or NAME@sha256:DIGEST.
func ParseRef(word string) (name, ref string, err error) {
	name, ref, at := strings.Cut(word, "@")
	if !validName(installable(), name) {
		return "", "", fmt.Errorf("invalid plugin name %q: must consist of lower-case letters, digits and hyphens and start with a letter", name)
	}
	if at && ref == "" {
		return "", "", fmt.Errorf("missing version after the @ in %q", word)
	}
	return name, ref, nil
}
