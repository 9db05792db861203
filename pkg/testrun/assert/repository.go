package assert

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/fluxkit/flux/internal/git/remote"
	"github.com/fluxkit/flux/internal/sandbox"
)

// Repository is the repository that the sandbox serves.
type Repository struct {
	// URL is the address from which sources fetch it.
	URL string
	// Remote is the repository from which this program reads and to which it pushes.
	Remote remote.Repository
	// Now is the clock.
	Now func() time.Time
}

func (r Repository) open(ctx context.Context) (*remote.Branch, error) {
	return remote.Open(ctx, r.Remote, sandbox.Branch)
}

// prepare creates a commit, which push sends. Server faults can begin in between.
func (r Repository) prepare(ctx context.Context, s Step) (push func(context.Context) error, closed func() error, err error) {
	repository, err := r.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	change := remote.Change{Message: s.Commit.Message, AuthorName: "flux", AuthorEmail: "flux@localhost", When: r.Now(), Files: map[string][]byte{}}
	if change.Message == "" {
		change.Message = "Change files for " + s.Name
	}
	for name, content := range s.Commit.Files {
		if content == nil {
			change.Removed = append(change.Removed, name)
		} else {
			change.Files[name] = []byte(*content)
		}
	}
	changed, err := repository.Commit(change)
	if err == nil && !changed {
		err = errors.New("the files already have this content")
	}
	if err != nil {
		return nil, nil, errors.Join(err, repository.Close())
	}
	return func(ctx context.Context) error { return repository.Push(ctx, func(error) {}) }, repository.Close, nil
}

// file returns a file of the newest commit, and whether it exists.
func (r Repository) file(ctx context.Context, name string) (content []byte, found bool, err error) {
	repository, err := r.open(ctx)
	if err != nil {
		return nil, false, err
	}
	content, err = repository.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, repository.Close()
	}
	return content, err == nil, errors.Join(err, repository.Close())
}
