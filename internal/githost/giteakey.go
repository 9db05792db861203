package githost

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
)

// giteaKeys is the deploy keys of a repository on Gitea. Titles are unique there
// and cannot be changed, so the title of a key that replaces another one has a
// number.
type giteaKeys struct {
	*giteaAPI
	repository, path string
	titles           map[string]bool
}

// giteaKey is a deploy key in the API.
type giteaKey struct {
	ID       int    `json:"id"`
	Title    string `json:"title"`
	Key      string `json:"key"`
	ReadOnly bool   `json:"read_only"`
}

func (k *giteaKeys) list(ctx context.Context, title string) ([]storedKey, error) {
	var all []storedKey
	err := giteaPages(ctx, k.giteaAPI, "listing the deploy keys of "+k.repository, k.path, nil, func(found giteaKey) {
		k.titles[found.Title] = true
		all = append(all, storedKey{
			id: int64(found.ID), title: found.Title, public: found.Key, titled: isTitle(found.Title, title), permitted: found.ReadOnly != k.hosted.ReadWriteKey,
		})
	})
	return all, err
}

func (k *giteaKeys) add(ctx context.Context, key DeployKey) error {
	title := key.Title
	for n := 2; k.titles[title]; n++ {
		title = numbered(key.Title, n)
	}
	doing := fmt.Sprintf("adding the deploy key %q to %s", key.Title, k.repository)
	err := k.call(ctx, doing, http.MethodPost, k.path, map[string]any{"title": title, "key": key.Public, "read_only": !k.hosted.ReadWriteKey}, nil)
	switch {
	case status(err) != http.StatusUnprocessableEntity:
		return err
	case strings.Contains(message(err), "already been added"):
		return nil // by an earlier request of this run whose response was lost
	case strings.Contains(message(err), "SSH is disabled"):
		return hint.Errorf("use --token-auth", "%s: %s has SSH disabled%w", doing, k.hosted.Hostname, silent{err})
	case strings.Contains(message(err), "non-deploy key"):
		return hint.Errorf("set another --private-key-file, or omit it to generate a key",
			"%s: an account has the key already%w", doing, silent{err})
	}
	return err
}

func (k *giteaKeys) remove(ctx context.Context, key storedKey) error {
	err := k.call(ctx, fmt.Sprintf("removing the old deploy key %q from %s", key.title, k.repository), http.MethodDelete, k.path+"/"+strconv.FormatInt(key.id, 10), nil, nil)
	if err == nil || status(err) == http.StatusNotFound { // another run has removed it
		delete(k.titles, key.title)
		return nil
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
