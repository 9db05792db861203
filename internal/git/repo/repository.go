package repo

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

// packStore stores fetched objects.
type packStore interface {
	storer.Storer
	HasEncodedObject(plumbing.Hash) error
}

// Repository is the newest commit of a branch and the commits that are added to it.
type Repository struct {
	remote Remote
	branch plumbing.ReferenceName
	folder string
	store  *filesystem.Storage

	// head is the parent of the next commit: the commit of the branch, or of
	// the default branch if the branch is new, or zero in an empty repository.
	head plumbing.Hash
	// base is the commit that was fetched.
	base plumbing.Hash
	// known is the commit of the branch on the server.
	known plumbing.Hash
	// extraParent is an additional parent of the next commit, or zero for none.
	extraParent plumbing.Hash
	// added holds the objects of the commits that are to be pushed.
	added []plumbing.Hash
	// unsent holds all objects that were created here and not pushed, including those of dropped
	// commits.
	unsent map[plumbing.Hash]bool
}

// Open fetches the newest commit of a branch. A branch that does not exist
// starts at the default branch, or without a commit in an empty repository.
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

// New returns an empty repository for a remote that does not exist yet. It
// sends no request.
func New(remote Remote, branch string) (*Repository, error) {
	folder, err := makeFolder()
	if err != nil {
		return nil, fmt.Errorf("creating a temporary directory for the repository: %w", err)
	}
	return &Repository{
		remote: remote, branch: plumbing.NewBranchReferenceName(branch), folder: folder,
		store:  filesystem.NewStorage(osfs.New(folder), cache.NewObjectLRUDefault()),
		unsent: map[plumbing.Hash]bool{},
	}, nil
}

// SetRemote sets another remote. Refresh reads its branch.
func (r *Repository) SetRemote(remote Remote) { r.remote = remote }

// Refresh fetches the newest commit of the branch and drops commits that were
// not pushed.
func (r *Repository) Refresh(ctx context.Context) error {
	found, err := r.remote.fetch(ctx, r.branch, r.store)
	if err != nil {
		return r.remote.explain(ctx, "cloning", err)
	}
	r.head, r.known, r.added = found.start(), found.branch, nil
	r.base, r.extraParent = r.head, plumbing.ZeroHash
	return nil
}

// CheckPush returns an error unless the credentials can push to the repository.
func (r *Repository) CheckPush(ctx context.Context) error { return r.remote.ProbePush(ctx) }

// Close removes the temporary folder.
func (r *Repository) Close() error {
	return errors.Join(r.store.Close(), os.RemoveAll(r.folder))
}

// Head returns the hash of the newest commit, or "" without a commit.
func (r *Repository) Head() string {
	if r.head.IsZero() {
		return ""
	}
	return r.head.String()
}

// Branch returns the branch that Push updates.
func (r *Repository) Branch() string { return r.branch.Short() }

// BranchExists reports whether the branch exists on the server.
func (r *Repository) BranchExists() bool { return !r.known.IsZero() }

// Empty reports whether the repository has no commit.
func (r *Repository) Empty() bool { return r.head.IsZero() }

// ReadFile returns a file of the newest commit. It returns fs.ErrNotExist for a
// file that does not exist.
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

// ReadDir returns the names in a folder of the newest commit. Names of folders
// end with a slash. It returns fs.ErrNotExist for a folder that does not exist.
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

// Change describes a commit.
type Change struct {
	// Message is the commit's message.
	Message string
	// AuthorName and AuthorEmail identify the author and committer.
	AuthorName, AuthorEmail string
	// When is the commit's time.
	When time.Time
	// Files holds the contents of files by path.
	Files map[string][]byte
	// Removed lists the paths of files to remove.
	Removed []string
	// Sign returns the signature of a commit; nil leaves it unsigned.
	Sign func(commit []byte) (string, error)
}

// files returns the contents of files by path, with nil for the files to remove.
func (c Change) files() map[string][]byte {
	all := make(map[string][]byte, len(c.Files)+len(c.Removed))
	for name, content := range c.Files {
		all[name] = append([]byte{}, content...)
	}
	for _, name := range c.Removed {
		all[name] = nil
	}
	return all
}

// Commit adds a commit that sets the contents of files. It returns false without a commit if no
// content changes.
func (r *Repository) Commit(c Change) (bool, error) {
	before, err := r.tree()
	if err != nil {
		return false, err
	}
	w := treeWriter{store: r.store, unsent: r.unsent}
	after, err := w.put(before, "", c.files())
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
	r.head, r.extraParent = hash, plumbing.ZeroHash
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

// ErrNonFastForward is returned by Push if the branch on the server has new commits. Call Refresh,
// commit again and push.
var ErrNonFastForward = errors.New("non-fast-forward: the branch has new commits on the server")

// Push pushes the added commits. If the connection is lost before the server
// confirms the push, Push reads the branch again, and calls arrived with the
// error of the connection if the branch has the commits.
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
		pushed, failed := r.checkPushed(ctx, err)
		if !pushed {
			return failed
		}
		arrived(err)
	} else if now != r.head {
		return ErrNonFastForward
	}
	r.known, r.base, r.added = r.head, r.head, nil
	clear(r.unsent)
	return nil
}

// checkPushed reads the branch after a failed push: the push may have succeeded before the
// connection was lost, or may have been rejected because of another push, for which the messages of
// servers differ.
func (r *Repository) checkPushed(ctx context.Context, err error) (pushed bool, failed error) {
	var lost *unconfirmedError
	unconfirmed := errors.As(err, &lost)
	if ctx.Err() != nil {
		return false, r.remote.explain(ctx, "pushing to", err)
	}
	found, fetchErr := r.remote.fetch(ctx, r.branch, r.store)
	switch {
	case fetchErr == nil && found.branch == r.head:
		return true, nil
	case fetchErr == nil && found.branch != r.known:
		return false, ErrNonFastForward
	case fetchErr == nil && unconfirmed:
		err = &lostPushError{err: err, missing: r.branch.Short()}
	case unconfirmed:
		err = &lostPushError{err: err, fetchErr: fetchErr}
	}
	return false, r.remote.explain(ctx, "pushing to", err)
}

// lostPushError is returned if the server did not respond to a push.
type lostPushError struct {
	err error
	// missing is the branch if the commits are not on it.
	missing string
	// fetchErr is the error of reading the branch after the push.
	fetchErr error
}

func (e *lostPushError) Error() string {
	fact := Unconfirmed(e.err)
	if e.fetchErr != nil {
		return fmt.Sprintf("%s, and the branch cannot be read (%s): the push may have succeeded", fact, summary(e.fetchErr))
	}
	return fmt.Sprintf("%s: branch %q does not have the commits", fact, e.missing)
}

// Unconfirmed returns a description of a push that the server has not confirmed.
func Unconfirmed(err error) string {
	if statusOf(err) != 0 {
		return "the server failed before it confirmed the push (" + summary(err) + ")"
	}
	return "connection lost before the server confirmed the push (" + summary(err) + ")"
}

func (e *lostPushError) Unwrap() error { return e.err }
