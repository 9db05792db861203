package githost

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/xanzy/go-gitlab"

	"github.com/fluxkit/flux/internal/hint"
)

// DeployKey implements Host. GitLab has one object for a key that several projects
// use: a key of another project of the account is enabled for this one.
func (g *GitLab) DeployKey(ctx context.Context, key DeployKey) error {
	doing := "adding a deploy key to project " + g.project.PathWithNamespace
	var now time.Time // of GitLab, which decides whether a key has expired
	present, err := gitlabPages(func(page gitlab.ListOptions) ([]*gitlab.ProjectDeployKey, *gitlab.Response, error) {
		options := gitlab.ListProjectDeployKeysOptions(page)
		keys, response, err := g.api.DeployKeys.ListProjectDeployKeys(g.project.ID, &options, gitlab.WithContext(ctx))
		if at, dateErr := http.ParseTime(responseDate(response)); dateErr == nil {
			now = at
		}
		return keys, response, err
	})
	if err != nil {
		return g.problem(ctx, "listing the deploy keys of project "+g.project.PathWithNamespace, err)
	}
	var old []*gitlab.ProjectDeployKey
	var same *gitlab.ProjectDeployKey
	for _, k := range present {
		switch {
		case keyData(k.Key) == keyData(key.Public):
			same = k
		case k.Title == key.Title && !key.KeepOthers:
			old = append(old, k)
		}
	}
	if same != nil && same.ExpiresAt != nil && same.ExpiresAt.Before(now) {
		// The expiry of a key cannot be changed, and a key cannot be added twice.
		if _, err := g.api.DeployKeys.DeleteDeployKey(g.project.ID, same.ID, gitlab.WithContext(ctx)); err != nil && !gitlabMissing(err) {
			return g.problem(ctx, "removing an expired deploy key from project "+g.project.PathWithNamespace, err)
		}
		same = nil
	}
	if same == nil {
		options := &gitlab.AddDeployKeyOptions{Title: &key.Title, Key: &key.Public, CanPush: &g.hosted.ReadWriteKey}
		same, _, err = g.api.DeployKeys.AddDeployKey(g.project.ID, options, gitlab.WithContext(ctx))
		if gitlabTaken(err) {
			return hint.Errorf("omit --private-key-file to generate a key, or set another one",
				"%s: a user, or a project that %s cannot read, has the key already", doing, g.account.name)
		}
		if err != nil {
			return g.problem(ctx, doing, err)
		}
	}
	if same.CanPush != g.hosted.ReadWriteKey {
		options := &gitlab.UpdateDeployKeyOptions{CanPush: &g.hosted.ReadWriteKey}
		if _, _, err := g.api.DeployKeys.UpdateDeployKey(g.project.ID, same.ID, options, gitlab.WithContext(ctx)); err != nil {
			return g.problem(ctx, "changing the permissions of the deploy key of project "+g.project.PathWithNamespace, err)
		}
	}
	for _, k := range old {
		if _, err := g.api.DeployKeys.DeleteDeployKey(g.project.ID, k.ID, gitlab.WithContext(ctx)); err != nil && !gitlabMissing(err) {
			return g.problem(ctx, "removing the previous deploy key", err)
		}
	}
	return nil
}

// responseDate returns the date of a response.
func responseDate(response *gitlab.Response) string {
	if response == nil {
		return ""
	}
	return response.Header.Get("Date")
}

// keyData returns a public key without its comment.
func keyData(public string) string {
	fields := strings.Fields(public)
	return strings.Join(fields[:min(len(fields), 2)], " ")
}

// DeployToken implements Tokener.
func (g *GitLab) DeployToken(ctx context.Context, title string) (username, token string, err error) {
	old, err := gitlabPages(func(page gitlab.ListOptions) ([]*gitlab.DeployToken, *gitlab.Response, error) {
		options := gitlab.ListProjectDeployTokensOptions(page)
		return g.api.DeployTokens.ListProjectDeployTokens(g.project.ID, &options, gitlab.WithContext(ctx))
	})
	if err != nil {
		return "", "", g.problem(ctx, "listing the deploy tokens of project "+g.project.PathWithNamespace, err)
	}
	created, _, err := g.api.DeployTokens.CreateProjectDeployToken(g.project.ID,
		&gitlab.CreateProjectDeployTokenOptions{Name: &title, Scopes: &[]string{"read_repository"}}, gitlab.WithContext(ctx))
	if err != nil {
		return "", "", g.problem(ctx, "creating a deploy token for project "+g.project.PathWithNamespace, err)
	}
	for _, t := range old {
		if t.Name != title || t.Revoked {
			continue
		}
		if _, err := g.api.DeployTokens.DeleteProjectDeployToken(g.project.ID, t.ID, gitlab.WithContext(ctx)); err != nil && !gitlabMissing(err) {
			return "", "", g.problem(ctx, "revoking the previous deploy token", err)
		}
	}
	return created.Username, created.Token, nil
}

// RequestChange implements Requester.
func (g *GitLab) RequestChange(ctx context.Context, change Change) (Request, error) {
	doing := fmt.Sprintf("opening a merge request in project %s", g.project.PathWithNamespace)
	for attempt := 0; ; attempt++ {
		open, _, err := g.api.MergeRequests.ListProjectMergeRequests(g.project.ID, &gitlab.ListProjectMergeRequestsOptions{
			State: gitlab.Ptr("opened"), SourceBranch: &change.Head, TargetBranch: &change.Base,
		}, gitlab.WithContext(ctx))
		if err != nil {
			return Request{}, g.problem(ctx, "listing the merge requests of project "+g.project.PathWithNamespace, err)
		}
		for _, m := range open {
			if m.SourceProjectID == g.project.ID { // not from a fork
				return Request{URL: m.WebURL, Number: m.IID}, nil
			}
		}
		opened, _, err := g.api.MergeRequests.CreateMergeRequest(g.project.ID, &gitlab.CreateMergeRequestOptions{
			SourceBranch: &change.Head, TargetBranch: &change.Base, Title: &change.Title, Description: &change.Body,
			RemoveSourceBranch: gitlab.Ptr(true),
		}, gitlab.WithContext(ctx))
		switch {
		case err == nil:
			return Request{URL: opened.WebURL, Number: opened.IID, Opened: true}, nil
		case status(err) == 409 && attempt == 0:
			continue // it was opened between the requests, or by one whose response was lost
		default:
			return Request{}, g.problem(ctx, doing, err)
		}
	}
}
