package vendored

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
)

// dependency is a chart that another chart depends on.
type dependency struct {
	Name, Version, Repository, Alias string
}

// loaded returns the name by which source-controller finds the chart.
func (d dependency) loaded() string {
	if d.Alias != "" {
		return d.Alias
	}
	return d.Name
}

// remote reports whether source-controller fetches the chart.
func (d dependency) remote() bool {
	return strings.Contains(d.Repository, "://") && !strings.HasPrefix(d.Repository, "file://")
}

// dependenciesOf returns the dependencies as source-controller resolves them: a lock file takes
// precedence. The controller reports problems with the files.
func dependenciesOf(chart *charts.Chart) []dependency {
	var metadata struct{ APIVersion string }
	read := func(name string, into any) bool {
		content, ok := chart.Files[path.Join(chart.Folder, name)]
		return ok && budget.Unmarshal(name, content, into) == nil
	}
	files := []string{"Chart.lock", "Chart.yaml"}
	if read("Chart.yaml", &metadata) && metadata.APIVersion == "v1" {
		files = []string{"requirements.lock", "requirements.yaml"}
	}
	for _, name := range files {
		var list struct{ Dependencies []dependency }
		if read(name, &list) {
			return list.Dependencies
		}
	}
	return nil
}

// place is the place at which a packed chart is added to the files of a source.
type place struct {
	source *unstructured.Unstructured
	// prefix is the path without the file name.
	prefix string
}

// dependencies reads the charts that source-controller would fetch for a chart in a source.
func (w *walk) dependencies(ctx context.Context, ref, source controllers.ID, chart *charts.Chart) error {
	from, all, have := w.find(source), dependenciesOf(chart), charts.Contained(chart.Files, chart.Folder)
	if source.Kind != controllers.GitRepository && source.Kind != controllers.Bucket || from == nil || len(all) == len(have) {
		return nil // helm-controller reads the chart of an ExternalArtifact, and fetches nothing
	}
	missing := slices.DeleteFunc(slices.Clone(all), func(d dependency) bool { return !d.remote() || slices.Contains(have, d.loaded()) })
	const remedy = "add it with 'helm dependency build'"
	for _, d := range missing {
		if d.Alias != "" && len(have)+len(missing) != len(all) {
			// source-controller does not recognize it by its name.
			w.omit("%s: dependency %s of its chart has an alias, and another dependency is local: %s", ref, d.Name, remedy)
			return nil
		}
		if includes(from, chart.Folder) {
			w.omit("%s: dependency %s of its chart comes from %s, and the chart from spec.include of %s: %s", ref, d.Name, d.Repository, source, remedy)
			return nil
		}
	}
	for _, d := range missing {
		repository := strings.TrimRight(d.Repository, "/")
		fetched := &charts.Chart{URL: repository, Name: d.Name, Version: d.Version}
		var err error
		if fetched.Access, err = w.accessTo(ctx, source.Namespace, repository); err != nil {
			return fmt.Errorf("%s: %w", ref, err)
		}
		at := place{from, path.Join(chart.Folder, "charts") + "/"}
		if d.Alias != "" {
			at.prefix += d.Alias + "-" // the same chart may have several aliases
		}
		if err := w.dependency(ctx, at, Source{Kind: controllers.HelmRepository, URL: repository, Chart: d.Name, Version: d.Version}, fetched); err != nil {
			return fmt.Errorf("%s: %w", ref, err)
		}
	}
	return nil
}

// includes reports whether a directory in the artifact of a GitRepository comes from another GitRepository.
func includes(repository *unstructured.Unstructured, folder string) bool {
	parts, _ := sourcetree.Included(repository, func(controllers.ID) (fs.FS, error) { return nil, nil }) // cannot fail
	return slices.ContainsFunc(parts, func(p sourcetree.Part) bool {
		at := path.Clean(p.At)
		return folder == at || strings.HasPrefix(folder, at+"/")
	})
}

// accessTo returns the credentials for a repository. As in source-controller, they come from a
// HelmRepository in the namespace with the same URL.
func (w *walk) accessTo(ctx context.Context, namespace, url string) (charts.Access, error) {
	for _, o := range w.applied {
		if controllers.IDOf(o.Object).Kind == controllers.HelmRepository && o.GetNamespace() == namespace && urlOf(o) == url {
			return charts.AccessOf(ctx, o, charts.Options{
				Lookup: w.lookup(), Missing: func(controllers.ID, error) bool { return true }, Login: w.login,
			})
		}
	}
	return charts.Access{}, nil
}

// dependency implements reader.
func (f *Fetcher) dependency(ctx context.Context, _ place, wanted Source, chart *charts.Chart) error {
	return f.helm(ctx, wanted, chart)
}

// dependency implements reader. It adds the chart to the served files.
func (c *checker) dependency(_ context.Context, at place, wanted Source, _ *charts.Chart) error {
	s, ok := c.find(wanted)
	if !ok {
		c.missing = append(c.missing, wanted.String())
		return nil
	}
	content, err := c.content(s.File)
	if err != nil {
		return err
	}
	name := at.prefix + path.Base(s.File)
	if c.repository.Identity().Is(at.source) {
		c.repository.Add(name, content)
		return nil
	}
	key := sourceOf(at.source).key()
	if c.added[key] == nil {
		c.added[key] = map[string][]byte{}
	}
	c.added[key][name] = content
	return nil
}
