package githost

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// giteaKey is a deploy key as the API has it.
type giteaKey struct {
	ID       int    `json:"id"`
	Title    string `json:"title"`
	Key      string `json:"key"`
	ReadOnly bool   `json:"read_only"`
}

// DeployKey implements Host. Titles are unique on Gitea and cannot be changed,
// so that a key that takes the place of another gets a number behind its own.
func (g *Gitea) DeployKey(ctx context.Context, key DeployKey) error {
	doing := fmt.Sprintf("adding the deploy key %q to %s", key.Title, g.path())
	var stale []giteaKey
	titles := map[string]bool{}
	right := false
	err := pagesOf(ctx, g, doing, g.api("keys"), func(found giteaKey) {
		titles[found.Title] = true
		switch {
		case sameKey(found.Key, key.Public) && found.ReadOnly != g.hosted.ReadWriteKey:
			right = true
		case sameKey(found.Key, key.Public) || isTitle(found.Title, key.Title):
			stale = append(stale, found)
		}
	})
	if err != nil {
		return err
	}
	if !right {
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

// replace adds a key and returns what is still to be removed. The same key with
// other rights has to go first: a repository takes no key twice.
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
	err := g.call(ctx, doing, http.MethodPost, g.api("keys"),
		map[string]any{"title": title, "key": key.Public, "read_only": !g.hosted.ReadWriteKey}, nil)
	switch {
	case status(err) != http.StatusUnprocessableEntity:
		return left, err
	case strings.Contains(said(err), "already been added"):
		return left, nil // by an earlier request of this run whose answer was lost
	case strings.Contains(said(err), "SSH is disabled"):
		return nil, failure("use --token-auth", "%s: %s does not speak SSH%w", doing, g.hosted.Hostname, quiet{err})
	case strings.Contains(said(err), "non-deploy key"):
		return nil, failure("set another --private-key-file, or omit it to generate a key",
			"%s: the key belongs to an account already%w", doing, quiet{err})
	}
	return nil, err
}

func (g *Gitea) removeKey(ctx context.Context, key giteaKey) error {
	err := g.call(ctx, fmt.Sprintf("removing the old deploy key %q from %s", key.Title, g.path()), http.MethodDelete, g.api("keys", strconv.Itoa(key.ID)), nil, nil)
	if status(err) == http.StatusNotFound {
		return nil // another run was quicker
	}
	return err
}

func numbered(title string, n int) string { return fmt.Sprintf("%s (%d)", title, n) }

// isTitle tells whether a title is another one, with a number behind it or not.
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
