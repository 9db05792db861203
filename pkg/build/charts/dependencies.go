package charts

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
)

// dependency is a chart that a Chart.yaml refers to.
type dependency struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	Repository string `json:"repository"`
}

func dependenciesOf(name string, text []byte) ([]dependency, error) {
	var metadata struct {
		Dependencies []dependency `json:"dependencies"`
	}
	err := budget.Unmarshal(name, text, &metadata)
	return metadata.Dependencies, err
}

// LocalCharts returns the directories of the charts that a Chart.yaml references by file://, relative to its own.
func LocalCharts(name string, text []byte) (directories []string, err error) {
	all, err := dependenciesOf(name, text)
	for _, d := range all {
		if relative, ok := strings.CutPrefix(d.Repository, "file://"); ok {
			directories = append(directories, relative)
		}
	}
	return directories, err
}

// provide adds the dependencies returned by Options.Local to the files of the chart in a directory, and to the files of the
// charts that it references by file://. The renderer fetches all other dependencies.
func (f *chartFinder) provide(c *Chart, folder string, seen map[string]bool) error {
	if f.options.Local == nil || seen[folder] {
		return nil
	}
	seen[folder] = true
	all, err := dependenciesOf("Chart.yaml", c.Files[path.Join(folder, "Chart.yaml")])
	if err != nil {
		return err
	}
	have := Contained(c.Files, folder)
	for i, d := range all {
		relative, inFiles := strings.CutPrefix(d.Repository, "file://")
		switch {
		case inFiles:
			if err := f.provide(c, sourcetree.Clean(path.Join("/", folder, relative)), seen); err != nil {
				return err
			}
			continue
		case d.Repository == "" || slices.Contains(have, d.Name):
			continue
		}
		packed, err := f.options.Local(f.ctx, Chart{URL: d.Repository, Name: d.Name, Version: d.Version})
		if errors.Is(err, build.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("dependency %s: %w", d.Name, err)
		}
		// Dependencies with an alias may be different versions of one chart.
		c.Files[path.Join(folder, "charts", fmt.Sprintf("mapped-%d.tgz", i))] = packed
	}
	return nil
}

// packedChart matches the name of a packed chart, which begins with the name of the chart.
var packedChart = lazy.Regexp(`^(.+?)-v?[0-9]+\..*\.tgz$`)

// Contained returns the names of the charts in the directory charts of the chart in a directory.
func Contained(files map[string][]byte, folder string) []string {
	names := map[string]bool{}
	for name := range files {
		inside, ok := strings.CutPrefix(name, path.Join(folder, "charts")+"/")
		if chart, file, below := strings.Cut(inside, "/"); ok && below && file == "Chart.yaml" {
			names[chart] = true
		}
		if packed := packedChart().FindStringSubmatch(inside); ok && packed != nil && !strings.Contains(inside, "/") {
			names[packed[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Newest returns the highest version in a range; "" is the range of all releases.
func Newest(versions []string, wanted string) (string, error) {
	if slices.Contains(versions, wanted) {
		return wanted, nil
	}
	if wanted == "" {
		wanted = "*"
	}
	constraint, err := budget.Range(wanted)
	if err != nil {
		return "", fmt.Errorf("%.80q is not a valid version or version range: %w", wanted, err)
	}
	best, text := (*semver.Version)(nil), ""
	for _, candidate := range versions {
		version, err := semver.NewVersion(candidate)
		if err == nil && constraint.Check(version) && (best == nil || version.GreaterThan(best)) {
			best, text = version, candidate
		}
	}
	if best == nil {
		return "", fmt.Errorf("no version matches %q", wanted)
	}
	return text, nil
}
