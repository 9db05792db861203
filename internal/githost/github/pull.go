package github

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/rest"
)

// OpenPull returns a pull request on GitHub.
func OpenPull(h githost.Hosted, number int, client *http.Client, api *rest.API) *rest.Pull {
	base := baseURL(h)
	c := &rest.Client{HTTP: client, Address: strings.TrimSuffix(base.String(), "/"), Token: h.Token}
	notes := rest.HubNotes(c, h, number)
	notes.List = func(ctx context.Context, page int) (some []rest.Note, next int, err error) {
		_, err = c.Call(ctx, http.MethodGet, fmt.Sprintf("%s?per_page=%d&page=%d", notes.Path, rest.CommentPage, page), nil, nil, &some)
		if len(some) == rest.CommentPage {
			next = page + 1
		}
		return some, next, err
	}
	user := notes.Account
	notes.Account = func(ctx context.Context) (githost.Author, error) {
		if strings.HasPrefix(h.Token, "ghs_") {
			return githost.Author{Bot: true}, nil
		}
		author, err := user(ctx)
		if rest.Denied(err) {
			return githost.Author{Bot: true}, nil // the installation of an app
		}
		return author, err
	}
	return &rest.Pull{API: api, Client: c, Notes: notes}
}
