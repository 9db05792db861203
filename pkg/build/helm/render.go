// Package helm renders charts with the SDK of Helm. Charts are fetched from repositories and
// registries and kept in a cache, or passed as files. It installs nothing and sends no request to a
// cluster.
package helm

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/Masterminds/semver/v3"
	"helm.sh/helm/v4/pkg/chart/common"
	chartutil "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	v2util "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/ignore"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/pkg/build/charts"
)

// Renderer implements charts.Renderer. It is safe for concurrent use.
type Renderer struct {
	// Cache is the directory for fetched charts, by digest. If it is "", charts are not cached.
	Cache string

	// once creates usual, the transport for repositories without their own certificates.
	once   sync.Once
	usual  *http.Transport
	failed error

	mu      sync.Mutex
	indexes map[string]*indexOnce
	pulled  map[string]pulledChart
}

// Render implements charts.Renderer.
func (r *Renderer) Render(ctx context.Context, release charts.Release) (*charts.Rendered, error) {
	varies := &atomic.Bool{}
	ctx = context.WithValue(ctx, variesKey{}, varies)
	c, err := r.load(ctx, release.Chart)
	if err != nil {
		return nil, err
	}
	if c.Metadata.Type == "library" {
		return nil, fmt.Errorf("chart %s is a library chart, which cannot be rendered on its own", c.Name())
	}
	if err := chooseValues(c, release.Chart); err != nil {
		return nil, err
	}
	values, err := valuesOf(ctx, c, release)
	if err != nil {
		return nil, err
	}
	files, err := templates(ctx, c, values, &release)
	if err != nil {
		return nil, fmt.Errorf("rendering chart %s %s: %w", c.Name(), c.Metadata.Version, err)
	}
	maps.DeleteFunc(files, func(name, _ string) bool { return path.Base(name) == "NOTES.txt" })
	rendered, err := sorted(c, files)
	if err != nil {
		return nil, err
	}
	rendered.Varies, rendered.Unserved = varies.Load(), unserved(c, values)
	return rendered, nil
}

// checked matches a check for an API version. Names that a template composes are not found. Other characters than those of API
// versions would be part of a command that flux prints.
var checked = lazy.Regexp("\\.Has[\\s(]+[\"`]([\\w./-]+)[\"`]|[\"`]([\\w./-]+)[\"`]\\s*\\|\\s*\\S*\\.Has\\b|\\bhas\\s+[\"`]([\\w./-]+)[\"`]\\s+\\S*\\.APIVersions\\b")

// unserved returns the API versions that the templates of a chart and of its dependencies check for, and that the capabilities do not
// contain, sorted.
func unserved(c *chart.Chart, values common.Values) []string {
	caps, _ := values["Capabilities"].(*common.Capabilities)
	found := map[string]bool{}
	for charts := []*chart.Chart{c}; len(charts) > 0; charts = charts[1:] {
		for _, file := range charts[0].Templates {
			for _, match := range checked().FindAllSubmatch(file.Data, -1) {
				if version := string(slices.Concat(match[1:]...)); caps != nil && !caps.APIVersions.Has(version) {
					found[version] = true
				}
			}
		}
		charts = append(charts, charts[0].Dependencies()...)
	}
	return slices.Sorted(maps.Keys(found))
}

// sorted splits rendered files into documents, in the order of installation.
func sorted(c *chart.Chart, files map[string]string) (*charts.Rendered, error) {
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, fmt.Errorf("reading the output of chart %s: %w", c.Name(), err)
	}
	rendered := &charts.Rendered{Chart: c.Name(), Version: c.Metadata.Version}
	for _, crd := range c.CRDObjects() {
		rendered.CRDs = append(rendered.CRDs, string(crd.File.Data))
	}
	for _, m := range manifests {
		rendered.Manifests = append(rendered.Manifests, m.Content)
	}
	for _, h := range hooks {
		rendered.Hooks = append(rendered.Hooks, h.Manifest)
	}
	return rendered, nil
}

// valuesOf returns the values for the templates: the values of the release merged over those of the
// chart.
func valuesOf(ctx context.Context, c *chart.Chart, release charts.Release) (common.Values, error) {
	caps := common.DefaultCapabilities.Copy()
	if release.KubeVersion != "" {
		version, err := common.ParseKubeVersion(release.KubeVersion)
		if err != nil {
			return nil, fmt.Errorf("parsing Kubernetes version %q: %w", release.KubeVersion, err)
		}
		caps.KubeVersion = *version
	}
	caps.APIVersions = append(caps.APIVersions, release.APIVersions...)
	if wanted := c.Metadata.KubeVersion; wanted != "" && !v2util.IsCompatibleRange(wanted, caps.KubeVersion.Version) {
		return nil, fmt.Errorf("chart %s requires Kubernetes %s; the version is %s", c.Name(), wanted, caps.KubeVersion.Version)
	}
	given := release.Values
	if given == nil {
		given = map[string]any{}
	}
	if err := v2util.ProcessDependencies(c, given); err != nil {
		return nil, fmt.Errorf("reading the dependencies of chart %s: %w", c.Name(), err)
	}
	upgrade := release.Revision > 1
	options := common.ReleaseOptions{
		Name: release.Name, Namespace: release.Namespace, Revision: max(1, release.Revision), IsInstall: !upgrade, IsUpgrade: upgrade,
	}
	values, err := chartutil.ToRenderValuesWithSchemaValidation(c, given, options, caps, true)
	if err == nil && !release.SkipSchema {
		err = validate(ctx, c, values, release.Chart.Access.Hosts)
	}
	if err != nil {
		return nil, fmt.Errorf("checking the values of chart %s: %w", c.Name(), err)
	}
	return values, nil
}

