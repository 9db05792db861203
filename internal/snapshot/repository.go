// Package snapshot reads a revision or the work tree of a Git repository as a file system with Git
// hashes. It writes neither to the work tree nor to the repository.
package snapshot

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// Repository is a clone on disk. The caller must close it.
type Repository struct {
	git   *git.Repository
	store *filesystem.Storage
	root  string

	// mu guards the store, which does not support concurrent reads.
	mu       sync.Mutex
	contents map[plumbing.Hash][]byte
}

// ErrNoRepository is returned if a folder is not in a clone.
var ErrNoRepository = errors.New("not in a Git repository")

// Open opens the clone that contains a folder.
func Open(folder string) (*Repository, error) {
	opened, err := git.PlainOpenWithOptions(folder, &git.PlainOpenOptions{DetectDotGit: true, EnableDotGitCommonDir: true})
	if errors.Is(err, git.ErrRepositoryNotExists) {
		opened, err = git.PlainOpen(folder) // bare repositories have no .git to detect
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
		// Keep packs open: thousands of objects are read from them.
		r.store = filesystem.NewStorageWithOptions(plain.Filesystem(), cache.NewObjectLRUDefault(), filesystem.Options{KeepDescriptors: true, AlternatesFS: osfs.New("/")})
		if r.git, err = git.Open(r.store, nil); err != nil {
			return nil, fmt.Errorf("opening the Git repository: %w", err)
		}
	}
	return r, nil
}

// OpenStore returns the repository with the objects in a store. The caller closes the store.
func OpenStore(store *filesystem.Storage) (*Repository, error) {
	head := plumbing.NewHashReference(plumbing.HEAD, plumbing.ZeroHash) // go-git requires a HEAD
	if err := store.SetReference(head); err != nil {
		return nil, fmt.Errorf("opening the Git repository: %w", err)
	}
	opened, err := git.Open(store, nil)
	if err != nil {
		return nil, fmt.Errorf("opening the Git repository: %w", err)
	}
	return &Repository{git: opened, contents: map[plumbing.Hash][]byte{}}, nil
}

// Close closes the open packs.
func (r *Repository) Close() error {
	if r.store == nil {
		return nil
	}
	return r.store.Close()
}

// Root returns the folder of the work tree, or "" for a bare repository.
func (r *Repository) Root() string { return r.root }

// Remotes returns the addresses of the remotes.
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

// Names returns the branches and tags of the clone, including remote branches.
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

// UnknownError is returned for a revision that the clone does not contain.
type UnknownError struct {
	Revision string
	// Shallow reports whether the clone contains only a part of the history.
	Shallow bool
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("this clone has no revision %q", e.Revision)
}

// Commit resolves a branch, tag or other revision. A branch without a local copy is resolved at
// origin, as in the clones of CI systems.
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

// Exactly resolves the full name of a reference, or a full commit SHA.
func (r *Repository) Exactly(name string) (plumbing.Hash, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	hash := plumbing.NewHash(name)
	if hash.String() != strings.ToLower(name) {
		found, err := r.git.ResolveRevision(plumbing.Revision(name))
		if err != nil {
			return plumbing.ZeroHash, &UnknownError{Revision: name}
		}
		hash = *found
	}
	if _, err := r.git.CommitObject(hash); err != nil {
		return plumbing.ZeroHash, &UnknownError{Revision: name}
	}
	return hash, nil
}

// DefaultBranch returns the branch that HEAD of the remote origin refers to, or "" if the clone
// does not have it.
func (r *Repository) DefaultBranch() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	head, err := r.git.Reference(plumbing.NewRemoteHEADReferenceName("origin"), false)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(head.Target().String(), "refs/remotes/origin/")
}

// ErrUnrelated is returned if two commits have no common ancestor.
var ErrUnrelated = errors.New("the commits have no common ancestor")

// MergeBase returns the best common ancestor of two commits.
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
		return plumbing.ZeroHash, fmt.Errorf("finding the merge base: %w", err)
	}
	return common[0].Hash, nil
}

// At returns the tree of a commit.
func (r *Repository) At(commit plumbing.Hash) (*Tree, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, err := r.git.CommitObject(commit)
	if err != nil {
		return nil, fmt.Errorf("reading commit %s: %w", commit, err)
	}
	return &Tree{root: r.folder(".", found.TreeHash)}, nil
}

// folder returns a tree object that is read on first access.
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

// blob reads a file. It caches small files, since two revisions share most of them.
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
	if err == nil && len(content) < cacheMax {
		r.contents[hash] = content
	}
	return content, err
}
