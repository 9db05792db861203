package githost

import (
	"context"
	"net/http"
	"strings"
)

// keyStore is the deploy keys of a repository on a host.
type keyStore interface {
	// list returns the keys of the repository. The title is that of the key
	// which DeployKey grants access.
	list(ctx context.Context, title string) ([]storedKey, error)
	// add adds a key with the wanted permission.
	add(ctx context.Context, key DeployKey) error
	// remove removes a key, if it still exists.
	remove(ctx context.Context, key storedKey) error
}

// permitter is a keyStore that can change the permission of a key. On other hosts a
// key with another permission is removed and added again.
type permitter interface {
	permit(ctx context.Context, key storedKey) error
}

// storedKey is a deploy key of a repository.
type storedKey struct {
	id            int64
	title, public string
	// titled reports whether the key has the wanted title, permitted whether it
	// has the wanted permission.
	titled, permitted bool
	// expired reports whether the host no longer accepts the key.
	expired bool
}

// grant implements DeployKey of a host. It adds the key before it removes
// others, so that the cluster always has one with access. A repository cannot
// have a key twice, so that the same key is changed or removed first.
func grant(ctx context.Context, keys keyStore, key DeployKey) error {
	present, err := keys.list(ctx, key.Title)
	if err != nil {
		return err
	}
	exists := false
	var old []storedKey
	for _, k := range present {
		changer, changes := keys.(permitter)
		switch same := sameKey(k.public, key.Public); {
		case same && k.permitted && !k.expired:
			exists = true
		case same && changes && !k.expired:
			exists, err = true, changer.permit(ctx, k)
		case same:
			err = keys.remove(ctx, k)
		case k.titled && !key.KeepOthers:
			old = append(old, k)
		}
		if err != nil {
			return err
		}
	}
	if !exists {
		if err := keys.add(ctx, key); err != nil {
			return err
		}
	}
	for _, k := range old {
		if err := keys.remove(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// sameKey compares public keys without their comments.
func sameKey(a, b string) bool {
	one, other := strings.Fields(a), strings.Fields(b)
	return len(one) >= 2 && len(other) >= 2 && one[0] == other[0] && one[1] == other[1]
}

// openRequest implements RequestChange of a host: it returns the open request
// that find finds, else the one that open opens. An error of open for which
// exists reports true means that the request was opened in the meantime, or by
// a request whose response was lost.
func openRequest(find, open func() (Request, error), exists func(error) bool, explain func(error) error) (Request, error) {
	found, err := find()
	if err != nil || found.Number != 0 {
		return found, err
	}
	opened, err := open()
	if err == nil {
		return opened, nil
	}
	if exists(err) {
		if found, findErr := find(); findErr != nil || found.Number != 0 {
			return found, findErr
		}
	}
	return Request{}, explain(err)
}

// conflict reports whether a host rejected a request with 409 Conflict.
func conflict(err error) bool { return status(err) == http.StatusConflict }
