package mapped

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/git/filetree"
	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
	"github.com/fluxkit/flux/pkg/repository/upstream"
)

// Sources returns the files of sources that are mapped, and the charts of mapped Helm repositories. It is safe for
// concurrent use.
type Sources struct {
	// Mappings lists the mappings in order of precedence.
	Mappings []Mapping
	// Otherwise returns the files of sources that are not mapped. It may be nil.
	Otherwise repository.Contents

	mu sync.Mutex
	// charts caches the charts of each path.
	charts map[string][]Chart
}

// Content implements repository.Contents.
func (s *Sources) Content(ctx context.Context, r repository.Request) (repository.Content, error) {
	if r.Object == nil {
		return s.unmapped(ctx, r)
	}
	url := urlOf(r.Object)
	for _, m := range s.Mappings {
		if !m.selects(r.Object) {
			continue
		}
		var found repository.Content
		var err error
		switch {
		case r.Source.Kind == controllers.OCIRepository:
			found, err = s.artifact(ctx, m, r.Object, url)
		case m.Serves(ctx, r.Source.Kind, url):
			if found.Files, err = m.files(ctx, r.Object); m.Ref == nil {
				found.Directory = m.Path
			}
		default:
			continue
		}
		if errors.Is(err, build.ErrNotFound) {
			continue
		}
		if err != nil {
			err = fmt.Errorf("reading %s in place of %s: %w", m.Path, r.Source, err)
		}
		return found, err
	}
	return s.unmapped(ctx, r)
}

func (s *Sources) unmapped(ctx context.Context, r repository.Request) (repository.Content, error) {
	if s.Otherwise == nil {
		return repository.Content{}, build.ErrNotFound
	}
	return s.Otherwise.Content(ctx, r)
}

func urlOf(o *unstructured.Unstructured) string {
	if o.GetKind() == controllers.Bucket {
		return BucketURL(o.Object)
	}
	return strings.TrimRight(controllers.Path{"spec.url"}.String(o.Object), "/")
}

// selects reports whether Kind and Ref of a mapping allow a source.
func (m Mapping) selects(o *unstructured.Unstructured) bool {
	if m.Kind != "" && m.Kind != o.GetKind() {
		return false
	}
	if m.Ref == nil {
		return true
	}
	ref := map[string]any{}
	if o.GetKind() == controllers.Bucket {
		if prefix := (controllers.Path{"spec.prefix"}).String(o.Object); prefix != "" {
			ref["prefix"] = prefix
		}
	} else if own, ok, _ := unstructured.NestedMap(o.Object, "spec", "ref"); ok {
		ref = own
	}
	return equality.Semantic.DeepEqual(ref, m.Ref)
}

// files returns the files in place of a GitRepository or Bucket.
func (m Mapping) files(ctx context.Context, o *unstructured.Unstructured) (fs.FS, error) {
	var tree fs.FS = filetree.Directory(m.Path)
	if info, err := os.Stat(m.Path); err != nil || !info.IsDir() {
		packed, err := ReadFile(m.Path)
		if err != nil {
			return nil, err
		}
		if tree, err = sourcetree.Archive(bytes.NewReader(packed)); err != nil {
			return nil, err
		}
	}
	prefix := ""
	if o.GetKind() == controllers.Bucket {
		prefix = controllers.Path{"spec.prefix"}.String(o.Object)
	}
	if len(m.Added) == 0 && prefix == "" {
		return tree, nil
	}
	all, err := ReadFiles(ctx, tree)
	if err != nil {
		return nil, err
	}
	maps.Copy(all, m.Added)
	maps.DeleteFunc(all, func(name string, _ []byte) bool { return !strings.HasPrefix(name, prefix) })
	return filetree.InMemory(all)
}