// chooseValues replaces values.yaml by the requested values files.
func chooseValues(c *chart.Chart, asked charts.Chart) error {
	if len(asked.ValuesFiles) == 0 && !asked.ReplaceValues {
		return nil
	}
	chosen := map[string]any{}
	for _, content := range asked.Values {
		values, err := common.ReadValues(content)
		if err != nil {
			return fmt.Errorf("reading the values files of chart %s: %w", c.Name(), err)
		}
		chosen = charts.MergeValues(chosen, values)
	}
	for _, name := range asked.ValuesFiles {
		at := slices.IndexFunc(c.Raw, func(f *common.File) bool { return f.Name == path.Clean(name) })
		if at < 0 {
			if asked.IgnoreMissingValuesFiles {
				continue
			}
			return fmt.Errorf("chart %s has no file %s", c.Name(), name)
		}
		values, err := common.ReadValues(c.Raw[at].Data)
		if err != nil {
			return fmt.Errorf("reading %s of chart %s: %w", name, c.Name(), err)
		}
		chosen = charts.MergeValues(chosen, values)
	}
	c.Values = chosen
	return nil
}

// load reads a chart and its dependencies.
func (r *Renderer) load(ctx context.Context, from charts.Chart) (*chart.Chart, error) {
	if from.Files != nil {
		c, err := (&treeLoader{renderer: r, from: from}).load(ctx, from.Folder)
		if err != nil {
			return nil, err
		}
		return c, appendBuild(c, from.Build)
	}
	packed := from.Archive
	if packed == nil {
		var err error
		if packed, from.Build, err = r.fetch(ctx, from); err != nil {
			return nil, err
		}
	}
	c, err := loader.LoadArchive(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}
	return c, appendBuild(c, from.Build)
}

// appendBuild appends build metadata to the version of a chart, such as 1.2.3+digest.
func appendBuild(c *chart.Chart, digest string) error {
	if digest == "" {
		return nil
	}
	version, err := semver.NewVersion(c.Metadata.Version)
	if err != nil {
		return fmt.Errorf("parsing version %q of chart %s: %w", c.Metadata.Version, c.Name(), err)
	}
	marked, err := version.SetMetadata(digest)
	if err != nil {
		return fmt.Errorf("appending a digest to version %q of chart %s: %w", c.Metadata.Version, c.Name(), err)
	}
	c.Metadata.Version = marked.String()
	return nil
}

var errNoChart = errors.New("no Chart.yaml found")

// maxTreeCharts is the maximum number of charts in a tree that one release loads, since
// dependencies may be circular.
const maxTreeCharts = 200

// treeLoader reads a chart and its dependencies from the directories of a tree.
type treeLoader struct {
	renderer *Renderer
	from     charts.Chart
	loaded   int
}

// load reads a chart from a directory.
func (l *treeLoader) load(ctx context.Context, folder string) (*chart.Chart, error) {
	if l.loaded++; l.loaded > maxTreeCharts {
		return nil, &budget.ExceededError{Name: path.Join(folder, "Chart.yaml"), Fact: fmt.Sprintf("the chart has more than %d dependencies, or depends on itself", maxTreeCharts)}
	}
	files := l.from.Files
	var own []*archive.BufferedFile
	prefix := folder + "/"
	if folder == "." || folder == "" {
		prefix = ""
	}
	ignored, err := ignore.Parse(bytes.NewReader(files[prefix+".helmignore"]))
	if err != nil {
		return nil, fmt.Errorf("reading the .helmignore in directory %q: %w", folder, err)
	}
	ignored.AddDefaults()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		rest, ok := strings.CutPrefix(name, prefix)
		if ok && !hidden(ignored, rest) {
			own = append(own, &archive.BufferedFile{Name: rest, Data: files[name]})
		}
	}
	if _, ok := files[prefix+"Chart.yaml"]; !ok {
		return nil, fmt.Errorf("reading the chart in directory %q: %w", folder, errNoChart)
	}
	c, err := loader.LoadFiles(own)
	if err != nil {
		return nil, fmt.Errorf("reading the chart in directory %q: %w", folder, err)
	}
	return c, l.addMissing(ctx, c, folder)
}

// hidden reports whether .helmignore excludes a file or a directory that contains it.
func hidden(rules *ignore.Rules, name string) bool {
	for at, kind := name, byte(tar.TypeReg); at != "."; at, kind = path.Dir(at), tar.TypeDir {
		if rules.Ignore(at, (&tar.Header{Name: at, Typeflag: kind}).FileInfo()) {
			return true
		}
	}
	return false
}

// addMissing loads the dependencies that are not in the directory charts of the chart, as
// source-controller does when it packs a chart.
func (l *treeLoader) addMissing(ctx context.Context, c *chart.Chart, folder string) error {
	for _, d := range c.Metadata.Dependencies {
		if slices.ContainsFunc(c.Dependencies(), func(have *chart.Chart) bool { return have.Name() == d.Name }) {
			continue
		}
		var dependency *chart.Chart
		var err error
		if relative, ok := strings.CutPrefix(d.Repository, "file://"); ok || d.Repository == "" {
			if !ok {
				relative = path.Join("charts", d.Name)
			}
			dependency, err = l.load(ctx, strings.TrimPrefix(path.Join("/", folder, relative), "/"))
		} else {
			dependency, err = l.renderer.load(ctx, charts.Chart{
				URL: d.Repository, Name: d.Name, Version: d.Version, Access: charts.Access{Public: l.from.Access.Public, Hosts: l.from.Access.Hosts},
			})
		}
		if err != nil {
			return fmt.Errorf("dependency %s of chart %s: %w", d.Name, c.Name(), err)
		}
		c.AddDependency(dependency)
	}
	return nil
}
