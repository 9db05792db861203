package vendored

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/desired"
	"github.com/fluxkit/flux/pkg/build/generator"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/testrun"
)

// reader reads the sources that a repository refers to: from their servers, or from a folder.
type reader interface {
	// git returns all files of a revision of a repository.
	git(ctx context.Context, wanted Source, o *unstructured.Unstructured, lookup build.Lookup) (map[string][]byte, error)
	// oci returns the selected layer of an artifact.
	oci(ctx context.Context, wanted Source, o *unstructured.Unstructured, lookup build.Lookup) ([]byte, error)
	// bucket returns the objects of a bucket.
	bucket(ctx context.Context, wanted Source, o *unstructured.Unstructured, lookup build.Lookup) (map[string][]byte, error)
	// helm notes a Helm repository, or a chart in it.
	helm(ctx context.Context, wanted Source, chart *build.Chart) error
	// dependency notes a chart in a Helm repository that a chart in a source lacks.
	dependency(ctx context.Context, at place, wanted Source, chart *build.Chart) error
}

// walk finds all sources that a repository refers to.
type walk struct {
	reader
	repository *testrun.Repository
	options    build.Options
	// login returns credentials for registries. It may be nil.
	login build.Login
	// applied are the objects of the Kustomizations that were built.
	applied []*unstructured.Unstructured
	trees   map[string]tree
	// incomplete describes what was not read, and cannot be.
	incomplete []string
}

type tree struct {
	fs.FS
	err error
}

