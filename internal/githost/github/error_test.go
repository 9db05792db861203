package github_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/rest"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/test/support/testgithost"
)

// rejection is a case in which Survey fails and changes nothing.
type rejection struct {
	token string
	edit  func(*githost.Hosted)
	setup func(*hub)
	// message and hint have HOST for the host.
	message, hint string
}

func personal(owner string) func(*githost.Hosted) {
	return func(h *githost.Hosted) { h.Owner, h.Personal = owner, true }
}

func team(name string) func(*githost.Hosted) {
	return func(h *githost.Hosted) { h.Teams = []githost.Team{{Name: name, Permission: "maintain"}} }
}

func exists(edit func(*testgithost.Repository)) func(*hub) {
	return func(h *hub) {
		r := h.add("acme/fleet", "private")
		if edit != nil {
			edit(r)
		}
	}
}

var tokenRefusals = map[string]rejection{
	"wrong token": {
		token:   "wrong",
		message: "checking the token: HOST rejected the token (401)",
		hint:    "set GITHUB_TOKEN to a valid token: the current one may be wrong, expired or revoked; create one at https://HOST/settings/tokens",
	},
	"no scope": {
		token: "few", setup: func(h *hub) { h.Classic("few", "ada") },
		message: `the token is missing the scope "repo", which a private repository requires; it has no scopes`,
		hint:    "add the scope at https://HOST/settings/tokens, or with gh auth refresh --hostname HOST --scopes repo",
	},
	"scope of public repositories": {
		token: "few", setup: func(h *hub) { h.Classic("few", "ada", "public_repo", "gist") },
		message: `the token is missing the scope "repo", which a private repository requires; it has public_repo, gist`,
		hint:    "add the scope at https://HOST/settings/tokens, or with gh auth refresh --hostname HOST --scopes repo",
	},
	"no scope for teams": {
		token: "few", setup: func(h *hub) { h.Classic("few", "ada", "repo") }, edit: team("ops"),
		message: `the token is missing the scope "read:org", which granting teams access requires; it has repo`,
		hint:    "add the scope at https://HOST/settings/tokens, or with gh auth refresh --hostname HOST --scopes read:org",
	},
	"no permission to read keys": {
		token: "fine", setup: func(h *hub) { exists(nil)(h); h.Fine("fine", "ada", "contents=write") },
		message: `listing the deploy keys of acme/fleet: the token is missing the permission "administration" (read)`,
		hint:    `add the permission "administration" (read) for acme/fleet at https://HOST/settings/personal-access-tokens`,
	},
	"no permission to read teams": {
		token: "fine", setup: func(h *hub) { h.Fine("fine", "ada", "contents=write", "administration=write") }, edit: team("ops"),
		message: `reading the team acme/ops: the token is missing the permission "members" (read)`,
		hint:    `add the permission "members" (read) for acme/fleet at https://HOST/settings/personal-access-tokens`,
	},
	"single sign-on": {
		token: "classic", setup: func(h *hub) { exists(nil)(h); h.Tokens["classic"].SignOn = []string{"acme"} },
		message: "reading the repository acme/fleet: the organization acme requires single sign-on, for which the token is not authorized",
		hint:    "authorize it at https://HOST/orgs/acme/sso?authorization_request=A1B2",
	},
	"rate limit": {
		token: "classic", setup: func(h *hub) {
			h.Limit = testgithost.GitHubLimit{Until: time.Date(2026, 11, 20, 14, 7, 0, 0, time.UTC), Times: 9}
		},
		message: "checking the token: HOST rejects requests with this token until 2026-11-20T14:07:00Z: rate limit exceeded",
		hint:    "run the command again after that time; it resumes",
	},
	"secondary rate limit": {
		token: "classic", setup: func(h *hub) { h.Limit = testgithost.GitHubLimit{RetryAfter: 300, Times: 9} },
		message: "checking the token: HOST rejects requests with this token until 2026-11-20T13:05:00Z: rate limit exceeded",
		hint:    "run the command again after that time; it resumes",
	},
}

