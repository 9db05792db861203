package bitbucket

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/rest"
)

// OpenPull returns a pull request on Bitbucket Server or Data Center. Only the activities of a pull request list all
// comments. An edited comment or a comment with replies has several activities.
func OpenPull(h githost.Hosted, number int, client *http.Client, api *rest.API) *rest.Pull {
	c, of := newClient(h, client), coreAPI+repositoryPath(h.Owner, h.Name)
	path := fmt.Sprintf("%s/pull-requests/%d", of, number)
	web := h.HTTPURL(fmt.Sprintf("projects/%s/repos/%s/pull-requests/%d", h.Owner, h.Name, number))
	api.Cause = cause(api)
	return &rest.Pull{API: api, Client: c, Notes: rest.Notes{
		Path: path + "/comments", One: path + "/comments", Edit: http.MethodPut, Versioned: true,
		Body: func(text string) map[string]any { return map[string]any{"text": text} },
		List: func(ctx context.Context, number int) (some []rest.Note, next int, err error) {
			start := number - 1
			var listed page[struct {
				Action  string
				Comment rest.Note
			}]
			_, err = c.Call(ctx, http.MethodGet, fmt.Sprintf("%s/activities?limit=%d&start=%d", path, rest.CommentPage, start), nil, nil, &listed)
			for _, activity := range listed.Values {
				if activity.Action == "COMMENTED" {
					some = append(some, activity.Comment)
				}
			}
			return some, listed.after() + 1, err
		},
		Author: func(n rest.Note) githost.Author { return githost.Author{ID: n.Author.Name} },
		Link:   func(id int64) string { return fmt.Sprintf("%s/overview?commentId=%d", web, id) },
		Account: func(ctx context.Context) (githost.Author, error) { // each response contains the account in a header
			header, err := c.Call(ctx, http.MethodGet, of, nil, nil, nil)
			account, escaped := url.QueryUnescape(header.Get(accountHeader))
			if escaped != nil {
				account = header.Get(accountHeader)
			}
			return githost.Author{ID: account}, err
		},
		Status: func(commit string, s githost.Status) (string, any) {
			return of + "/commits/" + commit + "/builds", buildStatus(s, web)
		},
	}}
}

// cloudHost is the host of Bitbucket Cloud. Its API has a separate host.
const cloudHost = "bitbucket.org"

// OpenCloudPull returns a pull request on Bitbucket Cloud.
func OpenCloudPull(h githost.Hosted, number int, client *http.Client, api *rest.API) *rest.Pull {
	server := h
	if h.Hostname == cloudHost {
		server.Hostname = "api." + cloudHost
	}
	c, of := rest.NewClient(client, server, "/2.0"), "/repositories/"+h.Owner+"/"+h.Name
	comments := fmt.Sprintf("%s/pullrequests/%d/comments", of, number)
	return &rest.Pull{API: api, Client: c, Notes: rest.Notes{
		Path: comments, One: comments, Edit: http.MethodPut,
		Body: func(text string) map[string]any { return map[string]any{"content": map[string]string{"raw": text}} },
		List: func(ctx context.Context, page int) ([]rest.Note, int, error) {
			var listed struct {
				Values []rest.Note `json:"values"`
				Next   string      `json:"next"`
			}
			_, err := c.Call(ctx, http.MethodGet, fmt.Sprintf("%s?pagelen=%d&page=%d", comments, rest.CommentPage, page), nil, nil, &listed)
			if listed.Next == "" {
				return listed.Values, 0, err
			}
			return listed.Values, page + 1, err
		},
		Author: func(n rest.Note) githost.Author { return githost.Author{ID: n.User.UUID} },
		Account: func(ctx context.Context) (githost.Author, error) {
			user, err := c.CurrentUser(ctx)
			return githost.Author{ID: user.UUID}, err
		},
		Status: func(commit string, s githost.Status) (string, any) {
			const most = 40 // characters of a key
			in := buildStatus(s, fmt.Sprintf("https://%s/%s/%s/pull-requests/%d", cloudHost, h.Owner, h.Name, number))
			if len(s.Name) > most {
				sum := sha256.Sum256([]byte(s.Name))
				in["key"] = hex.EncodeToString(sum[:])[:most]
			}
			return of + "/commit/" + commit + "/statuses/build", in
		},
	}}
}

// buildStatus returns the request body for a build status. Bitbucket has no state for errors and requires a web page.
func buildStatus(s githost.Status, page string) map[string]string {
	const most = 255 // characters of the description
	state := map[githost.State]string{githost.Succeeded: "SUCCESSFUL", githost.Failed: "FAILED", githost.Errored: "FAILED"}[s.State]
	return map[string]string{"state": state, "key": s.Name, "name": s.Name, "description": rest.Short(s.Text, most), "url": cmp.Or(s.URL, page)}
}