// run builds the Kustomizations from the cluster's folder on, reading their sources, and reads all
// other sources among their objects.
func (w *walk) run(ctx context.Context) error {
	w.trees = map[string]tree{}
	w.applied = slices.Clone(w.repository.Sync)
	w.options.Missing = func(controllers.ID, error) bool { return true }
	w.options.KeepUnset = true
	w.options.Lookup = build.FromObjects(nil)
	w.options.Generate = func(ctx context.Context, source controllers.ID, objects []*unstructured.Unstructured, _ build.Sources) (fs.FS, error) {
		return w.tree(ctx, source, slices.Concat(w.applied, objects))
	}
	var failures []error
	for _, ks := range w.repository.Sync {
		if !build.IsKustomization(ks) {
			continue
		}
		from, err := w.tree(ctx, build.SourceOf(ks), w.applied)
		if err != nil {
			return fmt.Errorf("reading the source of %s: %w", controllers.IDOf(ks.Object), err)
		}
		result, err := build.Recursive(ctx, from, ks, w.options, func(context.Context, controllers.ID) (fs.FS, error) { return nil, build.ErrNotFound })
		if result == nil {
			return err
		}
		failures = append(failures, w.unavailable(err))
		w.applied = append(w.applied, result.Unstructured()...)
	}
	last := map[controllers.ID]*unstructured.Unstructured{}
	var order []controllers.ID
	for _, o := range w.applied {
		ref := controllers.IDOf(o.Object)
		if last[ref] == nil {
			order = append(order, ref)
		}
		last[ref] = o
	}
	for _, ref := range order {
		if err := w.visit(ctx, last[ref]); err != nil {
			failures = append(failures, err)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(failures...)
}

// unavailable notes the Kustomizations whose sources no object defines, and returns the other errors.
func (w *walk) unavailable(err error) error {
	failures := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // what Recursive has joined
		failures = joined.Unwrap()
	}
	return errors.Join(slices.DeleteFunc(slices.Clone(failures), func(err error) bool {
		var child *build.ChildError
		var variables *build.VariablesError
		missing := errors.As(err, &child) && errors.Is(err, build.ErrNotFound) && !errors.As(err, &variables)
		if missing {
			w.omit("%s", err)
		}
		return missing
	})...)
}

// visit reads what an object refers to, unless it is suspended or applies to another cluster.
func (w *walk) visit(ctx context.Context, o *unstructured.Unstructured) error {
	k, known := controllers.KindOf(o.GroupVersionKind().Group, o.GetKind())
	if _, remote, _ := unstructured.NestedMap(o.Object, "spec", "kubeConfig"); !known || remote || k.Suspension.Is(o.Object) {
		return nil
	}
	ref := controllers.IDOf(o.Object)
	switch ref.Kind {
	case gitRepository, ociRepository, bucketKind:
		_, err := w.tree(ctx, ref, w.applied)
		var unsupported *unsupportedError
		if errors.As(err, &unsupported) {
			w.omit("%s", err)
			return nil
		}
		return err
	case helmRepository:
		return w.helm(ctx, Source{Kind: helmRepository, URL: urlOf(o)}, nil)
	case "HelmRelease", "HelmChart":
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
	ref := controllers.IDOf(o.Object)
	if part, ok, _ := unstructured.NestedMap(o.Object, "spec", "chart"); ok && part["kind"] == ociRepository {
		spec, _, _ := unstructured.NestedMap(part, "spec")
		source := &unstructured.Unstructured{Object: map[string]any{"kind": ociRepository, "spec": spec}}
		source.SetNamespace(o.GetNamespace())
		source.SetName(o.GetNamespace() + "-" + o.GetName())
		_, err := w.read(ctx, source, w.applied)
		return err
	}
	var from controllers.ID
	chart, err := build.ChartOf(ctx, o, build.HelmOptions{
		Lookup: build.FromObjects(w.applied), Missing: func(controllers.ID, error) bool { return true }, Login: w.login,
		Find: func(_ context.Context, wanted controllers.ID) (*unstructured.Unstructured, error) {
			if found := find(w.applied, wanted); found != nil {
				return found, nil
			}
			return nil, build.ErrNotFound
		},
		Sources: func(ctx context.Context, source controllers.ID) (fs.FS, error) {
			from = source
			return w.tree(ctx, source, w.applied)
		},
	})
	switch {
	case errors.Is(err, build.ErrNotFound) || errors.Is(err, build.ErrNoChart):
		w.omit("%s: %s", ref, err)
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", ref, err)
	case chart.URL == "":
		return w.dependencies(ctx, ref, from, chart)
	case chart.Name == "": // the chart of an OCIRepository
		return nil
	}
	if err := w.helm(ctx, Source{Kind: helmRepository, URL: strings.TrimRight(chart.URL, "/"), Chart: chart.Name, Version: chart.Version}, chart); err != nil {
		return fmt.Errorf("%s: %w", ref, err)
	}
	return nil
}

// tree returns the artifact of a source.
func (w *walk) tree(ctx context.Context, source controllers.ID, objects []*unstructured.Unstructured) (fs.FS, error) {
	if source.Kind == "ExternalArtifact" {
		return generator.Generate(ctx, source, objects, func(ctx context.Context, s controllers.ID) (fs.FS, error) { return w.tree(ctx, s, objects) })
	}
	o := find(objects, source)
	if o == nil {
		return nil, build.ErrNotFound
	}
	spec, err := json.Marshal(o.Object["spec"])
	if err != nil {
		return nil, err
	}
	key := source.String() + "\n" + string(spec)
	if known, ok := w.trees[key]; ok {
		return known.FS, known.err
	}
	w.trees[key] = tree{err: fmt.Errorf("%s includes itself", source)}
	found, err := w.read(ctx, o, objects)
	w.trees[key] = tree{found, err}
	return found, err
}

// read returns the artifact of a source, and reads it with the reader unless it is the repository.
func (w *walk) read(ctx context.Context, o *unstructured.Unstructured, objects []*unstructured.Unstructured) (fs.FS, error) {
	ref, ignore, lookup := controllers.IDOf(o.Object), desired.Text(o, "spec", "ignore"), build.FromObjects(objects)
	wanted := sourceOf(o)
	if strings.Contains(wanted.URL, "${") {
		return nil, fmt.Errorf("%s: its URL has a variable without a value: %s", ref, wanted.URL)
	}
	switch ref.Kind {
	case gitRepository:
		files := w.repository.Tree
		if !w.repository.Is(o) {
			content, err := w.git(ctx, wanted, o, lookup)
			if err != nil {
				return nil, named(ref, err)
			}
			files = build.NewTree(content)
		}
		included, err := build.Included(o, func(other controllers.ID) (fs.FS, error) {
			tree, err := w.tree(ctx, other, objects)
			if err != nil {
				return nil, fmt.Errorf("%s: reading %s of spec.include: %w", ref, other.Name, err)
			}
			return tree, nil
		})
		if err != nil {
			return nil, err
		}
		return build.Select(ctx, append([]build.Part{{Tree: files, Only: build.SparseCheckout(o)}}, included...), ignore)
	case ociRepository:
		layer, err := w.oci(ctx, wanted, o, lookup)
		if err != nil {
			return nil, named(ref, err)
		}
		content, err := build.Archive(bytes.NewReader(layer))
		if err != nil || desired.Text(o, "spec", "layerSelector", "operation") == "copy" {
			return content, err
		}
		return build.Select(ctx, []build.Part{{Tree: content}}, ignore)
	case bucketKind:
		objects, err := w.bucket(ctx, wanted, o, lookup)
		if err != nil {
			return nil, named(ref, err)
		}
		return build.Select(ctx, []build.Part{{Tree: build.NewTree(objects)}}, ignore)
	}
	return nil, fmt.Errorf("%s cannot be vendored: %w", ref, build.ErrNotFound)
}

// named adds an object to an error, unless it begins with it.
func named(ref controllers.ID, err error) error {
	if strings.HasPrefix(err.Error(), ref.String()) {
		return err
	}
	return fmt.Errorf("%s: %w", ref, err)
}

// find returns the last object with a reference, nil if there is none.
func find(objects []*unstructured.Unstructured, wanted controllers.ID) *unstructured.Unstructured {
	for _, o := range slices.Backward(objects) {
		if controllers.IDOf(o.Object) == wanted && o.GroupVersionKind().Group == "source.toolkit.fluxcd.io" {
			return o
		}
	}
	return nil
}

func urlOf(o *unstructured.Unstructured) string {
	return strings.TrimRight(desired.Text(o, "spec", "url"), "/")
}

// sourceOf returns what a GitRepository, OCIRepository or Bucket refers to.
func sourceOf(o *unstructured.Unstructured) Source {
	s := Source{Kind: o.GetKind(), URL: urlOf(o), MediaType: desired.Text(o, "spec", "layerSelector", "mediaType")}
	if s.Kind == bucketKind {
		s.URL = testrun.BucketURL(o.Object)
		if prefix := desired.Text(o, "spec", "prefix"); prefix != "" {
			s.Ref = map[string]string{"prefix": prefix}
		}
		return s
	}
	s.Ref, _, _ = unstructured.NestedStringMap(o.Object, "spec", "ref")
	s.Submodules, _, _ = unstructured.NestedBool(o.Object, "spec", "recurseSubmodules")
	return s
}
