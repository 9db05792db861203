package remote

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/fluxkit/flux/internal/git"
)

// store holds fetched objects in a temporary directory.
type store struct {
	folder  string
	files   *filesystem.Storage
	objects *git.Objects
}

func newStore() (*store, error) {
	folder, err := makeDirectory()
	if err != nil {
		return nil, fmt.Errorf("creating a temporary directory for the repository: %w", err)
	}
	files := filesystem.NewStorage(osfs.New(folder), cache.NewObjectLRUDefault())
	return &store{folder, files, git.NewObjects(files)}, nil
}

// close removes the temporary directory.
func (s *store) close() error { return errors.Join(s.objects.Close(), os.RemoveAll(s.folder)) }

func (s *store) has(hash plumbing.Hash) bool { return s.files.HasEncodedObject(hash) == nil }

// fetch stores the objects of a commit, without its history if the server supports shallow fetches. choose selects the
// commit from the references of the server, zero for none.
func (r Repository) fetch(ctx context.Context, into *store, choose func(*packp.AdvRefs) (plumbing.Hash, error)) error {
	return exchange(ctx, r, transport.UploadPackServiceName, func(ctx context.Context, session uploader, adv *packp.AdvRefs) error {
		hash, err := choose(adv)
		if err != nil || hash.IsZero() || into.has(hash) {
			return err
		}
		return into.receive(ctx, session, adv, []plumbing.Hash{hash}, true)
	})
}

// fetchRevision stores a revision, and returns it with its commit.
func (r Repository) fetchRevision(ctx context.Context, revision git.Revision, into *store) (git.Revision, error) {
	found, err := r.fetchResolved(ctx, revision, into)
	if errors.As(err, new(*UnknownError)) {
		return git.Revision{}, err
	}
	commit := found.hash
	if err == nil {
		commit, err = into.objects.Peel(found.hash)
	}
	return git.Revision{Name: found.name, Commit: commit.String()}, r.explain(ctx, "fetching", err)
}

func (r Repository) fetchResolved(ctx context.Context, revision git.Revision, into *store) (found resolved, err error) {
	err = r.fetch(ctx, into, func(adv *packp.AdvRefs) (hash plumbing.Hash, err error) {
		if found, err = resolve(revision, adv); found.advertised || adv.Capabilities.Supports(capability.AllowReachableSHA1InWant) {
			hash = found.hash
		}
		return hash, err
	})
	switch {
	case errors.As(err, new(*UnknownError)), errors.As(err, new(*limitError)):
		return found, err
	case err != nil && (found.advertised || found.hash.IsZero() || ctx.Err() != nil):
		return found, err
	case into.has(found.hash):
		return found, nil
	}
	// The server does not support fetching single commits.
	if err = r.fetchAll(ctx, into); err == nil && !into.has(found.hash) {
		err = &UnknownError{Revision: revision.String()}
	}
	return found, err
}

// fetchAll stores the history of all branches and tags.
func (r Repository) fetchAll(ctx context.Context, into *store) error {
	return exchange(ctx, r, transport.UploadPackServiceName, func(ctx context.Context, session uploader, adv *packp.AdvRefs) error {
		wants := hashes(adv, branches, tags)
		if len(wants) == 0 {
			return nil
		}
		return into.receive(ctx, session, adv, wants, false)
	})
}

// receive stores objects and all objects that they reference, without their history if shallow is set.
func (s *store) receive(ctx context.Context, session uploader, adv *packp.AdvRefs, wants []plumbing.Hash, shallow bool) (err error) {
	request := packp.NewUploadPackRequestFromCapabilities(adv.Capabilities)
	request.Wants = wants
	if shallow && adv.Capabilities.Supports(capability.Shallow) {
		request.Depth = packp.DepthCommits(1)
		if err := request.Capabilities.Set(capability.Shallow); err != nil {
			return err
		}
	}
	response, err := session.UploadPack(ctx, request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Close(), s.objects.Update()) }()
	if err := packfile.UpdateObjectStorage(s.files, demultiplexed(request.Capabilities, response)); err != nil {
		return &packError{err}
	}
	return nil
}
