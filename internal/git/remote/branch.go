package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"github.com/fluxkit/flux/internal/git/filetree"
)

// Branch is a branch of a remote repository: its newest commit and the commits to add.
type Branch struct {
	repository Repository
	branch     plumbing.ReferenceName
	store      *store

	// head is the parent of the next commit: the newest commit of the branch, or of the default branch if the branch
	// is new, or zero in an empty repository.
	head plumbing.Hash
	// base is the fetched commit.
	base plumbing.Hash
	// known is the commit of the branch on the server when it was last read.
	known plumbing.Hash
	// extraParent is an additional parent of the next commit, or zero for none.
	extraParent plumbing.Hash
	// added holds the objects of the commits to push.
	added []plumbing.Hash
	// unsent holds all local objects that have not been pushed, including the objects of dropped commits.
	unsent map[plumbing.Hash]bool
}

// Open fetches the newest commit of a branch. A branch that does not exist
// starts at the default branch, or without a commit in an empty repository.
func Open(ctx context.Context, repository Repository, branch string) (*Branch, error) {
	b, err := New(repository, branch)
	if err != nil {
		return nil, err
	}
	if err := b.Refresh(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// New returns the branch of a repository that does not exist yet. It sends no request.
func New(repository Repository, branch string) (*Branch, error) {
	into, err := newStore()
	if err != nil {
		return nil, err
	}
	return &Branch{
		repository: repository, branch: plumbing.NewBranchReferenceName(branch), store: into, unsent: map[plumbing.Hash]bool{},
	}, nil
}

// SetRepository changes the address or the credentials. Refresh then reads the branch from the new address.
func (b *Branch) SetRepository(repository Repository) { b.repository = repository }

// Refresh fetches the newest commit of the branch and drops commits that were not pushed.
func (b *Branch) Refresh(ctx context.Context) error {
	known, start, err := b.fetch(ctx)
	if err != nil {
		return b.repository.explain(ctx, "cloning", err)
	}
	b.head, b.base, b.known, b.added, b.extraParent = start, start, known, nil, plumbing.ZeroHash
	return nil
}

// fetch stores the parent of the first new commit: the newest commit of the branch, or of the default branch if the
// branch does not exist.
func (b *Branch) fetch(ctx context.Context) (known, start plumbing.Hash, err error) {
	err = b.repository.fetch(ctx, b.store, func(adv *packp.AdvRefs) (plumbing.Hash, error) {
		known = adv.References[b.branch.String()]
		if start = known; start.IsZero() && adv.Head != nil {
			start = *adv.Head
		}
		return start, nil
	})
	return known, start, err
}

// CheckPush returns an error unless the credentials can push to the repository.
func (b *Branch) CheckPush(ctx context.Context) error { return b.repository.ProbePush(ctx) }

// Close removes the temporary directory.
func (b *Branch) Close() error { return b.store.close() }

// Head returns the hash of the newest commit, or "" without a commit.
func (b *Branch) Head() string {
	if b.head.IsZero() {
		return ""
	}
	return b.head.String()
}

// Branch returns the branch that Push updates.
func (b *Branch) Branch() string { return b.branch.Short() }

// BranchExists reports whether the branch exists on the server.
func (b *Branch) BranchExists() bool { return !b.known.IsZero() }

// Empty reports whether the repository has no commit.
func (b *Branch) Empty() bool { return b.head.IsZero() }

// Files returns the files of the newest commit.
func (b *Branch) Files() (*filetree.Tree, error) {
	if b.Empty() {
		return filetree.New(&filetree.Node{Mode: fs.ModeDir}), nil
	}
	return b.store.objects.Tree(b.head)
}

// ReadFile returns a file of the newest commit.
func (b *Branch) ReadFile(name string) ([]byte, error) {
	files, err := b.Files()
	if err != nil {
		return nil, err
	}
	return files.ReadFile(name)
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

// Commit adds a commit that sets the contents of files. It returns false without a commit if no content changes.
func (b *Branch) Commit(c Change) (bool, error) {
	before, err := b.Files()
	if err != nil {
		return false, err
	}
	after, err := before.With(c.files())
	if err != nil {
		return false, err
	}
	w := writer{store: b.store.objects.Storer(), unsent: b.unsent}
	files, err := w.tree(after.Root())
	if err != nil {
		return false, err
	}
	if was, err := before.Root().Hash(); err != nil || was == files && !b.Empty() {
		return false, err
	}
	by := object.Signature{Name: c.AuthorName, Email: c.AuthorEmail, When: c.When}
	commit := &object.Commit{Author: by, Committer: by, Message: c.Message, TreeHash: files, ParentHashes: b.parents()}
	if c.Sign != nil {
		text, err := encode(commit.EncodeWithoutSignature)
		if err != nil {
			return false, err
		}
		if commit.PGPSignature, err = c.Sign(text); err != nil {
			return false, fmt.Errorf("signing the commit: %w", err)
		}
	}
	text, err := encode(commit.Encode)
	if err != nil {
		return false, err
	}
	hash, err := w.save(plumbing.CommitObject, text)
	if err != nil {
		return false, err
	}
	b.head, b.extraParent = hash, plumbing.ZeroHash
	b.added = append(b.added, w.added...)
	return true, nil
}

// encode returns the text of a commit.
func encode(into func(plumbing.EncodedObject) error) ([]byte, error) {
	object := &plumbing.MemoryObject{}
	err := into(object)
	if err == nil {
		var reader io.ReadCloser
		if reader, err = object.Reader(); err == nil {
			return io.ReadAll(reader)
		}
	}
	return nil, fmt.Errorf("encoding the commit: %w", err)
}

// ErrNonFastForward is returned by Push if the branch on the server has new commits. Call Refresh,
// commit again and push.
var ErrNonFastForward = errors.New("non-fast-forward: the branch has new commits on the server")

// Push pushes the added commits. If the connection is lost before the server confirms the push, Push reads the branch
// again, and calls arrived with the connection error if the branch contains the commits.
func (b *Branch) Push(ctx context.Context, arrived func(error)) error {
	if b.head == b.known {
		return nil
	}
	pack := func(w io.Writer) error {
		_, err := packfile.NewEncoder(w, b.store.files, false).Encode(b.added, 0)
		return err
	}
	now, err := b.repository.update(ctx, b.branch, b.known, b.head, pack)
	if err != nil {
		pushed, failed := b.checkPushed(ctx, err)
		if !pushed {
			return failed
		}
		arrived(err)
	} else if now != b.head {
		return ErrNonFastForward
	}
	b.known, b.base, b.added = b.head, b.head, nil
	clear(b.unsent)
	return nil
}

// checkPushed reads the branch after a failed push. The push may have succeeded before the connection was lost, or
// may have been rejected because of another push, which servers report with different messages.
func (b *Branch) checkPushed(ctx context.Context, err error) (pushed bool, failed error) {
	var lost *unconfirmedError
	unconfirmed := errors.As(err, &lost)
	if ctx.Err() != nil {
		return false, b.repository.explain(ctx, "pushing to", err)
	}
	now, _, fetchErr := b.fetch(ctx)
	switch {
	case fetchErr == nil && now == b.head:
		return true, nil
	case fetchErr == nil && now != b.known:
		return false, ErrNonFastForward
	case fetchErr == nil && unconfirmed:
		err = &lostPushError{err: err, missing: b.branch.Short()}
	case unconfirmed:
		err = &lostPushError{err: err, fetchErr: fetchErr}
	}
	return false, b.repository.explain(ctx, "pushing to", err)
}

// lostPushError is returned if the server did not respond to a push.
type lostPushError struct {
	err error
	// missing is the name of the branch if it does not contain the commits.
	missing string
	// fetchErr is the error of reading the branch after the push.
	fetchErr error
}

func (e *lostPushError) Error() string {
	fact := Unconfirmed(e.err)
	if e.fetchErr != nil {
		return fmt.Sprintf("%s, and the branch cannot be read (%s): the push may have succeeded", fact, summary(e.fetchErr))
	}
	return fmt.Sprintf("%s: branch %q does not contain the commits", fact, e.missing)
}

// Unconfirmed returns a description of a push that the server has not confirmed.
func Unconfirmed(err error) string {
	if statusOf(err) != 0 {
		return "the server failed before it confirmed the push (" + summary(err) + ")"
	}
	return "connection lost before the server confirmed the push (" + summary(err) + ")"
}

func (e *lostPushError) Unwrap() error { return e.err }
