package testgithost

import (
	"fmt"
	"hash/crc32"
	"maps"
	"net/url"
	"strings"
)

// object is an object of GitHub's API.
type object map[string]any

// gitHubView renders the state of the host as GitHub's API does.
type gitHubView struct{ github *GitHub }

// node returns the fields that every object of GitHub has.
func (v gitHubView) node(path string) object {
	id := int64(crc32.ChecksumIEEE([]byte(path))) + 1
	return object{"id": id, "node_id": fmt.Sprintf("N%d", id), "url": v.apiURL(path)}
}

func (v gitHubView) apiURL(path string) string {
	return "https://" + v.github.Hostname + "/api/v3" + path
}

func (v gitHubView) webURL(path string) string { return "https://" + v.github.Hostname + path }

// link adds fields with URLs below the URL of the object, such as hooks_url for "hooks".
func (o object) link(names ...string) object {
	for _, name := range names {
		o[name+"_url"] = fmt.Sprintf("%s/%s", o["url"], name)
	}
	return o
}

// fill sets fields for which the stand-in has no state to a value.
func (o object) fill(value any, names ...string) object {
	for _, name := range names {
		if _, ok := o[name]; !ok {
			o[name] = value
		}
	}
	return o
}

func (o object) with(fields object) object {
	maps.Copy(o, fields)
	return o
}

// account returns a user or an organization in the form in which other objects reference it.
func (v gitHubView) account(login string) object {
	kind := "User"
	if v.github.Organizations[login] != nil {
		kind = "Organization"
	}
	o := v.node("/users/" + login).with(object{
		"login": login, "type": kind, "site_admin": false, "gravatar_id": "", "html_url": v.webURL("/" + login), "avatar_url": v.webURL("/avatars/" + login),
	})
	return o.link("events", "followers", "following", "gists", "received_events", "repos", "starred", "subscriptions").
		with(object{"organizations_url": v.apiURL("/users/" + login + "/orgs")})
}

// profile returns a user or an organization with its profile.
func (v gitHubView) profile(login string) object {
	o := v.account(login).with(object{"user_view_type": "public", "created_at": stamp(), "updated_at": stamp()})
	return o.fill(0, "followers", "following", "public_gists", "public_repos").
		fill(nil, "bio", "blog", "company", "email", "hireable", "location", "name")
}

// organizationReference returns an organization in the form in which other objects reference it.
func (v gitHubView) organizationReference(login string) object {
	o := v.node("/orgs/" + login).with(object{"login": login, "description": nil, "avatar_url": v.webURL("/avatars/" + login)})
	return o.link("repos", "events", "hooks", "issues", "members", "public_members")
}

// organizationProfile returns an organization with its profile.
func (v gitHubView) organizationProfile(login string) object {
	o := v.organizationReference(login).with(object{
		"type": "Organization", "html_url": v.webURL("/" + login), "created_at": stamp(), "updated_at": stamp(), "archived_at": nil,
	})
	return o.fill(true, "has_organization_projects", "has_repository_projects").fill(0, "public_repos", "public_gists", "followers", "following")
}

// teamObject returns a team of an organization.
func (v gitHubView) teamObject(org, slug string) object {
	o := v.node("/orgs/" + org + "/teams/" + slug).with(object{
		"slug": slug, "name": slug, "description": nil, "permission": "pull", "type": "organization", "created_at": stamp(), "updated_at": stamp(),
		"html_url": v.webURL("/orgs/" + org + "/teams/" + slug), "members_count": len(v.github.Organizations[org].Teams[slug]), "repos_count": 0,
		"organization": v.organizationProfile(org),
	})
	o.link("members", "repos")
	o["repositories_url"] = o["repos_url"]
	delete(o, "repos_url")
	return o
}

