// Package snapshot shows what a Git repository holds at a revision, or in its
// work tree, as a tree of files with Git's hashes. It reads objects where they
// are and writes nothing, neither to the work tree nor to the repository.
package snapshot

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// Repository is a clone on disk. It has to be closed.
type Repository struct {
	git   *git.Repository
	store *filesystem.Storage
	root  string

	// mu guards the store, which several must not read from at once.
	mu       sync.Mutex
	contents map[plumbing.Hash][]byte
}

// ErrNoRepository says that a folder is in no clone.
var ErrNoRepository = errors.New("there is no Git repository around it")

// Open opens the clone that a folder is in.
func Open(folder string) (*Repository, error) {
	opened, err := git.PlainOpenWithOptions(folder, &git.PlainOpenOptions{DetectDotGit: true, EnableDotGitCommonDir: true})
	if errors.Is(err, git.ErrRepositoryNotExists) {
		opened, err = git.PlainOpen(folder) // a bare one has no .git to be found
	}
	if errors.Is(err, git.ErrRepositoryNotExists) {
		return nil, ErrNoRepository
	}
	if err != nil {
		return nil, fmt.Errorf("opening the Git repository: %w", err)
	}
	r := &Repository{contents: map[plumbing.Hash][]byte{}}
	if work, err := opened.Worktree(); err == nil {
		r.root = work.Filesystem.Root()
	} else if !errors.Is(err, git.ErrIsBareRepository) {
		return nil, fmt.Errorf("opening the work tree: %w", err)
	}
	r.git = opened
	if plain, ok := opened.Storer.(*filesystem.Storage); ok {
		// Packs stay open: thousands of objects are read out of them.
		r.store = filesystem.NewStorageWithOptions(plain.Filesystem(), cache.NewObjectLRUDefault(), filesystem.Options{KeepDescriptors: true})
		if r.git, err = git.Open(r.store, nil); err != nil {
			return nil, fmt.Errorf("opening the Git repository: %w", err)
		}
	}
	return r, nil
}

// In is a repository whose objects are in a store, which stays the caller's.
func In(store *filesystem.Storage) (*Repository, error) {
	head := plumbing.NewHashReference(plumbing.HEAD, plumbing.ZeroHash) // a repository has one
	if err := store.SetReference(head); err != nil {
		return nil, fmt.Errorf("opening the Git repository: %w", err)
	}
	opened, err := git.Open(store, nil)
	if err != nil {
		return nil, fmt.Errorf("opening the Git repository: %w", err)
	}
	return &Repository{git: opened, contents: map[plumbing.Hash][]byte{}}, nil
}

// Close closes what is open of the repository.
func (r *Repository) Close() error {
	if r.store == nil {
		return nil
	}
	return r.store.Close()
}

// Root is the folder of the work tree, "" for a bare repository.
func (r *Repository) Root() string { return r.root }

// Remotes are the addresses of the repository's remotes.
func (r *Repository) Remotes() ([]string, error) {
	remotes, err := r.git.Remotes()
	if err != nil {
		return nil, fmt.Errorf("reading the remotes: %w", err)
	}
	var addresses []string
	for _, remote := range remotes {
		addresses = append(addresses, remote.Config().URLs...)
	}
	return addresses, nil
}

// Names are the branches and tags that the clone knows, those of its remotes too.
func (r *Repository) Names() (branches, tags []string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all, err := r.git.References()
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

// UnknownError says that the clone has no such revision.
type UnknownError struct {
	Revision string
	// Shallow tells that the clone holds only a part of the history.
	Shallow bool
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("this clone has no revision %q", e.Revision)
}

// Commit finds the commit of a branch, a tag or any other revision. A branch
// that is not here is the one of the remote: it is all that a pipeline has.
func (r *Repository) Commit(revision string) (plumbing.Hash, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range []string{revision, "origin/" + revision} {
		if found, err := r.git.ResolveRevision(plumbing.Revision(name)); err == nil {
			return *found, nil
		}
	}
	shallow, err := r.git.Storer.Shallow()
	return plumbing.ZeroHash, &UnknownError{revision, err == nil && len(shallow) > 0}
}

// ErrUnrelated says that two commits have no history in common.
var ErrUnrelated = errors.New("they have no commit in common")

// MergeBase is the commit at which two began to differ.
func (r *Repository) MergeBase(one, other plumbing.Hash) (plumbing.Hash, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, err := r.git.CommitObject(one)
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("reading commit %s: %w", one, err)
	}
	b, err := r.git.CommitObject(other)
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("reading commit %s: %w", other, err)
	}
	common, err := a.MergeBase(b)
	if errors.Is(err, plumbing.ErrObjectNotFound) || err == nil && len(common) == 0 {
		return plumbing.ZeroHash, ErrUnrelated
	}
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("looking for the commit in common: %w", err)
	}
	return common[0].Hash, nil
}

// At is the tree of a commit.
func (r *Repository) At(commit plumbing.Hash) (*Tree, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, err := r.git.CommitObject(commit)
	if err != nil {
		return nil, fmt.Errorf("reading commit %s: %w", commit, err)
	}
	return &Tree{root: r.folder(".", found.TreeHash)}, nil
}

// folder is a tree object that is read when somebody looks into it.
func (r *Repository) folder(name string, hash plumbing.Hash) *node {
	return &node{name: name, folder: true, hash: hash, load: func() ([]*node, error) { return r.entries(hash) }}
}

func (r *Repository) entries(tree plumbing.Hash) ([]*node, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, err := object.GetTree(r.git.Storer, tree)
	if err != nil {
		return nil, fmt.Errorf("reading tree %s: %w", tree, err)
	}
	var nodes []*node
	for _, entry := range found.Entries {
		switch {
		case entry.Mode.IsFile() && entry.Mode != linkMode:
			nodes = append(nodes, &node{
				name: entry.Name, hash: entry.Hash,
				read: func() ([]byte, error) { return r.blob(entry.Hash) },
			})
		case entry.Mode == folderMode:
			nodes = append(nodes, r.folder(entry.Name, entry.Hash))
		}
	}
	return nodes, nil
}

// blob reads a file. Two revisions share most of them.
func (r *Repository) blob(hash plumbing.Hash) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if content, ok := r.contents[hash]; ok {
		return content, nil
	}
	found, err := r.git.BlobObject(hash)
	if err != nil {
		return nil, fmt.Errorf("reading blob %s: %w", hash, err)
	}
	content, err := readAll(found)
	if err == nil && len(content) < keepMost {
		r.contents[hash] = content
	}
	return content, err
}
