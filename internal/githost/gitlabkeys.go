package githost

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/xanzy/go-gitlab"

	"github.com/fluxkit/flux/internal/hint"
)

// gitlabKeys is the deploy keys of a project. GitLab has one object for a key that
// several projects use: a key of another project of the account is enabled for
// this one.
type gitlabKeys struct {
	*gitlabAPI
	project int
	path    string
}

func (k gitlabKeys) list(ctx context.Context, title string) ([]storedKey, error) {
	var now time.Time // of GitLab, which decides whether a key has expired
	present, err := gitlabPages(func(page gitlab.ListOptions) ([]*gitlab.ProjectDeployKey, *gitlab.Response, error) {
		options := gitlab.ListProjectDeployKeysOptions(page)
		keys, response, err := k.client.DeployKeys.ListProjectDeployKeys(k.project, &options, gitlab.WithContext(ctx))
		if response != nil {
			if at, dateErr := http.ParseTime(response.Header.Get("Date")); dateErr == nil {
				now = at
			}
		}
		return keys, response, err
	})
	if err != nil {
		return nil, k.problem(ctx, "listing the deploy keys of project "+k.path, err)
	}
	all := make([]storedKey, len(present))
	for i, p := range present {
		all[i] = storedKey{
			id: int64(p.ID), title: p.Title, public: p.Key, titled: p.Title == title, permitted: p.CanPush == k.hosted.ReadWriteKey,
			expired: p.ExpiresAt != nil && p.ExpiresAt.Before(now), // the expiry of a key cannot be changed
		}
	}
	return all, nil
}

func (k gitlabKeys) add(ctx context.Context, key DeployKey) error {
	doing := "adding a deploy key to project " + k.path
	options := &gitlab.AddDeployKeyOptions{Title: &key.Title, Key: &key.Public, CanPush: &k.hosted.ReadWriteKey}
	added, _, err := k.client.DeployKeys.AddDeployKey(k.project, options, gitlab.WithContext(ctx))
	switch {
	case gitlabTaken(err):
		return hint.Errorf("omit --private-key-file to generate a key, or set another one",
			"%s: a user, or a project that %s cannot read, has the key already", doing, k.account.name)
	case err != nil:
		return k.problem(ctx, doing, err)
	case added.CanPush != k.hosted.ReadWriteKey:
		return k.permit(ctx, storedKey{id: int64(added.ID)})
	}
	return nil
}

func (k gitlabKeys) permit(ctx context.Context, key storedKey) error {
	options := &gitlab.UpdateDeployKeyOptions{CanPush: &k.hosted.ReadWriteKey}
	if _, _, err := k.client.DeployKeys.UpdateDeployKey(k.project, int(key.id), options, gitlab.WithContext(ctx)); err != nil {
		return k.problem(ctx, "changing the permissions of the deploy key of project "+k.path, err)
	}
	return nil
}

func (k gitlabKeys) remove(ctx context.Context, key storedKey) error {
	if _, err := k.client.DeployKeys.DeleteDeployKey(k.project, int(key.id), gitlab.WithContext(ctx)); err != nil && !gitlabMissing(err) {
		return k.problem(ctx, fmt.Sprintf("removing the deploy key %q from project %s", key.title, k.path), err)
	}
	return nil
}
