package git

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/git/filetree"
)

// maxEntries is the maximum number of entries in all directories of a tree, because a few objects can represent any
// number of entries.
const maxEntries = 1_000_000

// ErrPartial is returned if a partial clone does not contain the content of a file.
var ErrPartial = errors.New("the content of this file is missing from the partial clone")

// Objects reads the objects of a repository. It rejects objects that are too large before it inflates them.
type Objects struct {
	// mu guards the store, which does not support concurrent reads.
	mu       sync.Mutex
	store    *store
	contents contents
	// lacking holds the objects that were requested but are missing in a partial clone.
	lacking map[plumbing.Hash]bool
}

// NewObjects returns the objects in a storage. The caller must close them.
func NewObjects(files *filesystem.Storage) *Objects {
	return &Objects{store: newStore(files), lacking: map[plumbing.Hash]bool{}}
}

// Close closes the storage.
func (o *Objects) Close() error { return errors.Join(o.Update(), o.store.files.Close()) }

// Update finds packs that were added to the storage.
func (o *Objects) Update() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.store.closePacks()
}

// Storer returns the storage, which rejects objects that are too large.
func (o *Objects) Storer() storage.Storer { return o.store }

// Peel returns the commit to which a tag object refers, or the commit itself if the object is a commit.
func (o *Objects) Peel(hash plumbing.Hash) (plumbing.Hash, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	commit, err := o.commit(hash)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	return commit.Hash, nil
}

func (o *Objects) commit(hash plumbing.Hash) (*object.Commit, error) {
	for {
		tag, err := object.GetTag(o.store, hash)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading tag %s: %w", hash, err)
		}
		hash = tag.Target
	}
	commit, err := object.GetCommit(o.store, hash)
	if err != nil {
		return nil, fmt.Errorf("reading commit %s: %w", hash, err)
	}
	return commit, nil
}

// files returns the tree object of a commit.
func (o *Objects) files(commit plumbing.Hash) (*object.Tree, error) {
	found, err := o.commit(commit)
	if err != nil {
		return nil, err
	}
	files, err := found.Tree()
	if err != nil {
		return nil, fmt.Errorf("reading the tree of commit %s: %w", commit, err)
	}
	return files, nil
}

// Tree returns the tree of a commit.
func (o *Objects) Tree(commit plumbing.Hash) (*filetree.Tree, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	found, err := o.commit(commit)
	if err != nil {
		return nil, err
	}
	return filetree.New(o.directory(".", found.TreeHash, new(int))), nil
}

// directory returns a tree object that is read on first access. It adds to the number of entries of the whole tree.
func (o *Objects) directory(name string, hash plumbing.Hash, entries *int) *filetree.Node {
	list := func() ([]*filetree.Node, error) { return o.list(hash, entries) }
	return &filetree.Node{Name: name, Mode: fs.ModeDir, Identity: known(hash), List: list}
}

func known(hash plumbing.Hash) func() (plumbing.Hash, error) {
	return func() (plumbing.Hash, error) { return hash, nil }
}

// list returns the entries of a tree object.
func (o *Objects) list(hash plumbing.Hash, entries *int) ([]*filetree.Node, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	found, err := object.GetTree(o.store, hash)
	if err != nil {
		return nil, o.missing("tree", hash, err)
	}
	if *entries += len(found.Entries); *entries > maxEntries {
		return nil, budget.TooMany("", "the repository", "entries", maxEntries)
	}
	nodes := make([]*filetree.Node, len(found.Entries))
	for i, entry := range found.Entries {
		if !fs.ValidPath(entry.Name) || strings.Contains(entry.Name, "/") || entry.Name == "." {
			return nil, fmt.Errorf("an entry of tree %s has the invalid name %q", hash, entry.Name)
		}
		nodes[i] = o.node(entry.Name, entry.Mode, entry.Hash, entries)
	}
	return nodes, nil
}