// artifact returns the files of an OCIRepository with a URL, from an OCI layout, a chart or a directory.
func (s *Sources) artifact(ctx context.Context, m Mapping, o *unstructured.Unstructured, url string) (repository.Content, error) {
	none := repository.Content{}
	if _, err := os.Stat(filepath.Join(m.Path, registry.LayoutFile)); err == nil {
		if url != m.URL {
			return none, build.ErrNotFound
		}
		layer, err := registry.SelectLayout(filetree.Directory(m.Path), upstream.RegistryReference(o))
		if err != nil {
			return none, err
		}
		tree, err := sourcetree.Archive(bytes.NewReader(layer))
		return repository.Content{Files: unwrapped(tree)}, err
	}
	if url != m.URL && !strings.HasPrefix(url, m.URL+"/") {
		return none, build.ErrNotFound
	}
	found, err := s.chartsOf(ctx, m)
	if err != nil {
		return none, err
	}
	for i := range found {
		if url == m.URL+"/"+found[i].Name || url == m.URL && len(found) == 1 {
			files, err := s.filesOf(&found[i])
			return repository.Content{Files: files, Artifact: true, Directory: m.Path}, err
		}
	}
	if len(found) > 0 || url != m.URL {
		return none, build.ErrNotFound
	}
	files, err := m.files(ctx, o)
	return repository.Content{Files: files, Directory: m.Path}, err
}

// unwrapped returns the directory of a packed chart, and other trees unchanged.
func unwrapped(tree *filetree.Tree) fs.FS {
	entries, err := fs.ReadDir(tree, ".")
	if err != nil || len(entries) != 1 || !entries[0].IsDir() {
		return tree
	}
	if _, err := fs.Stat(tree, entries[0].Name()+"/"+chartFile); err != nil {
		return tree
	}
	below, err := fs.Sub(tree, entries[0].Name())
	if err != nil {
		return tree
	}
	return below
}

// filesOf returns the files of a chart. Many sources may refer to one chart.
func (s *Sources) filesOf(c *Chart) (fs.FS, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.files == nil {
		tree, err := sourcetree.Archive(bytes.NewReader(c.Packed))
		if err != nil {
			return nil, err
		}
		c.files = unwrapped(tree)
	}
	return c.files, nil
}

func (s *Sources) chartsOf(ctx context.Context, m Mapping) ([]Chart, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, known := s.charts[m.Path]; known {
		return found, nil
	}
	found, err := ChartsIn(ctx, m.Path)
	if err != nil {
		return nil, err
	}
	if s.charts == nil {
		s.charts = map[string][]Chart{}
	}
	s.charts[m.Path] = found
	return found, nil
}

// Chart returns the packed chart that replaces a chart of a Helm repository, or build.ErrNotFound if the repository is not
// mapped. It is used as charts.Options.Local.
func (s *Sources) Chart(ctx context.Context, c charts.Chart) ([]byte, error) {
	url := strings.TrimRight(c.URL, "/")
	for _, m := range s.Mappings {
		if m.URL != url || cmp.Or(m.Kind, controllers.HelmRepository) != controllers.HelmRepository || m.Path == "" {
			continue
		}
		found, err := s.chartsOf(ctx, m)
		if err == nil && len(found) == 0 {
			continue // files of a source of another kind
		}
		var versions []string
		for _, f := range found {
			if f.Name == c.Name {
				versions = append(versions, f.Version)
			}
		}
		if err == nil && len(versions) == 0 {
			err = fmt.Errorf("chart %q not found", c.Name)
		}
		version := ""
		if err == nil {
			version, err = charts.Newest(versions, c.Version)
		}
		if err != nil && m.Kind != "" && len(found) > 0 {
			continue // the chart was not vendored
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s in place of %s: chart %s: %w", m.Path, c.URL, c.Name, err)
		}
		at := slices.IndexFunc(found, func(f Chart) bool { return f.Name == c.Name && f.Version == version })
		return found[at].Packed, nil
	}
	return nil, build.ErrNotFound
}