var ownerRefusals = map[string]rejection{
	"unknown owner": {
		token: "classic", edit: func(h *githost.Hosted) { h.Owner = "unknown" },
		message: `user or organization "unknown" not found on HOST, or the token cannot read it`,
		hint:    "check --owner",
	},
	"a user": {
		token: "classic", edit: func(h *githost.Hosted) { h.Owner = "ada" },
		message: "ada is a user, not an organization", hint: "add --personal",
	},
	"an organization": {
		token: "classic", edit: func(h *githost.Hosted) { h.Personal = true },
		message: "acme is an organization, not a user", hint: "omit --personal",
	},
	"an internal repository of a user": {
		token: "classic", edit: func(h *githost.Hosted) { personal("ada")(h); h.Visibility = "internal" },
		message: "a user's repository cannot be internal", hint: "set --visibility=private or public",
	},
	"another user": {
		token: "bobs", edit: personal("ada"),
		message: "authenticated as bob, which can neither read nor create the repository ada/fleet",
		hint:    "use a token of ada, or ask ada to create the repository and grant bob access",
	},
	"an app for a user": {
		token: "ghs_app", edit: personal("ada"), setup: func(h *hub) { h.Fine("ghs_app", "", "administration=write") },
		message: "authenticated as an app, which cannot create a repository for the user ada",
		hint:    "use a personal access token, or create the repository first",
	},
	"no member": {
		token: "eves", setup: func(h *hub) { h.Classic("eves", "eve", "repo", "read:org") },
		message: "eve is not a member of the organization acme, and repository fleet does not exist or the token cannot read it",
		hint:    "ask to be invited, or use the token of a member",
	},
	"pending invitation": {
		token: "eves", setup: func(h *hub) {
			h.Classic("eves", "eve", "repo", "read:org")
			h.Organizations["acme"].Roles["eve"] = "pending"
		},
		message: "eve has not accepted the invitation to the organization acme yet",
		hint:    "accept the invitation at https://HOST/orgs/acme/invitation",
	},
	"members without permission": {
		token: "bobs", setup: func(h *hub) { h.Organizations["acme"].MembersCannotCreate = []string{"private"} },
		message: "members of the organization acme are not allowed to create private repositories",
		hint:    "ask an owner of acme to create the repository, or to allow members to create repositories",
	},
	"unknown team": {
		token: "classic", edit: team("unknown"), setup: exists(nil),
		message: `team "unknown" not found in the organization acme, or the token cannot read it`,
		hint:    "use the name in the team's URL; see https://HOST/orgs/acme/teams",
	},
	"no deploy keys": {
		token: "bobs", setup: func(h *hub) { h.Organizations["acme"].NoDeployKeys = true },
		message: "the owner's policy does not allow deploy keys for acme/fleet",
		hint:    "use --token-auth, or ask an owner to allow deploy keys at https://HOST/organizations/acme/settings/member_privileges",
	},
}

var repositoryRefusals = map[string]rejection{
	"archived": {
		token: "classic", setup: exists(func(r *testgithost.Repository) { r.Archived = true }),
		message: "the repository acme/fleet is archived and read-only", hint: "unarchive it at https://HOST/acme/fleet/settings",
	},
	"disabled": {
		token: "classic", setup: exists(func(r *testgithost.Repository) { r.Disabled = true }),
		message: "the repository acme/fleet is disabled by GitHub", hint: "contact GitHub Support",
	},
	"renamed": {
		token: "classic", setup: func(h *hub) { h.add("acme/flotilla", "private"); h.Renamed["acme/fleet"] = "acme/flotilla" },
		message: "the repository acme/fleet has been renamed to acme/flotilla", hint: "set --owner=acme --repository=flotilla",
	},
	"read only": {
		token: "bobs", setup: exists(func(r *testgithost.Repository) { r.Roles["bob"] = "triage" }),
		message: "bob has no permission to push to acme/fleet", hint: "ask for write access, or use a token of an account that has it",
	},
	"no administrator": {
		token: "bobs", setup: exists(func(r *testgithost.Repository) { r.Roles["bob"] = "maintain" }),
		message: "bob is not an administrator of acme/fleet: deploy keys, teams and settings require the admin role",
		hint:    "ask for the admin role, or use a token of an account that has it; --token-auth requires no deploy key",
	},
}