// node returns an entry of a tree object or of the index.
func (o *Objects) node(name string, mode filemode.FileMode, hash plumbing.Hash, entries *int) *filetree.Node {
	switch mode {
	case filemode.Dir:
		return o.directory(name, hash, entries)
	case filemode.Symlink:
		return &filetree.Node{Name: name, Mode: fs.ModeSymlink, Identity: known(hash)}
	case filemode.Submodule:
		return &filetree.Node{Name: name, Mode: filetree.Submodule, Identity: known(hash)}
	}
	return &filetree.Node{Name: name, File: &blob{o, hash, mode == filemode.Executable}}
}

// missing returns the error for an object that cannot be read.
func (o *Objects) missing(what string, hash plumbing.Hash, err error) error {
	if errors.Is(err, plumbing.ErrObjectNotFound) && o.store.partial() {
		o.lacking[hash] = true
		return ErrPartial
	}
	return fmt.Errorf("reading %s %s: %w", what, hash, err)
}

// blob is a file in a repository.
type blob struct {
	objects    *Objects
	hash       plumbing.Hash
	executable bool
}

// Hash implements filetree.File.
func (b *blob) Hash() (plumbing.Hash, error) { return b.hash, nil }

// Executable implements filetree.File.
func (b *blob) Executable() (bool, error) { return b.executable, nil }

// Size implements filetree.File.
func (b *blob) Size() (int64, error) {
	b.objects.mu.Lock()
	defer b.objects.mu.Unlock()
	if size, ok := b.objects.contents.sizeOf(b.hash); ok {
		return size, nil
	}
	size, err := b.objects.store.size(b.hash)
	if err == nil || errors.As(err, new(*budget.ExceededError)) {
		return size, nil // only reading the content fails
	}
	return 0, b.objects.missing("blob", b.hash, err)
}

// Read implements filetree.File. It caches small files, because most of them are the same in two revisions.
func (b *blob) Read() ([]byte, error) {
	b.objects.mu.Lock()
	defer b.objects.mu.Unlock()
	if content, ok := b.objects.contents.of(b.hash); ok {
		return content, nil
	}
	found, err := object.GetBlob(b.objects.store, b.hash)
	if err != nil {
		return nil, b.objects.missing("blob", b.hash, err)
	}
	reader, err := found.Reader()
	if err != nil {
		return nil, err
	}
	defer func() { _ = reader.Close() }() // opened read-only
	content := make([]byte, found.Size)
	if _, err := io.ReadFull(reader, content); err != nil {
		return nil, err
	}
	b.objects.contents.add(b.hash, content)
	return content, nil
}

const (
	// cacheMax is the maximum size of a cached file, and cacheTotal the maximum size of the cache in memory. Larger
	// files are read each time and hashed as streams.
	cacheMax   = 1 << 20
	cacheTotal = 128 << 20
)

// contents caches small files, most of which are the same in two revisions and in the work tree.
type contents struct {
	mu     sync.Mutex
	byHash map[plumbing.Hash][]byte
	size   int
}

// of returns a copy of the content of a file, false if it is not cached.
func (c *contents) of(hash plumbing.Hash) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	content, ok := c.byHash[hash]
	return slices.Clone(content), ok
}

// sizeOf returns the size of a file, false if it is not cached.
func (c *contents) sizeOf(hash plumbing.Hash) (int64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	content, ok := c.byHash[hash]
	return int64(len(content)), ok
}

// add caches the content of a file, if it is small.
func (c *contents) add(hash plumbing.Hash, content []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.byHash[hash]; known || len(content) >= cacheMax || c.size+len(content) > cacheTotal {
		return
	}
	if c.byHash == nil {
		c.byHash = map[plumbing.Hash][]byte{}
	}
	c.byHash[hash] = slices.Clone(content)
	c.size += len(content)
}

