package githost

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
)

// giteaKey is a deploy key in the API.
type giteaKey struct {
	ID       int    `json:"id"`
	Title    string `json:"title"`
	Key      string `json:"key"`
	ReadOnly bool   `json:"read_only"`
}

// DeployKey implements Host. Titles are unique on Gitea and cannot be changed, so
// the title of a key that replaces another one has a number.
func (g *Gitea) DeployKey(ctx context.Context, key DeployKey) error {
	doing := fmt.Sprintf("adding the deploy key %q to %s", key.Title, g.fullName())
	var stale []giteaKey
	titles := map[string]bool{}
	present := false
	err := giteaPages(ctx, g, doing, g.path("keys"), nil, func(found giteaKey) {
		titles[found.Title] = true
		switch {
		case sameKey(found.Key, key.Public) && found.ReadOnly != g.hosted.ReadWriteKey:
			present = true
		case sameKey(found.Key, key.Public) || isTitle(found.Title, key.Title):
			stale = append(stale, found)
		}
	})
	if err != nil {
		return err
	}
	if !present {
		if stale, err = g.replace(ctx, doing, key, stale, titles); err != nil {
			return err
		}
	}
	if key.KeepOthers {
		return nil
	}
	for _, old := range stale {
		if err := g.removeKey(ctx, old); err != nil {
			return err
		}
	}
	return nil
}

// replace adds a key and returns the stale keys that still have to be removed. The
// same key with other permissions is removed first, because a repository cannot
// have a key twice.
func (g *Gitea) replace(ctx context.Context, doing string, key DeployKey, stale []giteaKey, titles map[string]bool) ([]giteaKey, error) {
	var left []giteaKey
	for _, old := range stale {
		if !sameKey(old.Key, key.Public) {
			left = append(left, old)
			continue
		}
		if err := g.removeKey(ctx, old); err != nil {
			return nil, err
		}
		delete(titles, old.Title)
	}
	title := key.Title
	for n := 2; titles[title]; n++ {
		title = numbered(key.Title, n)
	}
	err := g.call(ctx, doing, http.MethodPost, g.path("keys"),
		map[string]any{"title": title, "key": key.Public, "read_only": !g.hosted.ReadWriteKey}, nil)
	switch {
	case status(err) != http.StatusUnprocessableEntity:
		return left, err
	case strings.Contains(message(err), "already been added"):
		return left, nil // by an earlier request of this run whose response was lost
	case strings.Contains(message(err), "SSH is disabled"):
		return nil, hint.Errorf("use --token-auth", "%s: %s has SSH disabled%w", doing, g.hosted.Hostname, silent{err})
	case strings.Contains(message(err), "non-deploy key"):
		return nil, hint.Errorf("set another --private-key-file, or omit it to generate a key",
			"%s: an account has the key already%w", doing, silent{err})
	}
	return nil, err
}

func (g *Gitea) removeKey(ctx context.Context, key giteaKey) error {
	err := g.call(ctx, fmt.Sprintf("removing the old deploy key %q from %s", key.Title, g.fullName()), http.MethodDelete, g.path("keys", strconv.Itoa(key.ID)), nil, nil)
	if status(err) == http.StatusNotFound {
		return nil // another run has removed it
	}
	return err
}

func numbered(title string, n int) string { return fmt.Sprintf("%s (%d)", title, n) }

// isTitle reports whether a title is another one, with or without a number.
func isTitle(title, of string) bool {
	rest, same := strings.CutPrefix(title, of)
	if !same || rest == "" {
		return same
	}
	number, opened := strings.CutPrefix(rest, " (")
	number, closed := strings.CutSuffix(number, ")")
	_, err := strconv.Atoi(number)
	return opened && closed && err == nil
}