func TestGitHubSurveyErrors(t *testing.T) {
	t.Parallel()
	for _, table := range []map[string]rejection{tokenRefusals, ownerRefusals, repositoryRefusals} {
		for name, test := range table {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				h := newHub(t)
				h.Users = append(h.Users, "eve")
				if test.setup != nil {
					test.setup(h)
				}
				_, err := h.host(test.token, test.edit).Survey(t.Context(), want)
				h.failed(err, test.message, test.hint)
				if changes := h.Changes(); len(changes) > 0 {
					t.Errorf("the survey changed %v", changes)
				}
			})
		}
	}
}

// failed compares an error and its remedy with the expected ones.
func (h *hub) failed(err error, message, remedy string) {
	h.t.Helper()
	var known *hint.Error
	if !errors.As(err, &known) {
		h.t.Fatalf("no error with a remedy: %v", err)
	}
	h.equal(message, strings.ReplaceAll(err.Error(), h.Hostname, "HOST"))
	h.equal(remedy, strings.ReplaceAll(known.Hint, h.Hostname, "HOST"))
}

// create creates the repository.
func create(t *testing.T, g *rest.Host) error {
	t.Helper()
	if _, err := g.Survey(t.Context(), githost.Want{Branch: "main"}); err != nil {
		return err
	}
	_, err := g.Ensure(t.Context())
	return err
}

// TestGitHubWriteErrors checks the errors of requests that GitHub rejects although
// Survey succeeded.
func TestGitHubWriteErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rejection
		do func(t *testing.T, g *rest.Host) error
	}{
		"no permission to create": {
			rejection{
				token: "fine", setup: func(h *hub) { h.Fine("fine", "ada", "contents=write") },
				message: `creating the repository acme/fleet: the token is missing the permission "administration" (write)`,
				hint:    `add the permission "administration" (write) for acme/fleet at https://HOST/settings/personal-access-tokens`,
			},
			create,
		},
		"hidden repository": {
			rejection{
				token: "fine", setup: func(h *hub) {
					exists(nil)(h)
					h.Fine("fine", "ada", "contents=write", "administration=write")
					h.Tokens["fine"].Sees = []string{}
				},
				message: "creating the repository acme/fleet: the name is taken by a repository that the token cannot read",
				hint:    "set another --repository, or use a token with access to the repository",
			},
			create,
		},
		"key of another repository": {
			rejection{
				token: "classic", setup: func(h *hub) {
					exists(nil)(h)
					h.add("acme/other", "private").Keys = []*testgithost.Key{{ID: 1, Key: key1}}
				},
				message: "the key is in use elsewhere on HOST and cannot be a deploy key of acme/fleet",
				hint:    "use another key: on GitHub a key belongs to one repository or user",
			},
			addKey(key1),
		},
		"policy": {
			rejection{
				token: "classic", setup: func(h *hub) { exists(nil)(h); h.Organizations["acme"].NoDeployKeys = true },
				message: "the owner's policy does not allow deploy keys for acme/fleet",
				hint:    "use --token-auth, or ask an owner to allow deploy keys at https://HOST/organizations/acme/settings/member_privileges",
			},
			addKey(key1),
		},
		"no key": {
			rejection{
				token: "classic", setup: exists(nil),
				message: `adding the deploy key "flux" to acme/fleet: HOST rejected the request (422): Validation Failed: key is invalid. You must supply a key in OpenSSH public key format`,
				hint:    "check the names and the flags",
			},
			addKey("not a key"),
		},
		"hidden by scopes": {
			rejection{
				token: "few", setup: func(h *hub) {
					h.add("acme/fleet", "public").Roles["bob"] = "admin"
					h.Classic("few", "bob", "read:org")
				},
				message: `the token is missing the scope "repo", which adding the deploy key "flux" to acme/fleet requires; it has read:org`,
				hint:    "add the scope at https://HOST/settings/tokens, or with gh auth refresh --hostname HOST --scopes repo",
			},
			addKey(key1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			test.setup(h)
			h.failed(test.do(t, h.host(test.token, test.edit)), test.message, test.hint)
			if changes := h.Changes(); len(changes) > 0 {
				t.Errorf("the survey changed %v", changes)
			}
		})
	}
}

func addKey(key string) func(*testing.T, *rest.Host) error {
	return func(t *testing.T, g *rest.Host) error {
		return g.DeployKey(t.Context(), githost.DeployKey{Title: "flux", Public: key})
	}
}