// repositoryObject returns a repository as visible to an account with a role.
func (v gitHubView) repositoryObject(r *Repository, role string) object {
	branch, _ := v.github.standard(r)
	may := map[string]bool{}
	for _, name := range gitHubRoles[1:] {
		may[name] = reaches(role, name)
	}
	web := v.webURL("/" + r.FullName())
	o := v.node("/repos/" + r.FullName()).with(object{
		"name": r.Name, "full_name": r.FullName(), "owner": v.account(r.Owner), "private": r.Visibility != "public", "visibility": r.Visibility,
		"description": r.Description, "default_branch": branch, "archived": r.Archived, "disabled": r.Disabled, "permissions": may,
		"created_at": stamp(), "updated_at": stamp(), "pushed_at": stamp(),
		"html_url": web, "clone_url": web + ".git", "svn_url": web, "git_url": "git://" + v.github.Hostname + "/" + r.FullName() + ".git",
		"ssh_url": "ssh://git@" + v.github.Hostname + "/" + r.FullName() + ".git",
	})
	o.link("archive", "assignees", "blobs", "branches", "collaborators", "comments", "commits", "compare", "contents", "contributors", "deployments",
		"downloads", "events", "forks", "git_commits", "git_refs", "git_tags", "hooks", "issue_comment", "issue_events", "issues", "keys", "labels",
		"languages", "merges", "milestones", "notifications", "pulls", "releases", "stargazers", "statuses", "subscribers", "subscription", "tags",
		"teams", "trees")
	return o.fill(false, "fork", "has_downloads", "has_issues", "has_projects", "has_wiki", "has_pages").
		fill(0, "forks", "forks_count", "open_issues", "open_issues_count", "size", "stargazers_count", "watchers", "watchers_count").
		fill(nil, "homepage", "language", "mirror_url", "license")
}

// fullRepository returns a repository in the form of a request for a single repository.
func (v gitHubView) fullRepository(r *Repository, role string) object {
	return v.repositoryObject(r, role).fill(0, "network_count", "subscribers_count").fill(false, "has_discussions")
}

// keyObject returns a deploy key.
func (v gitHubView) keyObject(r *Repository, k *Key) object {
	return object{
		"id": k.ID, "title": k.Title, "key": k.Key, "read_only": k.ReadOnly, "verified": true, "created_at": stamp(),
		"url": v.apiURL(fmt.Sprintf("/repos/%s/keys/%d", r.FullName(), k.ID)),
	}
}

// branchObject returns a branch with the part of its protection that is visible to every reader.
func (v gitHubView) branchObject(r *Repository, name, head string) object {
	path := "/repos/" + r.FullName() + "/branches/" + url.PathEscape(name)
	commit := v.node("/repos/" + r.FullName() + "/commits/" + head).with(object{
		"sha": head, "html_url": v.webURL("/" + r.FullName() + "/commit/" + head), "author": nil, "committer": nil, "parents": []any{},
		"commit": object{
			"url": v.apiURL("/repos/" + r.FullName() + "/git/commits/" + head), "author": nil, "committer": nil, "message": "", "comment_count": 0,
			"tree": object{"sha": head, "url": v.apiURL("/repos/" + r.FullName() + "/git/trees/" + head)},
		},
	}).link("comments")
	protection := object{"enabled": false, "required_status_checks": object{"enforcement_level": "off", "contexts": []any{}, "checks": []any{}}}
	if p := r.Protection[name]; p != nil {
		level := "off"
		if p.Checks {
			level = "non_admins"
		}
		if p.Checks && p.EnforceAdmins {
			level = "everyone"
		}
		protection = object{"enabled": true, "required_status_checks": object{"enforcement_level": level, "contexts": []any{}, "checks": []any{}}}
	}
	return object{
		"name": name, "commit": commit, "protected": len(r.Rules[name]) > 0 || r.Protection[name] != nil, "protection": protection,
		"protection_url": v.apiURL(path + "/protection"),
		"_links":         object{"self": v.apiURL(path), "html": v.webURL("/" + r.FullName() + "/tree/" + name)},
	}
}

