// Package git reads clones of Git repositories: their commits and work trees as file systems with Git hashes, their
// history, and their submodules. It writes neither to the work tree nor to the repository, except to fetch.
package git

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5/osfs"
	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"github.com/fluxkit/flux/internal/git/filetree"
)

// Clone is a clone on disk. The caller must close it.
type Clone struct {
	at Location
	// gitDir is the directory with the Git data, and root the work tree, or "".
	gitDir, root string
	git          *gogit.Repository
	objects      *Objects
	// modules holds the opened clones of submodules by name.
	modules   map[string]*Clone
	modulesMu sync.Mutex
}

// Open opens the clone that contains a directory.
func Open(folder string) (*Clone, error) { return OpenAt(Location{Directory: folder}) }

// OpenAt opens the clone at a location.
func OpenAt(at Location) (*Clone, error) {
	gitDir, root, err := at.resolve()
	if err != nil {
		return nil, err
	}
	c := &Clone{at: at, gitDir: gitDir, root: root, objects: NewObjects(nil)}
	return c, c.load()
}

// reload reopens the repository, because go-git does not detect new packs.
func (c *Clone) reload() error {
	if err := c.objects.Close(); err != nil {
		return fmt.Errorf("closing the Git repository: %w", err)
	}
	return c.load()
}

// load opens the storage. Packs stay open because thousands of objects are read from them; large objects are read as
// streams.
func (c *Clone) load() error {
	c.objects.mu.Lock()
	defer c.objects.mu.Unlock()
	data := osfs.New(c.gitDir)
	if common := commonDirectory(c.gitDir); common != c.gitDir {
		data = dotgit.NewRepositoryFilesystem(data, osfs.New(common))
	}
	c.objects.store = newStore(filesystem.NewStorageWithOptions(data, cache.NewObjectLRUDefault(), filesystem.Options{
		KeepDescriptors: true, AlternatesFS: osfs.New("/"), LargeObjectThreshold: cacheMax,
	}))
	var err error
	if c.git, err = gogit.Open(c.objects.store, nil); err != nil {
		return fmt.Errorf("opening the Git repository: %w", err)
	}
	return nil
}

// Close closes the open packs.
func (c *Clone) Close() error {
	err := c.objects.Close()
	for _, module := range c.modules {
		err = errors.Join(err, module.Close())
	}
	return err
}

// Root returns the directory of the work tree, or "" for a bare repository.
func (c *Clone) Root() string { return c.root }

// Lacking returns the number of objects that were requested but are missing in the partial clone.
func (c *Clone) Lacking() int {
	c.objects.mu.Lock()
	defer c.objects.mu.Unlock()
	return len(c.objects.lacking)
}

// Optional calls read. Lacking ignores missing objects that only read requests.
func (c *Clone) Optional(read func() error) error {
	c.objects.mu.Lock()
	before := maps.Clone(c.objects.lacking)
	c.objects.mu.Unlock()
	err := read()
	c.objects.mu.Lock()
	defer c.objects.mu.Unlock()
	c.objects.lacking = before
	return err
}

// Shallow reports whether the clone contains only a part of the history.
func (c *Clone) Shallow() bool {
	c.objects.mu.Lock()
	defer c.objects.mu.Unlock()
	return c.objects.store.shallow()
}

// Partial reports whether the clone was made with a filter, so that objects may be missing.
func (c *Clone) Partial() bool {
	c.objects.mu.Lock()
	defer c.objects.mu.Unlock()
	return c.objects.store.partial()
}

// At returns the tree of a commit.
func (c *Clone) At(commit plumbing.Hash) (*filetree.Tree, error) { return c.objects.Tree(commit) }

// Remotes returns the addresses of the remotes in comparable form.
func (c *Clone) Remotes() ([]string, error) {
	found, err := c.objects.store.Config()
	if err != nil {
		return nil, fmt.Errorf("reading the remotes: %w", err)
	}
	return remotesIn(found), nil
}

func remotesIn(c *config.Config) (addresses []string) {
	for _, remote := range c.Remotes {
		for _, address := range remote.URLs {
			addresses = append(addresses, ComparableAddress(address))
		}
	}
	slices.Sort(addresses)
	return addresses
}

// Of reports whether the repository at an address is one of the remotes.
func (c *Clone) Of(address string) bool {
	remotes, err := c.Remotes()
	return err == nil && slices.Contains(remotes, ComparableAddress(address))
}

// Names returns the branches and tags of the clone, including remote branches.
func (c *Clone) Names() (branches, tags []string, err error) {
	c.objects.mu.Lock()
	defer c.objects.mu.Unlock()
	all, err := c.git.References()
	if err != nil {
		return nil, nil, fmt.Errorf("reading the references: %w", err)
	}
	err = all.ForEach(func(ref *plumbing.Reference) error {
		name := ref.Name()
		switch {
		case name.IsBranch():
			branches = append(branches, name.Short())
		case name.IsRemote() && ref.Type() == plumbing.HashReference:
			_, branch, _ := strings.Cut(name.Short(), "/")
			branches = append(branches, branch)
		case name.IsTag():
			tags = append(tags, name.Short())
		}
		return nil
	})
	for _, names := range []*[]string{&branches, &tags} {
		slices.Sort(*names)
		*names = slices.Compact(*names)
	}
	return branches, tags, err
}

// DefaultBranch returns the branch that HEAD of the remote origin refers to, or "" if the clone does not contain this
// reference.
func (c *Clone) DefaultBranch() string {
	c.objects.mu.Lock()
	defer c.objects.mu.Unlock()
	head, err := c.git.Reference(plumbing.NewRemoteHEADReferenceName(Origin), false)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(head.Target().String(), originBranches)
}
