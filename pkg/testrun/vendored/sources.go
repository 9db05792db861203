package vendored

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/git/remote"
	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository/mapped"
	"github.com/fluxkit/flux/pkg/repository/upstream"
)

// git implements reader.
func (f *Fetcher) git(ctx context.Context, wanted Source, o *unstructured.Unstructured, lookup build.Lookup) (map[string][]byte, error) {
	wanted.File = archivePath(wanted)
	if s, known := f.next.find(wanted); known {
		return f.unpack(ctx, s.File)
	}
	f.Progress("fetching " + wanted.String())
	source, err := f.gitSource(ctx, o, lookup)
	if err != nil {
		return nil, err
	}
	source.URL, source.Submodules = wanted.URL, wanted.Submodules
	revision := git.Revision(controllers.GitReferenceOf(o.Object))
	resolved, err := source.Resolve(ctx, revision)
	if err != nil {
		return nil, err
	}
	if old, known := f.known(wanted); known && old.Revision == resolved {
		return f.keep(ctx, old)
	}
	fetched, err := source.Fetch(ctx, revision)
	if err != nil {
		return nil, err
	}
	files, err := filesOf(ctx, fetched.Tree)
	if err := errors.Join(err, fetched.Close()); err != nil {
		return nil, err
	}
	wanted.Revision = fetched.Revision
	return files, f.pack(wanted, files)
}

// known returns a source of the directory whose archive exists, or the zero value.
func (f *Fetcher) known(wanted Source) (Source, bool) {
	old, known := f.old.find(wanted)
	if !known || f.old.Files[old.File] == "" {
		return Source{}, false
	}
	return old, true
}

// keep keeps a source in the directory, and returns its files.
func (f *Fetcher) keep(ctx context.Context, old Source) (map[string][]byte, error) {
	f.has(old.File, f.old.Files[old.File])
	f.add(old, false)
	return f.unpack(ctx, old.File)
}

// pack adds a fetched source with its files.
func (f *Fetcher) pack(s Source, files map[string][]byte) error {
	packed, err := mapped.PackFiles(files)
	if err == nil {
		err = f.put(s.File, packed)
	}
	f.add(s, true)
	return err
}

// mapRemedy is the remedy for sources that cannot be fetched.
const mapRemedy = "serve a directory in its place with 'flux test --map'"

// gitSource returns a GitRepository with its credentials. Without the Secret, the repository may be public.
func (f *Fetcher) gitSource(ctx context.Context, o *unstructured.Unstructured, lookup build.Lookup) (remote.Source, error) {
	access := f.Git
	access.Remedy = mapRemedy
	access.Data = func(ctx context.Context, secret controllers.ID) (map[string][]byte, error) {
		data, err := lookup.Data(ctx, secret)
		if errors.Is(err, build.ErrNotFound) {
			return nil, nil
		}
		return data, err
	}
	return access.Source(ctx, o)
}

// filesOf returns the files of a repository and of its submodules. .gitmodules would refer to commits
// that are not served.
func filesOf(ctx context.Context, tree fs.FS) (map[string][]byte, error) {
	files, err := mapped.ReadFiles(ctx, tree)
	maps.DeleteFunc(files, func(name string, _ []byte) bool { return path.Base(name) == ".gitmodules" })
	return files, err
}

func (f *Fetcher) unpack(ctx context.Context, name string) (map[string][]byte, error) {
	content, err := f.content(name)
	if err != nil {
		return nil, err
	}
	return unpacked(ctx, content)
}

// oci implements reader.
func (f *Fetcher) oci(ctx context.Context, wanted Source, o *unstructured.Unstructured, lookup build.Lookup) ([]byte, error) {
	wanted.File = layoutPath(wanted.URL)
	blob := func(digest string) string { return path.Join(wanted.File, registry.LayoutBlob(digest)) }
	if s, known := f.next.find(wanted); known {
		return f.content(blob(s.Layer))
	}
	f.Progress("fetching " + wanted.String())
	access, err := upstream.OCIAccess(ctx, o, upstream.Credentials{Lookup: lookup, Missing: func(controllers.ID, error) bool { return true }, Login: f.Login})
	if err != nil {
		return nil, err
	}
	fetched := false
	found, layer, digests, err := registry.Download(ctx, wanted.URL, upstream.RegistryReference(o), access,
		func(digest string) bool { return f.has(blob(digest), digest) },
		func(digest string, content []byte) error {
			fetched = true
			return f.put(blob(digest), content)
		})
	if err != nil {
		return nil, upstream.ExplainOCI(ctx, access, o, err)
	}
	for _, digest := range digests {
		if f.next.Files[blob(digest)] != digest {
			return nil, fmt.Errorf("%s has a different digest", digest)
		}
	}
	wanted.Revision, wanted.Layer = strings.TrimPrefix(found.Tag+"@"+found.Digest, "@"), layer
	f.add(wanted, fetched)
	return f.content(blob(layer))
}

// layouts writes the indexes of the OCI layouts.
func (f *Fetcher) layouts() error {
	all := map[string][]registry.Artifact{}
	for _, s := range f.next.Sources {
		if s.Kind != controllers.OCIRepository {
			continue
		}
		tag, digest, tagged := strings.Cut(s.Revision, "@")
		if !tagged {
			tag, digest = "", s.Revision
		}
		if a := (registry.Artifact{Tag: tag, Digest: digest}); !slices.ContainsFunc(all[s.File], func(b registry.Artifact) bool { return a.Tag == b.Tag && a.Digest == b.Digest }) {
			all[s.File] = append(all[s.File], a)
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(all)) {
		slices.SortFunc(all[folder], func(a, b registry.Artifact) int { return strings.Compare(a.Tag+a.Digest, b.Tag+b.Digest) })
		index, err := registry.LayoutIndex(all[folder], func(digest string) ([]byte, error) {
			return f.content(path.Join(folder, registry.LayoutBlob(digest)))
		})
		if err != nil {
			return err
		}
		err = errors.Join(f.put(path.Join(folder, registry.LayoutFile), []byte(registry.LayoutVersion)), f.put(path.Join(folder, indexFile), index))
		if err != nil {
			return err
		}
	}
	return nil
}

// helm implements reader.
func (f *Fetcher) helm(ctx context.Context, wanted Source, chart *charts.Chart) error {
	if _, known := f.next.find(wanted); known {
		return nil
	}
	if chart == nil {
		f.add(wanted, false)
		return nil
	}
	f.Progress("fetching " + wanted.String())
	fetched, err := f.charts.Fetch(ctx, *chart)
	if err != nil {
		return err
	}
	wanted.Revision = fetched.Version
	wanted.File = chartPath(wanted)
	if f.has(wanted.File, "sha256:"+fetched.Digest) {
		f.add(wanted, false)
		return nil
	}
	content, err := read(f.root, path.Join(f.staging, "charts", fetched.Digest+".tgz"), fileMax)
	if err == nil {
		err = f.put(wanted.File, content)
	}
	f.add(wanted, true)
	return err
}
