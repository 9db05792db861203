// Package snapshot reads a revision or the work tree of a Git repository as a file system with Git
// hashes. It writes neither to the work tree nor to the repository.
package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/fluxkit/flux/internal/budget"
)

// Repository is a clone on disk. The caller must close it.
type Repository struct {
	git     *git.Repository
	objects *storage
	// borrowed is set if the caller closes the storage.
	borrowed bool
	at       Location
	// gitDir is the folder with the Git data, and root the work tree, or "".
	gitDir, root string

	// mu guards the store, which does not support concurrent reads.
	mu       sync.Mutex
	contents contents
	// lacking holds the objects that were read and are missing in a partial clone.
	lacking map[plumbing.Hash]bool
	modules modules
}

// ErrNoRepository is returned if a folder is not in a clone.
var ErrNoRepository = errors.New("not in a Git repository")

// ErrPartial is returned if a partial clone does not contain the content of a file.
var ErrPartial = errors.New("the partial clone does not have the content of this file")

// Open opens the clone that contains a folder.
func Open(folder string) (*Repository, error) { return OpenAt(Location{Folder: folder}) }

// OpenAt opens the clone at a location.
func OpenAt(at Location) (*Repository, error) {
	gitDir, root, err := at.resolve()
	if err != nil {
		return nil, err
	}
	r := &Repository{at: at, gitDir: gitDir, root: root, lacking: map[plumbing.Hash]bool{}}
	return r, r.reload()
}

// reload reads the repository again, since new packs are not noticed.
func (r *Repository) reload() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.objects != nil {
		if err := errors.Join(r.objects.release(), r.objects.Close()); err != nil {
			return fmt.Errorf("closing the Git repository: %w", err)
		}
	}
	r.objects = openStorage(r.gitDir)
	var err error
	if r.git, err = git.Open(r.objects, nil); err != nil {
		return fmt.Errorf("opening the Git repository: %w", err)
	}
	return nil
}

// OpenStore returns the repository with the objects in a store. The caller closes the store.
func OpenStore(store *filesystem.Storage) (*Repository, error) {
	head := plumbing.NewHashReference(plumbing.HEAD, plumbing.ZeroHash) // go-git requires a HEAD
	if err := store.SetReference(head); err != nil {
		return nil, fmt.Errorf("opening the Git repository: %w", err)
	}
	objects := newStorage(store)
	opened, err := git.Open(objects, nil)
	if err != nil {
		return nil, fmt.Errorf("opening the Git repository: %w", err)
	}
	return &Repository{git: opened, objects: objects, borrowed: true, lacking: map[plumbing.Hash]bool{}}, nil
}

// Close closes the open packs.
func (r *Repository) Close() error {
	if r.borrowed {
		return r.objects.release()
	}
	return errors.Join(r.objects.release(), r.objects.Close(), r.modules.close())
}

// Lacking returns the number of objects that were read and that the partial clone does not have.
func (r *Repository) Lacking() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.lacking)
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

// Commit resolves a branch, tag or other revision.
func (r *Repository) Commit(revision string) (plumbing.Hash, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found, ok := (names{r.git, r.objects}).resolve(revision); ok {
		return found, nil
	}
	shallow, err := r.git.Storer.Shallow()
	return plumbing.ZeroHash, &UnknownError{revision, err == nil && len(shallow) > 0}
}

// Resolve resolves a revision in any syntax of git. It runs git for syntax that go-git does not
// support, such as abbreviated names and dates.
func (r *Repository) Resolve(ctx context.Context, revision string) (plumbing.Hash, error) {
	found, err := r.Commit(revision)
	var unknown *UnknownError
	if !errors.As(err, &unknown) || plumbing.IsHash(revision) {
		return found, err
	}
	found, parseErr := r.program().parse(ctx, revision)
	switch {
	case parseErr == nil:
		return found, nil
	case ctx.Err() != nil:
		return found, parseErr
	case errors.Is(parseErr, ErrNoGit) && strings.ContainsAny(revision, "{:"):
		return found, fmt.Errorf("reading revision %q: %w", revision, ErrNoGit)
	}
	return found, err
}

// Parents returns the parents of a commit, which a shallow clone may not have.
func (r *Repository) Parents(commit plumbing.Hash) ([]plumbing.Hash, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, err := r.git.CommitObject(commit)
	if err != nil {
		return nil, fmt.Errorf("reading commit %s: %w", commit, err)
	}
	return found.ParentHashes, nil
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

// MergeBase returns the best common ancestor of two commits. In a shallow clone, git searches it,
// because go-git fails at the end of the history.
func (r *Repository) MergeBase(ctx context.Context, one, other plumbing.Hash) (plumbing.Hash, error) {
	if r.Shallow() {
		found, err := r.program().run(ctx, nil, "merge-base", one.String(), other.String())
		var failed *programError
		if errors.As(err, &failed) && failed.text == "" {
			return plumbing.ZeroHash, ErrUnrelated
		}
		return plumbing.NewHash(found), err
	}
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
	n := &node{name: name, folder: true, hash: hash}
	n.load = func() (nodes []*node, err error) {
		nodes, n.links, err = r.entries(hash)
		return nodes, err
	}
	return n
}

// entries returns the files and folders of a tree object, and its submodules.
func (r *Repository) entries(tree plumbing.Hash) ([]*node, map[string]func() (plumbing.Hash, error), error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, err := object.GetTree(r.git.Storer, tree)
	if errors.Is(err, plumbing.ErrObjectNotFound) && r.Partial() {
		r.lacking[tree] = true
		return nil, nil, ErrPartial
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading tree %s: %w", tree, err)
	}
	var nodes []*node
	links := map[string]func() (plumbing.Hash, error){}
	for _, entry := range found.Entries {
		switch {
		case entry.Mode.IsFile() && entry.Mode != linkMode:
			nodes = append(nodes, &node{
				name: entry.Name, hash: entry.Hash,
				size: func() (int64, error) { return r.size(entry.Hash) },
				read: func() ([]byte, error) { return r.blob(entry.Hash) },
			})
		case entry.Mode == folderMode:
			nodes = append(nodes, r.folder(entry.Name, entry.Hash))
		case entry.Mode == filemode.Submodule:
			links[entry.Name] = func() (plumbing.Hash, error) { return entry.Hash, nil }
		}
	}
	return nodes, links, nil
}

// size returns the size of a file.
func (r *Repository) size(hash plumbing.Hash) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	size, err := r.objects.size(hash)
	var exceeded *budget.ExceededError
	if errors.As(err, &exceeded) {
		return size, nil // only reading it is an error
	}
	return size, missing(r, hash, err)
}

// missing returns the error of reading a file, nil for none.
func missing(r *Repository, hash plumbing.Hash, err error) error {
	if errors.Is(err, plumbing.ErrObjectNotFound) && r.Partial() {
		r.lacking[hash] = true
		return ErrPartial
	}
	if err != nil {
		return fmt.Errorf("reading blob %s: %w", hash, err)
	}
	return nil
}

// blob reads a file. It caches small files, since two revisions share most of them.
func (r *Repository) blob(hash plumbing.Hash) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if content, ok := r.contents.of(hash); ok {
		return content, nil
	}
	found, err := r.git.BlobObject(hash)
	if err != nil {
		return nil, missing(r, hash, err)
	}
	content, err := readAll(found)
	if err == nil {
		r.contents.add(hash, content)
	}
	return content, err
}
