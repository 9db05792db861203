// Package vendored fetches the sources that a repository refers to into a directory, so that flux test
// can serve them without network access. It prints nothing.
package vendored

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository/mapped"
)

const (
	indexFile  = "index.json"
	apiVersion = "test.fluxkit.dev/v1"
	// indexMax, fileMax and foldersMax bound the index, each file, and all files.
	indexMax, fileMax, folderMax = 16 << 20, 256 << 20, 4 << 30
)

// Source is a source in the directory: a revision of a GitRepository, OCIRepository or Bucket, or a chart of
// a HelmRepository.
type Source struct {
	Kind string `json:"kind"`
	// URL is spec.url, or the mapped.BucketURL of a Bucket.
	URL string `json:"url"`
	// Ref holds the fields of spec.ref, or spec.prefix of a Bucket. MediaType is spec.layerSelector.mediaType.
	Ref        map[string]string `json:"ref,omitempty"`
	MediaType  string            `json:"mediaType,omitempty"`
	Submodules bool              `json:"submodules,omitempty"`
	// Chart is the name of a chart, and Version its version or range in the spec. Both are empty for a
	// HelmRepository without used charts.
	Chart   string `json:"chart,omitempty"`
	Version string `json:"version,omitempty"`
	// Revision is the revision to which the reference or range was resolved.
	Revision string `json:"revision,omitempty"`
	// File is an archive, a packed chart, or an OCI layout. Layer is the content of an OCIRepository.
	File  string `json:"file,omitempty"`
	Layer string `json:"layer,omitempty"`
	// ETags holds the ETags of Bucket objects.
	ETags map[string]string `json:"etags,omitempty"`
}

// String returns the name of the source in errors.
func (s Source) String() string {
	text := s.Kind + " " + s.URL
	if s.Chart != "" {
		text += ", chart " + s.Chart
	}
	for _, field := range slices.Sorted(maps.Keys(s.Ref)) {
		text += ", " + field + " " + s.Ref[field]
	}
	if s.Version != "" {
		text += ", version " + s.Version
	}
	return text
}

// key identifies a source by the fields of the objects in a repository.
func (s Source) key() string {
	s.Revision, s.File, s.Layer, s.ETags = "", "", "", nil
	text, _ := json.Marshal(s) // texts only
	return string(text)
}

// Index is the content of the directory.
type Index struct {
	APIVersion string   `json:"apiVersion"`
	Sources    []Source `json:"sources"`
	// Files maps the paths of all files to their digests (sha256:…).
	Files map[string]string `json:"files"`
}

// find returns the source that an object refers to.
func (i *Index) find(wanted Source) (Source, bool) {
	at := slices.IndexFunc(i.Sources, func(s Source) bool {
		// A Helm repository with charts also matches a request without a chart.
		return s.key() == wanted.key() || wanted.Kind == controllers.HelmRepository && wanted.Chart == "" && s.Kind == wanted.Kind && s.URL == wanted.URL
	})
	if at < 0 {
		return wanted, false
	}
	return i.Sources[at], true
}

// Folder is a directory with sources whose files have been verified.
type Folder struct {
	Index
	path string
	root *os.Root
	// added holds additional files to serve with a source, by its key.
	added map[string]map[string][]byte
}

// Open reads the index of a directory, and verifies that the directory contains exactly the listed files with their
// digests.
func Open(name string) (*Folder, error) {
	remedy := "fetch the sources with 'flux test vendor " + hint.Quote(name) + "'"
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, hint.Errorf(remedy, "opening the directory of sources: %w", err)
	}
	f := &Folder{path: name, root: root, added: map[string]map[string][]byte{}}
	if err = f.readIndex(); err == nil {
		err = f.verify()
	}
	if err != nil {
		return nil, errors.Join(hint.Errorf(remedy, "reading the sources in %s: %w", name, err), root.Close())
	}
	return f, nil
}

// Close closes the directory.
func (f *Folder) Close() error { return f.root.Close() }

func (f *Folder) readIndex() error {
	text, err := read(f.root, indexFile, indexMax)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &f.Index); err != nil {
		return fmt.Errorf("%s: %w", indexFile, err)
	}
	if f.APIVersion != apiVersion {
		return fmt.Errorf("%s: apiVersion %q is not %s", indexFile, f.APIVersion, apiVersion)
	}
	for _, s := range f.Sources {
		if s.File != "" && !slices.Contains([]string{archivePath(s), chartPath(s), layoutPath(s.URL)}, s.File) {
			return fmt.Errorf("%s: %s has an unexpected file %q", indexFile, s, s.File)
		}
		if s.File != "" && f.Files[s.File] == "" && f.Files[path.Join(s.File, registry.LayoutFile)] == "" {
			return fmt.Errorf("%s: file %s of %s is not listed", indexFile, s.File, s)
		}
	}
	return nil
}