// store is a storage that rejects objects that are too large to be read.
type store struct {
	storage.Storer
	files *filesystem.Storage
	// packs is opened when the first object is read. known caches the sizes of objects that are small enough to be
	// read.
	packs *packs
	known map[plumbing.Hash]int64
}

func newStore(files *filesystem.Storage) *store {
	return &store{Storer: files, files: files, known: map[plumbing.Hash]int64{}}
}

// size returns the size of an object, see packs.size.
func (s *store) size(hash plumbing.Hash) (size int64, err error) {
	if size, ok := s.known[hash]; ok {
		return size, nil
	}
	if err := s.openPacks(); err != nil {
		return 0, err
	}
	if size, err = s.packs.size(hash); err == nil {
		s.known[hash] = size
	}
	return size, err
}

// EncodedObject returns an object, unless it is too large to be read.
func (s *store) EncodedObject(t plumbing.ObjectType, hash plumbing.Hash) (plumbing.EncodedObject, error) {
	if err := s.openPacks(); err != nil {
		return nil, err
	}
	found, err := s.packs.object(hash)
	switch {
	case errors.Is(err, plumbing.ErrObjectNotFound): // it is in a file of its own
		if _, err := s.size(hash); err != nil && !errors.Is(err, plumbing.ErrObjectNotFound) {
			return nil, err
		}
		return s.Storer.EncodedObject(t, hash)
	case err == nil && t != plumbing.AnyObject && t != found.Type():
		return nil, plumbing.ErrObjectNotFound
	}
	return found, err
}

// openPacks opens the packs unless they are open.
func (s *store) openPacks() (err error) {
	if s.packs == nil {
		s.packs, err = openPacks(s.files.Filesystem())
	}
	return err
}

// closePacks closes the packs.
func (s *store) closePacks() error {
	if s.packs == nil {
		return nil
	}
	defer func() { s.packs = nil }()
	return s.packs.close()
}

// encoded is an object that was read.
type encoded struct {
	hash plumbing.Hash
	inflated
}

var _ plumbing.EncodedObject = (*encoded)(nil)

// Hash implements plumbing.EncodedObject.
func (e *encoded) Hash() plumbing.Hash { return e.hash }

// Type implements plumbing.EncodedObject.
func (e *encoded) Type() plumbing.ObjectType { return e.kind }

// Size implements plumbing.EncodedObject.
func (e *encoded) Size() int64 { return int64(len(e.content)) }

// Reader implements plumbing.EncodedObject.
func (e *encoded) Reader() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(e.content)), nil
}

// SetType implements plumbing.EncodedObject.
func (e *encoded) SetType(t plumbing.ObjectType) { e.kind = t }

// SetSize implements plumbing.EncodedObject. The size is that of the content.
func (e *encoded) SetSize(int64) {}

// Writer implements plumbing.EncodedObject.
func (e *encoded) Writer() (io.WriteCloser, error) { return nil, fs.ErrPermission }

// Config returns the configuration without extensions that go-git rejects although they do not change how objects and
// references are read.
func (s *store) Config() (*config.Config, error) {
	c, err := s.Storer.Config()
	if err != nil || c.Raw == nil || !c.Raw.HasSection("extensions") {
		return c, err
	}
	extensions := c.Raw.Section("extensions")
	for _, option := range extensions.Options {
		switch strings.ToLower(option.Key) {
		case "partialclone", "worktreeconfig", "preciousobjects", "relativeworktrees":
			extensions.RemoveOption(option.Key)
		}
	}
	return c, nil
}

// shallow reports whether the repository contains only a part of the history.
func (s *store) shallow() bool {
	commits, err := s.Shallow()
	return err == nil && len(commits) > 0
}

// partial reports whether the repository was cloned with a filter, so that objects may be missing.
func (s *store) partial() bool {
	c, err := s.Config()
	if err != nil || c.Raw == nil {
		return false
	}
	for _, remote := range c.Raw.Section("remote").Subsections {
		if remote.Option("promisor") == "true" {
			return true
		}
	}
	return false
}
