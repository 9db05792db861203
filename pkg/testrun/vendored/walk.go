package vendored

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/git/filetree"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
	"github.com/fluxkit/flux/pkg/repository/desired"
	"github.com/fluxkit/flux/pkg/repository/mapped"
	"github.com/fluxkit/flux/pkg/testrun/sources"
)

// reader reads the sources that a repository refers to, from their servers or from a directory.
type reader interface {
	// git returns all files of a revision of a repository.
	git(ctx context.Context, wanted Source, o *unstructured.Unstructured, lookup build.Lookup) (map[string][]byte, error)
	// oci returns the selected layer of an artifact.
	oci(ctx context.Context, wanted Source, o *unstructured.Unstructured, lookup build.Lookup) ([]byte, error)
	// bucket returns the objects of a bucket.
	bucket(ctx context.Context, wanted Source, o *unstructured.Unstructured, lookup build.Lookup) (map[string][]byte, error)
	// helm records a Helm repository, or a chart in it.
	helm(ctx context.Context, wanted Source, chart *charts.Chart) error
	// dependency records a chart in a Helm repository, on which a chart in a source depends.
	dependency(ctx context.Context, at place, wanted Source, chart *charts.Chart) error
}

// walk finds all sources that a repository refers to.
type walk struct {
	reader
	repository *sources.Repository
	options    build.Options
	// login returns credentials for registries. It may be nil.
	login charts.Login

	graph *repository.Graph
	// applied holds the objects of the rendered Kustomizations.
	applied []*unstructured.Unstructured
	// incomplete describes the sources that cannot be read.
	incomplete []string
}

