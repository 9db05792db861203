package vendored

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/cloud"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository/upstream"
	"github.com/fluxkit/flux/pkg/testrun/sources"
)

// The actions that Fetch takes on a source.
const (
	Fetched = "fetched"
	Kept    = "kept"
	Removed = "removed"
)

// Changed is a source with the action that was taken.
type Changed struct {
	Source
	Action string `json:"action"`
}

// Result is the result of Fetch.
type Result struct {
	Folder  string    `json:"directory"`
	Sources []Changed `json:"sources"`
	// Incomplete describes the sources that are missing in the directory.
	Incomplete []string `json:"incomplete"`
}

// Count returns the number of sources with an action.
func (r *Result) Count(action string) int {
	n := 0
	for _, s := range r.Sources {
		if s.Action == action {
			n++
		}
	}
	return n
}

// Fetcher fetches the sources of a repository into a directory.
type Fetcher struct {
	// Options configures the builds of Kustomizations.
	Options build.Options
	// Charts returns a fetcher that fetches charts into a directory.
	Charts func(folder string) ClosingFetcher
	// Git finds the credentials of GitRepositories other than the Secrets in the repository, and Login
	// the credentials of registries.
	Git   upstream.GitAccess
	Login charts.Login
	// Buckets fetches the objects of buckets.
	Buckets func(ctx context.Context, r cloud.BucketRequest) ([]cloud.BucketObject, error)
	// Progress is called with each step.
	Progress func(step string)

	staging string
	charts  ClosingFetcher
	// old is the valid part of the directory's previous content, and next is the new content.
	old, next Index
	root      *os.Root
	// changed holds the keys of sources that were fetched.
	changed map[string]bool
}

// ClosingFetcher is a charts.Fetcher that must be closed.
type ClosingFetcher interface {
	charts.Fetcher
	Close() error
}

// Fetch writes the sources of the repositories to the directory. It does not change the directory unless all
// sources can be fetched.
func (f *Fetcher) Fetch(ctx context.Context, folder string, repositories ...*sources.Repository) (result *Result, err error) {
	done, err := f.open(folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	result = &Result{Folder: folder, Incomplete: []string{}}
	for _, repository := range repositories {
		w := &walk{reader: f, repository: repository, options: f.Options, login: f.Login}
		if err := w.run(ctx); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return nil, err
		}
		result.Incomplete = append(result.Incomplete, w.incomplete...)
	}
	slices.Sort(result.Incomplete)
	result.Incomplete = slices.Compact(result.Incomplete)
	all := f.next.Sources
	f.next.Sources = slices.DeleteFunc(slices.Clone(all), func(s Source) bool {
		return s.Kind == controllers.HelmRepository && s.Chart == "" && slices.ContainsFunc(all, func(t Source) bool { return t.URL == s.URL && t.Kind == s.Kind && t.Chart != "" })
	})
	slices.SortFunc(f.next.Sources, compareSources)
	if err := f.layouts(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := f.commit(); err != nil {
		return nil, fmt.Errorf("writing the sources to %s: %w", folder, err)
	}
	result.Sources = f.changes()
	return result, nil
}

// open reads the content of the directory, and creates a staging directory for fetched files. The returned
// function removes the staging directory, and the directory itself if it still has no index.
func (f *Fetcher) open(name string) (func() error, error) {
	entries, err := os.ReadDir(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	created := errors.Is(err, fs.ErrNotExist)
	if _, err := os.Stat(filepath.Join(name, indexFile)); err != nil && len(entries) > 0 && !staged(entries) {
		return nil, hint.Errorf("use an empty directory, or one that flux test vendor has written", "%s contains other files but no %s", name, indexFile)
	}
	if err := os.MkdirAll(name, 0o755); err != nil {
		return nil, err
	}
	if f.root, err = os.OpenRoot(name); err != nil {
		return nil, err
	}
	f.old, f.next, f.changed = f.valid(name), Index{APIVersion: apiVersion, Sources: []Source{}, Files: map[string]string{}}, map[string]bool{}
	path, err := os.MkdirTemp(name, stagingPrefix)
	if err == nil {
		f.staging = filepath.Base(path)
		f.charts = f.Charts(filepath.Join(path, "charts"))
		err = f.seed(filepath.Join(path, "charts"))
	}
	done := func() error {
		err := errors.Join(f.root.RemoveAll(f.staging), f.root.Close())
		if f.charts != nil {
			err = errors.Join(f.charts.Close(), err)
		}
		if created {
			_ = os.Remove(name) // the directory is empty if nothing was written
		}
		return err
	}
	if err != nil {
		return nil, errors.Join(err, done())
	}
	return done, nil
}

const stagingPrefix = ".staging-"

// staged reports whether a directory contains only the leftovers of an interrupted command.
func staged(entries []fs.DirEntry) bool {
	return !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), stagingPrefix) })
}

// valid returns the index of the directory, reduced to the files whose digests match.
func (f *Fetcher) valid(name string) Index {
	folder := &Folder{path: name, root: f.root}
	if folder.readIndex() != nil {
		return Index{Files: map[string]string{}}
	}
	for file := range folder.Files {
		if _, err := folder.check(file); err != nil {
			delete(folder.Files, file)
		}
	}
	return folder.Index
}

// seed copies the charts of the directory to the chart fetcher's cache.
func (f *Fetcher) seed(cache string) error {
	if err := os.Mkdir(cache, 0o700); err != nil {
		return err
	}
	for file, digest := range f.old.Files {
		if strings.HasPrefix(file, "helm/") {
			content, err := read(f.root, file, fileMax)
			if err == nil {
				err = os.WriteFile(filepath.Join(cache, strings.TrimPrefix(digest, "sha256:")+".tgz"), content, 0o600)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// has reports whether the directory contains a file with a digest, and keeps the file in that case.
func (f *Fetcher) has(name, digest string) bool {
	if f.next.Files[name] == digest {
		return true
	}
	if f.old.Files[name] == digest {
		f.next.Files[name] = digest
		return true
	}
	return false
}

// put stages a file unless the directory already contains it.
func (f *Fetcher) put(name string, content []byte) error {
	sum := sha256.Sum256(content)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	if f.has(name, digest) {
		return nil
	}
	at := path.Join(f.staging, name)
	err := f.root.MkdirAll(path.Dir(at), 0o755)
	if err == nil {
		err = f.root.WriteFile(at, content, 0o644)
	}
	f.next.Files[name] = digest
	return err
}

// content reads a file that was kept or staged.
func (f *Fetcher) content(name string) ([]byte, error) {
	content, err := read(f.root, path.Join(f.staging, name), fileMax)
	if errors.Is(err, fs.ErrNotExist) {
		return read(f.root, name, fileMax)
	}
	return content, err
}

// add adds a source to the new index.
func (f *Fetcher) add(s Source, fetched bool) {
	if _, known := f.next.find(s); !known {
		f.next.Sources = append(f.next.Sources, s)
		f.changed[s.key()] = fetched
	}
}

// changes compares the new index with the previous one.
func (f *Fetcher) changes() []Changed {
	all := []Changed{}
	for _, s := range f.next.Sources {
		c := Changed{s, Kept}
		if old, known := f.old.find(s); f.changed[s.key()] || !known || old.Revision != s.Revision {
			c.Action = Fetched
		}
		all = append(all, c)
	}
	for _, s := range f.old.Sources {
		if _, known := f.next.find(s); !known {
			all = append(all, Changed{s, Removed})
		}
	}
	slices.SortFunc(all, func(a, b Changed) int { return compareSources(a.Source, b.Source) })
	return all
}
