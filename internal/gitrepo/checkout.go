package gitrepo

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
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// Checkout is what a repository on a server has at a revision, in a temporary
// folder. It has to be closed.
type Checkout struct {
	// Name is the branch or tag that was asked for, "" for a commit.
	Name string
	// Commit is its hash.
	Commit plumbing.Hash
	// Store has the objects of the commit.
	Store *filesystem.Storage

	folder string
}

// Close removes the temporary folder.
func (c *Checkout) Close() error {
	return errors.Join(c.Store.Close(), os.RemoveAll(c.folder))
}

// At fetches what a repository has at a revision, and no history where the
// server can do without.
func At(ctx context.Context, remote Remote, revision Revision) (*Checkout, error) {
	folder, err := makeFolder()
	if err != nil {
		return nil, fmt.Errorf("making room for the repository: %w", err)
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

// commitOf is the commit that an object is or, as a tag, points to.
func commitOf(store *filesystem.Storage, hash plumbing.Hash) (plumbing.Hash, error) {
	for {
		tag, err := object.GetTag(store, hash)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			break
		}
		if err != nil {
			return hash, fmt.Errorf("reading the tag %s: %w", hash, err)
		}
		hash = tag.Target
	}
	if _, err := object.GetCommit(store, hash); err != nil {
		return hash, fmt.Errorf("reading the commit %s: %w", hash, err)
	}
	return hash, nil
}

// fetchRevision finds the revision among what the server offers and stores it.
func (r Remote) fetchRevision(ctx context.Context, revision Revision, into packStore) (offer, error) {
	var found offer
	err := r.session(ctx, func(session transport.UploadPackSession, adv *packp.AdvRefs) (err error) {
		if found, err = revision.among(adv); err != nil {
			return err
		}
		direct := found.offered || adv.Capabilities.Supports(capability.AllowReachableSHA1InWant)
		if !direct {
			return nil
		}
		return receive(ctx, session, adv, []plumbing.Hash{found.hash}, true, into)
	})
	var unknown *UnknownRevisionError
	if err != nil && (found.offered || ctx.Err() != nil || errors.As(err, &unknown) || found.hash.IsZero()) {
		return found, err
	}
	if into.HasEncodedObject(found.hash) == nil {
		return found, nil
	}
	// A commit that no branch ends with: it is in the history of one, or nowhere.
	err = r.session(ctx, func(session transport.UploadPackSession, adv *packp.AdvRefs) error {
		wants := ends(adv)
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

// session talks to the server until what is done with it is over; the end of
// the context ends that, too.
func (r Remote) session(ctx context.Context, talk func(transport.UploadPackSession, *packp.AdvRefs) error) error {
	t, endpoint, err := r.connect()
	if err != nil {
		return err
	}
	session, err := t.NewUploadPackSession(endpoint, r.Auth)
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }() // what was received is checked already
	stop := context.AfterFunc(ctx, func() { _ = session.Close() })
	defer stop()
	adv, err := session.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		adv, err = packp.NewAdvRefs(), nil
	}
	if err != nil {
		return err
	}
	return talk(session, adv)
}

// receive stores objects and what they need, the history left out where it is
// to be shallow.
func receive(ctx context.Context, session transport.UploadPackSession, adv *packp.AdvRefs, wants []plumbing.Hash, shallow bool, into packStore) (err error) {
	request := packp.NewUploadPackRequestFromCapabilities(adv.Capabilities)
	request.Wants = wants
	if shallow && adv.Capabilities.Supports(capability.Shallow) {
		request.Depth = packp.DepthCommits(1)
		if err := request.Capabilities.Set(capability.Shallow); err != nil {
			return err
		}
	}
	answer, err := session.UploadPack(ctx, request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, answer.Close()) }()
	return packfile.UpdateObjectStorage(into, demultiplexed(request.Capabilities, answer))
}
