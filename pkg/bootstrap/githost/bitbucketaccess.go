package githost

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/fluxkit/flux/internal/hint"
)

// DeployKey implements Host. Bitbucket calls such keys access keys.
func (b *Bitbucket) DeployKey(ctx context.Context, key DeployKey) error {
	path := bitbucketKeys + b.repository.path() + "/ssh"
	present, err := bitbucketList[bitbucketKey](ctx, b.api, path, nil)
	if err != nil {
		return b.problem(ctx, "listing the access keys of repository "+b.String(), err)
	}
	wanted := bitbucketKey{Permission: "REPO_READ"}
	if b.hosted.ReadWriteKey {
		wanted.Permission = "REPO_WRITE"
	}
	wanted.Key.Text, wanted.Key.Label = key.Public, key.Title
	var old []bitbucketKey
	var same *bitbucketKey
	for _, k := range present {
		switch {
		case keyData(k.Key.Text) == keyData(key.Public):
			same = &k
		case k.Key.Label == key.Title && !key.KeepOthers:
			old = append(old, k)
		}
	}
	switch {
	case same == nil:
		err := b.api.call(ctx, http.MethodPost, path, nil, wanted, nil)
		if status(err) == http.StatusConflict {
			return hint.Errorf("omit --private-key-file to generate a key, or set another one",
				"adding an access key to repository %s: a user or the project has the key already: %w", b, err)
		}
		if err != nil {
			return b.problem(ctx, "adding an access key to repository "+b.String(), err)
		}
	case same.Permission != wanted.Permission:
		change := path + "/" + strconv.Itoa(same.Key.ID) + "/permission/" + wanted.Permission
		if err := b.api.call(ctx, http.MethodPut, change, nil, nil, nil); err != nil {
			return b.problem(ctx, "changing the permission of the access key of repository "+b.String(), err)
		}
	}
	for _, k := range old {
		err := b.api.call(ctx, http.MethodDelete, path+"/"+strconv.Itoa(k.Key.ID), nil, nil, nil)
		if err != nil && status(err) != http.StatusNotFound {
			return b.problem(ctx, "removing the previous access key", err)
		}
	}
	return nil
}

// RequestChange implements Requester.
func (b *Bitbucket) RequestChange(ctx context.Context, change Change) (Request, error) {
	path := bitbucketCore + b.repository.path() + "/pull-requests"
	wanted := bitbucketPull{
		Title: change.Title, Description: change.Body,
		From: b.ref(change.Head), To: b.ref(change.Base),
	}
	for attempt := 0; ; attempt++ {
		open, err := bitbucketList[bitbucketPull](ctx, b.api, path, url.Values{"state": {"OPEN"}, "direction": {"OUTGOING"}, "at": {wanted.From.ID}})
		if err != nil {
			return Request{}, b.problem(ctx, "looking for an open pull request in repository "+b.String(), err)
		}
		for _, p := range open {
			if p.To.ID == wanted.To.ID && p.To.Repository.ID == b.repository.ID {
				return p.request(false), nil
			}
		}
		var opened bitbucketPull
		err = b.api.call(ctx, http.MethodPost, path, nil, wanted, &opened)
		switch {
		case err == nil:
			return opened.request(true), nil
		case status(err) == http.StatusConflict && attempt == 0:
			continue // it was opened between the requests, or by one whose response was lost
		default:
			return Request{}, b.problem(ctx, "opening a pull request in repository "+b.String(), err)
		}
	}
}

func (b *Bitbucket) ref(branch string) bitbucketRef {
	return bitbucketRef{ID: "refs/heads/" + branch, Repository: bitbucketPlace{Slug: b.repository.Slug, Project: bitbucketProject{Key: b.project.Key}}}
}

func (p bitbucketPull) request(opened bool) Request {
	r := Request{Number: p.ID, Opened: opened}
	if len(p.Links.Self) > 0 {
		r.URL = p.Links.Self[0].Href
	}
	return r
}
