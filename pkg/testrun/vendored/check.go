package vendored

import (
	"bytes"
	"context"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/repository/mapped"
	"github.com/fluxkit/flux/pkg/testrun/sources"
)

// checker reads sources from a directory and records the missing ones.
type checker struct {
	*Folder
	repository *sources.Repository
	serves     func(kind, url string) bool
	missing    []string
}

// Prepare adds the dependencies of charts to the repository, and to the result of Mappings. It returns an
// error that lists the sources that are neither in the directory nor served by other mappings. It does
// not report other problems of the repository, because the controllers report them.
func (f *Folder) Prepare(ctx context.Context, repository *sources.Repository, options build.Options, serves func(kind, url string) bool) error {
	c := &checker{Folder: f, repository: repository, serves: serves}
	w := &walk{reader: c, repository: repository, options: options}
	err := w.run(ctx)
	if ctx.Err() != nil {
		return err
	}
	if len(c.missing) == 0 {
		return nil
	}
	slices.Sort(c.missing)
	c.missing = slices.Compact(c.missing)
	return hint.Errorf("fetch it with 'flux test vendor "+hint.Quote(f.path)+"', or serve a directory in its place with --map",
		"not in %s: %s", f.path, strings.Join(c.missing, "; "))
}

// lookUp returns a source in the directory.
func (c *checker) lookUp(wanted Source) (Source, bool) {
	s, ok := c.find(wanted)
	if !ok && !c.serves(wanted.Kind, wanted.URL) {
		c.missing = append(c.missing, wanted.String())
	}
	return s, ok && !c.serves(wanted.Kind, wanted.URL)
}

// git implements reader.
func (c *checker) git(ctx context.Context, wanted Source, _ *unstructured.Unstructured, _ build.Lookup) (map[string][]byte, error) {
	return c.archive(ctx, wanted)
}

// bucket implements reader. Buckets that cannot be vendored are fetched by source-controller.
func (c *checker) bucket(ctx context.Context, wanted Source, o *unstructured.Unstructured, _ build.Lookup) (map[string][]byte, error) {
	if err := supported(o); err != nil {
		return nil, err
	}
	return c.archive(ctx, wanted)
}

// archive returns the files of a source that is stored as one archive.
func (c *checker) archive(ctx context.Context, wanted Source) (map[string][]byte, error) {
	s, ok := c.lookUp(wanted)
	if !ok {
		return nil, build.ErrNotFound
	}
	content, err := c.content(s.File)
	if err != nil {
		return nil, err
	}
	return unpacked(ctx, content)
}

func unpacked(ctx context.Context, packed []byte) (map[string][]byte, error) {
	tree, err := sourcetree.Archive(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return mapped.ReadFiles(ctx, tree)
}

// oci implements reader.
func (c *checker) oci(_ context.Context, wanted Source, _ *unstructured.Unstructured, _ build.Lookup) ([]byte, error) {
	s, ok := c.lookUp(wanted)
	if !ok {
		return nil, build.ErrNotFound
	}
	return c.content(path.Join(s.File, registry.LayoutBlob(s.Layer)))
}

// helm implements reader.
func (c *checker) helm(_ context.Context, wanted Source, _ *charts.Chart) error {
	c.lookUp(wanted)
	return nil
}
