package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// packStore is where fetched objects go.
type packStore interface {
	storer.Storer
	HasEncodedObject(plumbing.Hash) error
}

// Repository is the newest state of a branch and what is added to it.
type Repository struct {
	remote Remote
	branch plumbing.ReferenceName
	folder string
	store  *filesystem.Storage

	// head is the commit to build on: the branch's, the default branch's where
	// the branch is new, zero in an empty repository.
	head plumbing.Hash
	// base is the commit that was fetched.
	base plumbing.Hash
	// known is where the branch is on the server.
	known plumbing.Hash
	// beside is another parent of the next commit, zero for none.
	beside plumbing.Hash
	// added are the objects of the commits that are to be pushed.
	added []plumbing.Hash
	// unsent are the objects that were ever made here and not pushed: they are
	// in the store, and yet the server lacks them.
	unsent map[plumbing.Hash]bool
}

// Open fetches the newest state of a branch. A branch that does not exist
// starts at the default branch, or from nothing in an empty repository.
func Open(ctx context.Context, remote Remote, branch string) (*Repository, error) {
	r, err := New(remote, branch)
	if err != nil {
		return nil, err
	}
	if err := r.Refresh(ctx); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// New returns an empty repository, for one that does not exist yet. Nothing is
// asked of the server.
func New(remote Remote, branch string) (*Repository, error) {
	folder, err := makeFolder()
	if err != nil {
		return nil, fmt.Errorf("making room for the repository: %w", err)
	}
	return &Repository{
		remote: remote, branch: plumbing.NewBranchReferenceName(branch), folder: folder,
		store:  filesystem.NewStorage(osfs.New(folder), cache.NewObjectLRUDefault()),
		unsent: map[plumbing.Hash]bool{},
	}, nil
}

// Move goes on with a repository at another address: what was made here is
// kept, what the server has is found out by Refresh.
func (r *Repository) Move(remote Remote) { r.remote = remote }

// Refresh goes to the newest state of the branch and forgets commits that
// were not pushed.
func (r *Repository) Refresh(ctx context.Context) error {
	found, err := r.remote.fetch(ctx, r.branch, r.store)
	if err != nil {
		return r.remote.explain(ctx, "cloning", err)
	}
	r.head, r.known, r.added = found.start(), found.branch, nil
	r.base, r.beside = r.head, plumbing.ZeroHash
	return nil
}

// Pushable asks the server whether a push would be taken at all.
func (r *Repository) Pushable(ctx context.Context) error { return r.remote.ProbePush(ctx) }

// Close removes the temporary folder.
func (r *Repository) Close() error {
	return errors.Join(r.store.Close(), os.RemoveAll(r.folder))
}

// Head is the hash of the newest commit, "" where there is none.
func (r *Repository) Head() string {
	if r.head.IsZero() {
		return ""
	}
	return r.head.String()
}

// Branch is the branch that commits go to.
func (r *Repository) Branch() string { return r.branch.Short() }

// Branched tells whether the branch exists on the server.
func (r *Repository) Branched() bool { return !r.known.IsZero() }

// Empty tells whether there is no commit at all.
func (r *Repository) Empty() bool { return r.head.IsZero() }

// ReadFile returns a file of the newest commit; its error is fs.ErrNotExist
// where there is no such file.
func (r *Repository) ReadFile(path string) ([]byte, error) {
	tree, err := r.tree()
	if err != nil {
		return nil, err
	}
	file, err := tree.File(path)
	if errors.Is(err, object.ErrFileNotFound) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	reader, err := file.Reader()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	data, err := io.ReadAll(reader)
	return data, errors.Join(err, reader.Close())
}

// ReadDir returns the names in a folder of the newest commit, those of folders
// with a slash behind; its error is fs.ErrNotExist where there is no such folder.
func (r *Repository) ReadDir(path string) ([]string, error) {
	tree, err := r.tree()
	if err == nil && path != "" && path != "." {
		tree, err = tree.Tree(path)
	}
	if errors.Is(err, object.ErrDirectoryNotFound) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	var names []string
	for _, entry := range tree.Entries {
		name := entry.Name
		if !entry.Mode.IsFile() {
			name += "/"
		}
		names = append(names, name)
	}
	return names, nil
}

func (r *Repository) tree() (*object.Tree, error) {
	if r.head.IsZero() {
		return &object.Tree{}, nil
	}
	commit, err := object.GetCommit(r.store, r.head)
	if err != nil {
		return nil, fmt.Errorf("reading commit %s: %w", r.head, err)
	}
	tree, err := commit.Tree()
	if err != nil {
		return nil, fmt.Errorf("reading the tree of commit %s: %w", r.head, err)
	}
	return tree, nil
}

// Change is a commit to make.
type Change struct {
	// Message is the commit's message.
	Message string
	// AuthorName and AuthorEmail are who the commit is by.
	AuthorName, AuthorEmail string
	// When is the commit's time.
	When time.Time
	// Files are the contents of files by their paths.
	Files map[string][]byte
	// Sign returns the signature of a commit; nil leaves it unsigned.
	Sign func(commit []byte) (string, error)
}

// Commit adds a commit in which the files have the given contents. Where they
// have them already, it adds none and returns false.
func (r *Repository) Commit(c Change) (bool, error) {
	before, err := r.tree()
	if err != nil {
		return false, err
	}
	w := treeWriter{store: r.store, unsent: r.unsent}
	after, err := w.put(before, "", c.Files)
	if err != nil {
		return false, err
	}
	if after == before.Hash {
		return false, nil
	}
	by := object.Signature{Name: c.AuthorName, Email: c.AuthorEmail, When: c.When}
	commit := &object.Commit{Author: by, Committer: by, Message: c.Message, TreeHash: after, ParentHashes: r.parents()}
	if err := sign(commit, c.Sign); err != nil {
		return false, err
	}
	hash, err := w.save(commit)
	if err != nil {
		return false, err
	}
	r.head, r.beside = hash, plumbing.ZeroHash
	r.added = append(r.added, w.added...)
	return true, nil
}

func sign(commit *object.Commit, by func([]byte) (string, error)) error {
	if by == nil {
		return nil
	}
	unsigned := &plumbing.MemoryObject{}
	if err := commit.EncodeWithoutSignature(unsigned); err != nil {
		return fmt.Errorf("encoding the commit to sign: %w", err)
	}
	reader, err := unsigned.Reader()
	if err != nil {
		return fmt.Errorf("encoding the commit to sign: %w", err)
	}
	var text bytes.Buffer
	if _, err := text.ReadFrom(reader); err != nil {
		return fmt.Errorf("encoding the commit to sign: %w", err)
	}
	commit.PGPSignature, err = by(text.Bytes())
	if err != nil {
		return fmt.Errorf("signing the commit: %w", err)
	}
	return nil
}

// ErrMoved says that somebody else has pushed to the branch in the meantime:
// Refresh, make the commit again and push that.
var ErrMoved = errors.New("the branch has moved on the server")

// Push makes the branch on the server have the commits that were added. When the
// connection is lost before the server has confirmed that, the branch is looked
// at: if it has the commits, arrived is called with what was lost.
func (r *Repository) Push(ctx context.Context, arrived func(error)) error {
	if r.head == r.known {
		return nil
	}
	pack := func(w io.Writer) error {
		_, err := packfile.NewEncoder(w, r.store, false).Encode(r.added, 0)
		return err
	}
	now, err := r.remote.update(ctx, r.branch, r.known, r.head, pack)
	if err != nil {
		there, failed := r.lookAgain(ctx, err)
		if !there {
			return failed
		}
		arrived(err)
	} else if now != r.head {
		return ErrMoved
	}
	r.known, r.base, r.added = r.head, r.head, nil
	clear(r.unsent)
	return nil
}

// lookAgain asks the server where the branch is after a push that has failed:
// it may have arrived before the connection was lost, or be refused because
// another one was faster, which servers say in words of their own.
func (r *Repository) lookAgain(ctx context.Context, err error) (there bool, failed error) {
	var lost *unconfirmedError
	unconfirmed := errors.As(err, &lost)
	if ctx.Err() != nil {
		return false, r.remote.explain(ctx, "pushing to", err)
	}
	found, asking := r.remote.fetch(ctx, r.branch, r.store)
	switch {
	case asking == nil && found.branch == r.head:
		return true, nil
	case asking == nil && found.branch != r.known:
		return false, ErrMoved
	case asking == nil && unconfirmed:
		err = &lostPushError{err: err, missing: r.branch.Short()}
	case unconfirmed:
		err = &lostPushError{err: err, asking: asking}
	}
	return false, r.remote.explain(ctx, "pushing to", err)
}

// lostPushError is a push without an answer, and what the server says of the
// branch afterwards.
type lostPushError struct {
	err error
	// missing is the branch that has not got the commits, asking why that could
	// not be found out.
	missing string
	asking  error
}

func (e *lostPushError) Error() string {
	if e.asking != nil {
		return fmt.Sprintf("connection lost before the server confirmed the push (%s), and it cannot be asked again (%s): the push may have arrived", e.err, e.asking)
	}
	return fmt.Sprintf("connection lost before the server confirmed the push (%s): branch %q does not have the commits", e.err, e.missing)
}

func (e *lostPushError) Unwrap() error { return e.err }
