package githost

import (
	"context"
	"net/http"
	"strconv"

	"github.com/fluxkit/flux/internal/hint"
)

// bitbucketKeys is the deploy keys of a repository. Bitbucket calls them access
// keys.
type bitbucketKeys struct {
	*bitbucketAPI
	repository bitbucketRepository
}

// permission returns the wanted permission of a key.
func (k bitbucketKeys) permission() string {
	if k.hosted.ReadWriteKey {
		return "REPO_WRITE"
	}
	return "REPO_READ"
}

// path returns the path of the keys, or of a part of them, in the API.
func (k bitbucketKeys) path(parts string) string {
	return bitbucketKeysAPI + k.repository.path() + "/ssh" + parts
}

func (k bitbucketKeys) list(ctx context.Context, title string) ([]storedKey, error) {
	present, err := bitbucketList[bitbucketKey](ctx, k.bitbucketAPI, k.path(""), nil)
	if err != nil {
		return nil, k.problem(ctx, "listing the access keys of repository "+k.repository.String(), err)
	}
	all := make([]storedKey, len(present))
	for i, p := range present {
		all[i] = storedKey{
			id: int64(p.Key.ID), title: p.Key.Label, public: p.Key.Text, titled: p.Key.Label == title, permitted: p.Permission == k.permission(),
		}
	}
	return all, nil
}

func (k bitbucketKeys) add(ctx context.Context, key DeployKey) error {
	wanted := bitbucketKey{Permission: k.permission()}
	wanted.Key.Text, wanted.Key.Label = key.Public, key.Title
	err := k.call(ctx, http.MethodPost, k.path(""), nil, wanted, nil)
	if conflict(err) {
		return hint.Errorf("omit --private-key-file to generate a key, or set another one",
			"adding an access key to repository %s: a user or the project has the key already: %w", k.repository, err)
	}
	return k.problem(ctx, "adding an access key to repository "+k.repository.String(), err)
}

func (k bitbucketKeys) permit(ctx context.Context, key storedKey) error {
	err := k.call(ctx, http.MethodPut, k.path("/"+strconv.FormatInt(key.id, 10)+"/permission/"+k.permission()), nil, nil, nil)
	return k.problem(ctx, "changing the permission of the access key of repository "+k.repository.String(), err)
}

func (k bitbucketKeys) remove(ctx context.Context, key storedKey) error {
	err := k.call(ctx, http.MethodDelete, k.path("/"+strconv.FormatInt(key.id, 10)), nil, nil, nil)
	if status(err) == http.StatusNotFound {
		return nil // another run has removed it
	}
	return k.problem(ctx, "removing the previous access key", err)
}
