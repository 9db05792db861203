package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/rest"
)

// OpenPull returns a merge request on GitLab.
func OpenPull(h githost.Hosted, number int, client *http.Client, api *rest.API) *rest.Pull {
	c := rest.NewClient(client, h, "/api/v4")
	project := "/projects/" + url.PathEscape(h.String())
	path := fmt.Sprintf("%s/merge_requests/%d/notes", project, number)
	return &rest.Pull{API: api, Client: c, Notes: rest.Notes{
		Path: path, One: path, Edit: http.MethodPut,
		Body: func(text string) map[string]any { return map[string]any{"body": text} },
		List: func(ctx context.Context, page int) (some []rest.Note, next int, err error) {
			header, err := c.Call(ctx, http.MethodGet, fmt.Sprintf("%s?per_page=%d&page=%d", path, rest.CommentPage, page), nil, nil, &some)
			next, _ = strconv.Atoi(header.Get("X-Next-Page")) // "" on the last page
			return some, next, err
		},
		Author: func(n rest.Note) githost.Author { return n.Author.Numbered() },
		Link: func(id int64) string {
			return h.HTTPURL(fmt.Sprintf("%s/-/merge_requests/%d#note_%d", h, number, id))
		},
		Account: func(ctx context.Context) (githost.Author, error) {
			user, err := c.CurrentUser(ctx)
			return user.Numbered(), err
		},
		Status: func(commit string, s githost.Status) (string, any) {
			const most = 255 // characters of the description; GitLab has no state for errors
			state := map[githost.State]string{githost.Succeeded: "success", githost.Failed: "failed", githost.Errored: "failed"}[s.State]
			in := map[string]string{"state": state, "name": s.Name, "description": rest.Short(s.Text, most)}
			if s.URL != "" {
				in["target_url"] = s.URL
			}
			return project + "/statuses/" + commit, in
		},
	}}
}
