package githost

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/xanzy/go-gitlab"
)

// DeployKey implements Host. GitLab knows a key by its contents, however many
// projects use it: one that another project of the account's has is enabled.
func (g *GitLab) DeployKey(ctx context.Context, key DeployKey) error {
	doing := "adding a deploy key to project " + g.project.PathWithNamespace
	var asked time.Time // by the clock that says whether a key has expired
	there, err := gitlabPages(func(page gitlab.ListOptions) ([]*gitlab.ProjectDeployKey, *gitlab.Response, error) {
		options := gitlab.ListProjectDeployKeysOptions(page)
		keys, answer, err := g.api.DeployKeys.ListProjectDeployKeys(g.project.ID, &options, gitlab.WithContext(ctx))
		if at, dateErr := http.ParseTime(answerDate(answer)); dateErr == nil {
			asked = at
		}
		return keys, answer, err
	})
	if err != nil {
		return g.problem(ctx, "listing the deploy keys of project "+g.project.PathWithNamespace, err)
	}
	var old []*gitlab.ProjectDeployKey
	var same *gitlab.ProjectDeployKey
	for _, k := range there {
		switch {
		case keyData(k.Key) == keyData(key.Public):
			same = k
		case k.Title == key.Title && !key.KeepOthers:
			old = append(old, k)
		}
	}
	if same != nil && same.ExpiresAt != nil && same.ExpiresAt.Before(asked) {
		// The end of a key cannot be moved, and the same key not be added twice.
		if _, err := g.api.DeployKeys.DeleteDeployKey(g.project.ID, same.ID, gitlab.WithContext(ctx)); err != nil && !gitlabMissing(err) {
			return g.problem(ctx, "removing an expired deploy key from project "+g.project.PathWithNamespace, err)
		}
		same = nil
	}
	if same == nil {
		options := &gitlab.AddDeployKeyOptions{Title: &key.Title, Key: &key.Public, CanPush: &g.hosted.ReadWriteKey}
		same, _, err = g.api.DeployKeys.AddDeployKey(g.project.ID, options, gitlab.WithContext(ctx))
		if gitlabTaken(err) {
			return failure("omit --private-key-file to generate a key, or set another one",
				"%s: GitLab knows the key already, of a user or of a project that %s does not see", doing, g.account.name)
		}
		if err != nil {
			return g.problem(ctx, doing, err)
		}
	}
	if same.CanPush != g.hosted.ReadWriteKey {
		options := &gitlab.UpdateDeployKeyOptions{CanPush: &g.hosted.ReadWriteKey}
		if _, _, err := g.api.DeployKeys.UpdateDeployKey(g.project.ID, same.ID, options, gitlab.WithContext(ctx)); err != nil {
			return g.problem(ctx, "changing what the deploy key of project "+g.project.PathWithNamespace+" may do", err)
		}
	}
	for _, k := range old {
		if _, err := g.api.DeployKeys.DeleteDeployKey(g.project.ID, k.ID, gitlab.WithContext(ctx)); err != nil && !gitlabMissing(err) {
			return g.problem(ctx, "removing the previous deploy key", err)
		}
	}
	return nil
}

// answerDate is when GitLab answered, by its clock.
func answerDate(answer *gitlab.Response) string {
	if answer == nil {
		return ""
	}
	return answer.Header.Get("Date")
}

// keyData is a public key without its comment.
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
	made, _, err := g.api.DeployTokens.CreateProjectDeployToken(g.project.ID,
		&gitlab.CreateProjectDeployTokenOptions{Name: &title, Scopes: &[]string{"read_repository"}}, gitlab.WithContext(ctx))
	if err != nil {
		return "", "", g.problem(ctx, "creating a deploy token for project "+g.project.PathWithNamespace, err)
	}
	for _, t := range old {
		if t.Name != title || t.Revoked {
			continue
		}
		if _, err := g.api.DeployTokens.DeleteProjectDeployToken(g.project.ID, t.ID, gitlab.WithContext(ctx)); err != nil && !gitlabMissing(err) {
			return "", "", g.problem(ctx, "revoking the deploy token that was there before", err)
		}
	}
	return made.Username, made.Token, nil
}

// RequestChange implements Requester.
func (g *GitLab) RequestChange(ctx context.Context, change Change) (Request, error) {
	doing := fmt.Sprintf("opening a merge request in project %s", g.project.PathWithNamespace)
	for attempt := 0; ; attempt++ {
		open, _, err := g.api.MergeRequests.ListProjectMergeRequests(g.project.ID, &gitlab.ListProjectMergeRequestsOptions{
			State: gitlab.Ptr("opened"), SourceBranch: &change.Head, TargetBranch: &change.Base,
		}, gitlab.WithContext(ctx))
		if err != nil {
			return Request{}, g.problem(ctx, "looking for an open merge request in project "+g.project.PathWithNamespace, err)
		}
		for _, m := range open {
			if m.SourceProjectID == g.project.ID { // not one from a fork
				return Request{URL: m.WebURL, Number: m.IID}, nil
			}
		}
		made, _, err := g.api.MergeRequests.CreateMergeRequest(g.project.ID, &gitlab.CreateMergeRequestOptions{
			SourceBranch: &change.Head, TargetBranch: &change.Base, Title: &change.Title, Description: &change.Body,
			RemoveSourceBranch: gitlab.Ptr(true),
		}, gitlab.WithContext(ctx))
		switch {
		case err == nil:
			return Request{URL: made.WebURL, Number: made.IID, Opened: true}, nil
		case gitlabStatus(err) == 409 && attempt == 0:
			continue // it was opened between the two requests, or by one whose answer was lost
		default:
			return Request{}, g.problem(ctx, doing, err)
		}
	}
}