// protectionObject returns the whole protection of a branch.
func (v gitHubView) protectionObject(r *Repository, branch string, p *GitHubProtection) object {
	base := v.apiURL("/repos/" + r.FullName() + "/branches/" + url.PathEscape(branch) + "/protection")
	o := object{
		"url": base, "enforce_admins": object{"url": base + "/enforce_admins", "enabled": p.EnforceAdmins}, "lock_branch": object{"enabled": p.Locked},
	}
	if p.Reviews {
		o["required_pull_request_reviews"] = object{"required_approving_review_count": 1, "dismiss_stale_reviews": false, "require_code_owner_reviews": false}
	}
	if p.Checks {
		o["required_status_checks"] = object{
			"url": base + "/required_status_checks", "contexts_url": base + "/required_status_checks/contexts",
			"strict": true, "contexts": []any{"ci"}, "checks": []any{object{"context": "ci", "app_id": nil}},
		}
	}
	if p.Pushers != nil {
		users := []any{}
		for _, login := range p.Pushers {
			users = append(users, v.account(login))
		}
		o["restrictions"] = object{"url": base + "/restrictions", "users": users, "teams": []any{}, "apps": []any{}}.link("users", "teams", "apps")
	}
	return o
}

// parameters of rules whose type requires them.
var gitHubRuleParameters = map[string]object{
	"pull_request": {
		"dismiss_stale_reviews_on_push": false, "require_code_owner_review": false, "require_last_push_approval": false,
		"required_approving_review_count": 1, "required_review_thread_resolution": false,
	},
	"required_status_checks": {"required_status_checks": []any{object{"context": "ci"}}, "strict_required_status_checks_policy": false},
}

func (v gitHubView) ruleObject(r *Repository, rule GitHubRule) object {
	o := object{"type": rule.Type, "ruleset_id": rule.Ruleset, "ruleset_source_type": "Repository", "ruleset_source": r.FullName()}
	if parameters := gitHubRuleParameters[rule.Type]; parameters != nil {
		o["parameters"] = parameters
	}
	return o
}

// pullObject returns a pull request in the form of lists.
func (v gitHubView) pullObject(r *Repository, p *Pull) object {
	number := fmt.Sprint(p.Number)
	o := v.node("/repos/" + r.FullName() + "/pulls/" + number)
	web := v.webURL("/" + r.FullName() + "/pull/" + number)
	o.with(object{
		"number": p.Number, "title": p.Title, "body": p.Body, "state": map[bool]string{false: "open", true: "closed"}[p.Merged], "locked": false,
		"html_url": web, "diff_url": web + ".diff", "patch_url": web + ".patch", "issue_url": v.apiURL("/repos/" + r.FullName() + "/issues/" + number),
		"created_at": stamp(), "updated_at": stamp(), "user": v.account(r.Owner), "author_association": "MEMBER", "labels": []any{},
		"head": v.branchOfPull(r, p.Head), "base": v.branchOfPull(r, p.Base),
	})
	links := object{}
	for _, name := range []string{"comments", "commits", "statuses", "html", "issue", "review_comments", "review_comment", "self"} {
		links[name] = object{"href": fmt.Sprintf("%s/%s", o["url"], name)}
	}
	o["_links"] = links
	return o.link("comments", "commits", "review_comment", "review_comments", "statuses").
		fill(nil, "assignee", "closed_at", "merge_commit_sha", "merged_at", "milestone", "auto_merge")
}

func (v gitHubView) branchOfPull(r *Repository, branch string) object {
	head, err := v.github.Git.Head(r.FullName(), branch)
	if err != nil {
		head = strings.Repeat("0", 40) // the branch was deleted after the merge
	}
	return object{"ref": branch, "label": r.Owner + ":" + branch, "sha": head, "repo": v.repositoryObject(r, "pull"), "user": v.account(r.Owner)}
}

// fullPull returns a pull request in the form of the response that creates it.
func (v gitHubView) fullPull(r *Repository, p *Pull) object {
	return v.pullObject(r, p).with(object{"merged": p.Merged, "mergeable": true, "mergeable_state": "clean", "maintainer_can_modify": false, "merged_by": nil}).
		fill(0, "additions", "changed_files", "comments", "commits", "deletions", "review_comments")
}