// run renders the Kustomizations of the cluster from their sources, and reads all other sources among their objects.
func (w *walk) run(ctx context.Context) error {
	identity := w.repository.Identity()
	w.options.KeepUnset = true
	var err error
	w.graph, err = repository.Open(ctx, repository.Revision{Tree: filetree.From(w.repository.Tree), Name: "the repository"}, repository.Options{
		Path: w.repository.Path, Namespace: w.repository.Namespace, Remotes: identity.Remotes, Branches: identity.Branches,
		Contents: w, Build: w.options,
		Missing: func(*unstructured.Unstructured, controllers.ID, error) bool { return true },
	})
	if err != nil {
		return err
	}
	deployed, err := w.graph.Deploy()
	if err != nil {
		return err
	}
	var failures []error
	for _, o := range deployed.Omitted {
		if o.Unavailable {
			w.omit("%s: %s", o.Owner, o.Reason)
		} else {
			failures = append(failures, o.Err)
		}
	}
	w.applied = deployed.Objects()
	for _, o := range w.applied {
		if err := w.visit(ctx, o); err != nil {
			failures = append(failures, err)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(failures...)
}

// visit reads the sources that an object refers to, unless it is suspended or applies to another cluster.
func (w *walk) visit(ctx context.Context, o *unstructured.Unstructured) error {
	id := controllers.IDOf(o.Object)
	k, known := id.Flux()
	if !known || controllers.IsRemote(o.Object) || k.Suspension.Is(o.Object) {
		return nil
	}
	switch id.Kind {
	case controllers.GitRepository, controllers.OCIRepository, controllers.Bucket:
		_, err := w.graph.Content(id)
		var unsupported *unsupportedError
		if errors.As(err, &unsupported) {
			w.omit("%s", err)
			return nil
		}
		return err
	case controllers.HelmRepository:
		return w.helm(ctx, Source{Kind: controllers.HelmRepository, URL: urlOf(o)}, nil)
	case controllers.HelmRelease, controllers.HelmChart:
		return w.release(ctx, o)
	}
	return nil
}

func (w *walk) omit(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(w.incomplete, text) {
		w.incomplete = append(w.incomplete, text)
	}
}

// release reads the chart of a HelmRelease or HelmChart.
func (w *walk) release(ctx context.Context, o *unstructured.Unstructured) error {
	id := controllers.IDOf(o.Object)
	if part, ok, _ := unstructured.NestedMap(o.Object, "spec", "chart"); ok && part["kind"] == controllers.OCIRepository {
		spec, _, _ := unstructured.NestedMap(part, "spec")
		source := &unstructured.Unstructured{Object: map[string]any{"kind": controllers.OCIRepository, "spec": spec}}
		source.SetNamespace(o.GetNamespace())
		source.SetName(o.GetNamespace() + "-" + o.GetName())
		_, err := w.Content(ctx, repository.Request{Source: controllers.IDOf(source.Object), Object: source, Lookup: w.lookup()})
		return err
	}
	var from controllers.ID
	chart, err := charts.ChartOf(ctx, o, charts.Options{
		Lookup: w.lookup(), Missing: func(controllers.ID, error) bool { return true }, Login: w.login,
		Find: func(_ context.Context, wanted controllers.ID) (*unstructured.Unstructured, error) {
			return w.graph.Object(wanted)
		},
		Sources: func(_ context.Context, source controllers.ID) (fs.FS, error) {
			from = source
			return w.graph.Content(source)
		},
	})
	switch {
	case errors.Is(err, build.ErrNotFound) || errors.Is(err, charts.ErrNoChart):
		w.omit("%s: %s", id, err)
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", id, err)
	case chart.URL == "":
		return w.dependencies(ctx, id, from, chart)
	case chart.Name == "": // the chart of an OCIRepository
		return nil
	}
	if err := w.helm(ctx, Source{Kind: controllers.HelmRepository, URL: strings.TrimRight(chart.URL, "/"), Chart: chart.Name, Version: chart.Version}, chart); err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	return nil
}

// lookup returns the ConfigMaps and Secrets of the repository, whose values may be encrypted.
func (w *walk) lookup() build.Lookup { return build.FromObjects(w.applied) }

// Content implements repository.Contents with the reader.
func (w *walk) Content(ctx context.Context, r repository.Request) (repository.Content, error) {
	if r.Object == nil {
		return repository.Content{}, build.ErrNotFound
	}
	files, err := w.files(ctx, sourceOf(r.Object), r.Object, r.Lookup)
	if err != nil && !strings.HasPrefix(err.Error(), r.Source.String()) {
		err = fmt.Errorf("%s: %w", r.Source, err)
	}
	return repository.Content{Files: files}, err
}

// files returns the files of a source.
func (w *walk) files(ctx context.Context, wanted Source, o *unstructured.Unstructured, lookup build.Lookup) (fs.FS, error) {
	if strings.Contains(wanted.URL, "${") {
		return nil, fmt.Errorf("its URL has a variable without a value: %s", wanted.URL)
	}
	read := w.bucket
	switch wanted.Kind {
	case controllers.GitRepository:
		read = w.git
	case controllers.OCIRepository:
		layer, err := w.oci(ctx, wanted, o, lookup)
		if err != nil {
			return nil, err
		}
		return sourcetree.Archive(bytes.NewReader(layer))
	case controllers.Bucket:
	default:
		return nil, fmt.Errorf("it cannot be vendored: %w", build.ErrNotFound)
	}
	files, err := read(ctx, wanted, o, lookup)
	if err != nil {
		return nil, err
	}
	return filetree.InMemory(files)
}

// find returns an object of the repository, or nil.
func (w *walk) find(wanted controllers.ID) *unstructured.Unstructured {
	o, err := w.graph.Object(wanted)
	if err != nil {
		return nil
	}
	return o
}

func urlOf(o *unstructured.Unstructured) string {
	return strings.TrimRight(desired.Text(o, "spec", "url"), "/")
}

// sourceOf returns the source that a GitRepository, OCIRepository or Bucket defines.
func sourceOf(o *unstructured.Unstructured) Source {
	s := Source{Kind: o.GetKind(), URL: urlOf(o), MediaType: desired.Text(o, "spec", "layerSelector", "mediaType")}
	if s.Kind == controllers.Bucket {
		s.URL = mapped.BucketURL(o.Object)
		if prefix := desired.Text(o, "spec", "prefix"); prefix != "" {
			s.Ref = map[string]string{"prefix": prefix}
		}
		return s
	}
	s.Ref, _, _ = unstructured.NestedStringMap(o.Object, "spec", "ref")
	s.Submodules, _, _ = unstructured.NestedBool(o.Object, "spec", "recurseSubmodules")
	return s
}