// kindFolders lists the directories whose files must all be in the index.
var kindFolders = []string{"bucket", "git", "helm", "oci"}

func (f *Folder) verify() error {
	total := int64(0)
	for _, name := range slices.Sorted(maps.Keys(f.Files)) {
		size, err := f.check(name)
		if err != nil {
			return err
		}
		if total += size; total > folderMax {
			return &budget.ExceededError{Name: f.path, Fact: "it is larger than " + budget.Size(folderMax)}
		}
	}
	for _, folder := range kindFolders {
		err := fs.WalkDir(f.root.FS(), folder, func(name string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) && name == folder {
				return nil
			}
			if err == nil && !entry.IsDir() && f.Files[name] == "" {
				err = fmt.Errorf("%s is not listed in %s", name, indexFile)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// check verifies the digest of a file, and returns its size.
func (f *Folder) check(name string) (int64, error) {
	top, _, _ := strings.Cut(name, "/")
	if !fs.ValidPath(name) || !filepath.IsLocal(name) || !slices.Contains(kindFolders, top) {
		return 0, fmt.Errorf("%s: invalid path %q", indexFile, name)
	}
	info, err := f.root.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		return 0, err
	}
	file, err := f.root.Open(name)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }() // read-only
	sum := sha256.New()
	size, err := io.Copy(sum, budget.Reader(file, fileMax, budget.TooLarge(name, "file", fileMax)))
	if err != nil {
		return 0, err
	}
	if got := "sha256:" + hex.EncodeToString(sum.Sum(nil)); got != f.Files[name] {
		return 0, fmt.Errorf("%s has the digest %s instead of %s", name, got, f.Files[name])
	}
	return size, nil
}

func read(root *os.Root, name string, most int64) ([]byte, error) {
	file, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // read-only
	return budget.ReadAll(file, name, "file", most)
}

// content reads a file that was verified.
func (f *Folder) content(name string) ([]byte, error) { return read(f.root, name, fileMax) }

// Mappings returns the mappings that replace the sources, except sources for which serves reports another
// mapping.
//
// A Helm repository is mapped to the directory with all its charts.
func (f *Folder) Mappings(serves func(kind, url string) bool) []mapped.Mapping {
	var all []mapped.Mapping
	known := map[string]bool{}
	for _, s := range f.Sources {
		if serves(s.Kind, s.URL) {
			continue
		}
		m := mapped.Mapping{URL: s.URL, Kind: s.Kind, Added: f.added[s.key()]}
		switch {
		case s.Kind == controllers.GitRepository || s.Kind == controllers.Bucket:
			m.ETags, m.Path, m.Ref = s.ETags, filepath.Join(f.path, filepath.FromSlash(s.File)), map[string]any{}
			for field, value := range s.Ref {
				m.Ref[field] = value
			}
		case known[s.Kind+s.URL]:
			continue
		case s.Kind == controllers.OCIRepository:
			m.Path = filepath.Join(f.path, filepath.FromSlash(s.File))
		case s.Chart != "":
			m.Path = filepath.Join(f.path, filepath.FromSlash(path.Dir(s.File)))
		}
		known[s.Kind+s.URL] = true
		all = append(all, m)
	}
	return all
}

var notInNames = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^a-zA-Z0-9.+_-]+`) })

// slug returns a file name for an untrusted URL.
func slug(url string, more ...string) string {
	const readable, unique = 60, 10
	name := url
	if _, rest, ok := strings.Cut(url, "://"); ok {
		name = rest
	}
	if _, rest, ok := strings.Cut(name, "@"); ok {
		name = rest
	}
	name = strings.Trim(notInNames().ReplaceAllString(name, "-"), "-.")
	sum := sha256.Sum256([]byte(url + "\n" + strings.Join(more, "\n")))
	return name[:min(len(name), readable)] + "-" + hex.EncodeToString(sum[:])[:unique]
}

func archivePath(s Source) string {
	folder := "git/"
	if s.Kind == controllers.Bucket {
		folder = "bucket/"
	}
	return folder + slug(s.URL, s.key()) + ".tar.gz"
}

func chartPath(s Source) string {
	name := notInNames().ReplaceAllString(s.Chart+"-"+s.Revision, "-")
	return "helm/" + slug(s.URL) + "/" + name + ".tgz"
}

func layoutPath(url string) string { return "oci/" + slug(url) }

func compareSources(a, b Source) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.URL, b.URL), strings.Compare(a.key(), b.key()))
}
