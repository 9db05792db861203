package repo

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// Checkout is a fetched revision of a remote repository in a temporary folder. The caller must
// close it.
type Checkout struct {
	// Name is the requested branch or tag, or "" for a commit.
	Name string
	// Commit is the hash of the commit.
	Commit plumbing.Hash
	// Store contains the objects of the commit.
	Store *filesystem.Storage

	folder string
}

// Close removes the temporary folder.
func (c *Checkout) Close() error {
	return errors.Join(c.Store.Close(), os.RemoveAll(c.folder))
}

// FetchRevision fetches a revision of a remote repository, without history if
// the server supports shallow fetches.
func FetchRevision(ctx context.Context, remote Remote, revision Revision) (*Checkout, error) {
	folder, err := makeFolder()
	if err != nil {
		return nil, fmt.Errorf("creating a temporary directory for the repository: %w", err)
	}
	c := &Checkout{folder: folder, Store: filesystem.NewStorage(osfs.New(folder), cache.NewObjectLRUDefault())}
	found, err := remote.fetchRevision(ctx, revision, c.Store)
	if err == nil {
		c.Name = found.name
		c.Commit, err = commitOf(c.Store, found.hash)
	}
	if err == nil {
		return c, nil
	}
	err = errors.Join(err, c.Close())
	var unknown *UnknownRevisionError
	if errors.As(err, &unknown) {
		return nil, err
	}
	return nil, remote.explain(ctx, "fetching", err)
}

// commitOf returns the commit of a tag object, or the commit itself.
func commitOf(store *filesystem.Storage, hash plumbing.Hash) (plumbing.Hash, error) {
	for {
		tag, err := object.GetTag(store, hash)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			break
		}
		if err != nil {
			return hash, fmt.Errorf("reading tag %s: %w", hash, err)
		}
		hash = tag.Target
	}
	if _, err := object.GetCommit(store, hash); err != nil {
		return hash, fmt.Errorf("reading commit %s: %w", hash, err)
	}
	return hash, nil
}

// fetchRevision resolves a revision with the references of the server and stores its objects.
func (r Remote) fetchRevision(ctx context.Context, revision Revision, into packStore) (resolved, error) {
	var found resolved
	err := exchange(ctx, r, Remote.openUpload, func(ctx context.Context, session uploader, adv *packp.AdvRefs) (err error) {
		if found, err = revision.resolve(adv); err != nil {
			return err
		}
		direct := found.advertised || adv.Capabilities.Supports(capability.AllowReachableSHA1InWant)
		if !direct {
			return nil
		}
		return receive(ctx, session, adv, []plumbing.Hash{found.hash}, true, into)
	})
	var unknown *UnknownRevisionError
	var limit *limitError
	if err != nil && (found.advertised || ctx.Err() != nil || errors.As(err, &unknown) || errors.As(err, &limit) || found.hash.IsZero()) {
		return found, err
	}
	if into.HasEncodedObject(found.hash) == nil {
		return found, nil
	}
	// The server does not send single commits: fetch the history of all branches and tags.
	err = exchange(ctx, r, Remote.openUpload, func(ctx context.Context, session uploader, adv *packp.AdvRefs) error {
		wants := branchesAndTags(adv)
		if len(wants) == 0 {
			return nil
		}
		return receive(ctx, session, adv, wants, false, into)
	})
	if err == nil && into.HasEncodedObject(found.hash) != nil {
		err = &UnknownRevisionError{Revision: revision.Name}
	}
	return found, err
}

// receive stores objects and all objects that they reference, without their history if shallow is
// set.
func receive(ctx context.Context, session uploader, adv *packp.AdvRefs, wants []plumbing.Hash, shallow bool, into packStore) (err error) {
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
	defer func() { err = errors.Join(err, response.Close()) }()
	if err := packfile.UpdateObjectStorage(into, demultiplexed(request.Capabilities, response)); err != nil {
		return &packError{err}
	}
	return nil
}
