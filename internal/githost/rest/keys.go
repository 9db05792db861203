package rest

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/fluxkit/flux/internal/githost"
)

// Key is a deploy key of a repository.
type Key struct {
	ID            int64
	Title, Public string
	// Writes reports whether the key may push.
	Writes bool
	// Expired reports whether the host no longer accepts the key.
	Expired bool
}

// KeyPermitter is implemented by Keys that can change the permission of a key. On other hosts, a key with a
// different permission is removed and added again.
type KeyPermitter interface {
	Permit(ctx context.Context, key Key) error
}

// DeployKey implements githost.Host. It adds the key before it removes others, so that the cluster always has a key
// with access. A repository cannot contain the same key twice, so an existing copy is changed or removed first.
func (h *Host) DeployKey(ctx context.Context, key githost.DeployKey) error {
	present, err := h.Keys.List(ctx)
	if err != nil {
		return h.API.Explain(ctx, "listing the deploy keys of "+h.Driver.Name(), err)
	}
	exists := false
	var old []Key
	titles := map[string]bool{}
	permitter, permits := h.Keys.(KeyPermitter)
	for _, k := range present {
		titles[k.Title] = true
		permitted := k.Writes == h.API.Hosted.ReadWriteKey
		switch same := sameKey(k.Public, key.Public); {
		case same && permitted && !k.Expired:
			exists = true
		case same && permits && !k.Expired:
			exists, err = true, permitter.Permit(ctx, k)
			err = h.API.Explain(ctx, fmt.Sprintf("changing the permission of the deploy key %q of %s", k.Title, h.Driver.Name()), err)
		case same:
			err = h.removeKey(ctx, k)
			delete(titles, k.Title)
		case h.titled(k.Title, key.Title) && !key.KeepOthers:
			old = append(old, k)
		}
		if err != nil {
			return err
		}
	}
	if !exists {
		if err := h.addKey(ctx, key, titles); err != nil {
			return err
		}
	}
	for _, k := range old {
		if err := h.removeKey(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// addKey adds a key. If titles must be unique, it appends a number to the title of a key that replaces another one.
func (h *Host) addKey(ctx context.Context, key githost.DeployKey, titles map[string]bool) error {
	title := key.Title
	for n := 2; h.Words.UniqueTitles && titles[title]; n++ {
		title = fmt.Sprintf("%s (%d)", key.Title, n)
	}
	err := h.Keys.Add(ctx, title, key.Public)
	return h.API.Explain(ctx, fmt.Sprintf("adding the deploy key %q to %s", key.Title, h.Driver.Name()), err)
}

// removeKey removes a key, unless another run has removed it.
func (h *Host) removeKey(ctx context.Context, key Key) error {
	err := h.Keys.Remove(ctx, key)
	if Missing(err) {
		return nil
	}
	return h.API.Explain(ctx, fmt.Sprintf("removing the deploy key %q of %s", key.Title, h.Driver.Name()), err)
}

// titled reports whether a key has the given title, possibly followed by a number if titles must be unique.
func (h *Host) titled(title, wanted string) bool {
	rest, same := strings.CutPrefix(title, wanted)
	if !same || rest == "" || !h.Words.UniqueTitles {
		return same && rest == ""
	}
	number, opened := strings.CutPrefix(rest, " (")
	number, closed := strings.CutSuffix(number, ")")
	_, err := strconv.Atoi(number)
	return opened && closed && err == nil
}

// sameKey compares public keys without their comments.
func sameKey(a, b string) bool {
	one, other := strings.Fields(a), strings.Fields(b)
	return len(one) >= 2 && len(other) >= 2 && one[0] == other[0] && one[1] == other[1]
}
