package bitbucket

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/rest"
	"github.com/fluxkit/flux/test/support/testgithost"
)

func openBitbucket(t *testing.T, contents string) *testgithost.Bitbucket {
	t.Helper()
	b, err := testgithost.OpenBitbucket(contents)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func newBitbucket(t *testing.T, b *testgithost.Bitbucket, edit func(*githost.Hosted)) *rest.Host {
	t.Helper()
	h := githost.Hosted{
		Hostname: b.Hostname, Scheme: "https", BasePath: b.Base, Token: "alice-admin", CABundle: b.CA,
		Owner: "PLAT", Name: "fleet", Visibility: "private", Branch: "main",
	}
	if edit != nil {
		edit(&h)
	}
	client, err := rest.Caller{UserAgent: "test", Now: time.Now, Waiting: t.Logf}.Client(h)
	if err != nil {
		t.Fatal(err)
	}
	return New(h, client)
}

// TestBitbucketSurveyErrors requires that Survey reports what would fail, and that
// it changes nothing.
func TestBitbucketSurveyErrors(t *testing.T) {
	t.Parallel()
	push := githost.Want{Branch: "main"}
	keyed := githost.Want{Branch: "main", KeyTitle: "flux"}
	for name, test := range map[string]struct {
		contents string
		edit     func(*githost.Hosted)
		want     githost.Want
		err      string
		hint     string
	}{
		"unknown token": {
			"", func(h *githost.Hosted) { h.Token = "unknown" }, push,
			"finding project PLAT: HOST rejected the token (401)", "BITBUCKET_TOKEN",
		},
		"expired token": {
			"", func(h *githost.Hosted) { h.Token = "alice-old" }, push,
			"finding project PLAT: HOST rejected the token (401)", "create one at",
		},
		"no such project": {
			"", func(h *githost.Hosted) { h.Owner = "NONE" }, push, `project "NONE" not found, or the token of alice cannot read it`, "--owner",
		},
		"two projects": {
			"", func(h *githost.Hosted) { h.Owner = "Twins" }, push, `2 projects are named "Twins"`, "key",
		},
		"project without access": {
			"", func(h *githost.Hosted) { h.Owner = "OTHER" }, push,
			"finding project OTHER: alice has no permission (401): You are not permitted to access this resource", "repository admin",
		},
		"repository without access": {
			"repository OTHER/open bob=read alice=read\nrepository OTHER/fleet", func(h *githost.Hosted) { h.Owner = "OTHER" }, push,
			"repository OTHER/fleet exists, but alice cannot read it", "access",
		},
		"no permission to create": {
			"", func(h *githost.Hosted) { h.Token = "bob-admin" }, push,
			"repository PLAT/fleet does not exist, and bob has no permission to create it in project PLAT", "project admin",
		},
		"token without permission to create": {
			"", func(h *githost.Hosted) { h.Token = "alice-write" }, push,
			"repository PLAT/fleet does not exist, and alice has no permission to create it in project PLAT", "project admin",
		},
		"another user": {
			"repository ~bob/open alice=read", func(h *githost.Hosted) { h.Owner, h.Personal = "bob", true }, push,
			"repository ~bob/fleet does not exist, and alice cannot create it for another user", "token of bob",
		},
		"user without a project": {
			"", func(h *githost.Hosted) { h.Owner = "~eve" }, push, "user eve not found, or the token of alice cannot read the user's repositories", "--owner",
		},
		"archived": {
			"repository PLAT/fleet archived", nil, push, "repository PLAT/fleet is archived and read-only", "unarchive",
		},
		"not available": {
			"repository PLAT/fleet disabled", nil, push, "repository PLAT/fleet is not available: its state is INITIALISATION_FAILED", "administrator",
		},
		"no SSH": {
			"nossh\nrepository PLAT/fleet", nil, push, "Git over SSH is disabled on HOST", "--token-auth",
		},
		"no permission to push": {
			"repository PLAT/fleet", func(h *githost.Hosted) { h.Token = "alice-read" }, push,
			"alice has no permission to push to repository PLAT/fleet", "repository write",
		},
		"no permission for keys": {
			"repository PLAT/fleet", func(h *githost.Hosted) { h.Token = "alice-write" }, keyed,
			"alice has no permission to add an access key on repository PLAT/fleet: admin permission is required", "repository admin",
		},
		"no permission for groups": {
			"repository PLAT/fleet", func(h *githost.Hosted) {
				h.Token, h.Teams = "bob-admin", []githost.Team{{Name: "operators", Permission: "write"}}
			}, push,
			"bob has no permission to grant groups access on repository PLAT/fleet: admin permission is required", "repository admin",
		},
		"no permission for settings": {
			"repository PLAT/fleet", func(h *githost.Hosted) { h.Token, h.Reconcile, h.Visibility = "bob-admin", true, "public" }, push,
			"bob has no permission to change settings on repository PLAT/fleet: admin permission is required", "repository admin",
		},
		"no such group": {
			"repository PLAT/fleet", func(h *githost.Hosted) { h.Teams = []githost.Team{{Name: "oper", Permission: "write"}} }, push, `group "oper" does not exist`, "--group",
		},
		"rate limit": {
			"limit 1 3600", nil, push, "", "run the command again",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := openBitbucket(t, testgithost.BitbucketPeople+test.contents)
			before := testgithost.State(t, b)
			_, err := newBitbucket(t, b, test.edit).Survey(t.Context(), test.want)
			if test.err == "" {
				var limit *rest.RateLimitError
				if !errors.As(err, &limit) || time.Until(limit.Until) < 50*time.Minute {
					t.Fatalf("no rate limit, or one without its end: %v", err)
				}
				test.err = err.Error()
			}
			testgithost.CheckError(t, err, strings.ReplaceAll(test.err, "HOST", b.Hostname), test.hint)
			if diff := cmp.Diff(before, testgithost.State(t, b)); diff != "" || len(b.Changes()) > 0 {
				t.Errorf("the survey changed %v: %s", b.Changes(), diff)
			}
		})
	}
}

// TestBitbucketEnsure checks the state after Ensure, and that the next run changes
// nothing.
func TestBitbucketEnsure(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		contents string
		edit     func(*githost.Hosted)
		changes  []string
		state    string
		path     string
	}{
		"by key": {"", nil, []string{"create the private repository PLAT/fleet"}, "PLAT/fleet private empty\n", "plat/fleet.git"},
		"by name, for groups": {
			"", func(h *githost.Hosted) {
				h.Owner, h.Description = "platform team", "The fleet"
				h.Teams = []githost.Team{{Name: "dev ops", Permission: "write"}, {Name: "operators", Permission: "admin"}, {Name: "readers", Permission: "read"}}
			},
			[]string{
				"create the private repository PLAT/fleet", "grant group dev ops the permission write on PLAT/fleet",
				"grant group operators the permission admin on PLAT/fleet", "grant group readers the permission read on PLAT/fleet",
			},
			"PLAT/fleet private empty \"The fleet\"\n  group dev ops write\n  group operators admin\n  group readers read\n", "plat/fleet.git",
		},
		"first personal": {
			"", func(h *githost.Hosted) {
				h.Owner, h.Personal, h.Visibility, h.Name = "alice", true, "public", "My-Fleet"
			},
			[]string{"create the public repository ~alice/my-fleet"}, "~alice/my-fleet public empty\n", "~alice/my-fleet.git",
		},
		"base path": {
			"base tools/bitbucket", nil, []string{"create the private repository PLAT/fleet"}, "PLAT/fleet private empty\n", "plat/fleet.git",
		},
		"existing, other settings": {
			"repository PLAT/fleet public\ngrant PLAT/fleet operators read", func(h *githost.Hosted) { h.Teams = []githost.Team{{Name: "operators", Permission: "write"}} },
			nil, "PLAT/fleet public empty\n  group operators read\n", "plat/fleet.git",
		},
		"existing, account with write": {
			"repository PLAT/fleet", func(h *githost.Hosted) { h.Token = "bob-admin" }, nil, "PLAT/fleet private empty\n", "plat/fleet.git",
		},
		"reconciled": {
			"repository PLAT/fleet public\ngrant PLAT/fleet operators read",
			func(h *githost.Hosted) {
				h.Reconcile, h.Description, h.Teams = true, "New", []githost.Team{{Name: "operators", Permission: "write"}}
			},
			[]string{
				"make the repository PLAT/fleet private (it is public)", `set the description of the repository PLAT/fleet to "New"`,
				"change the permission of group operators on PLAT/fleet from read to write",
			},
			"PLAT/fleet private empty \"New\"\n  group operators write\n", "plat/fleet.git",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := openBitbucket(t, testgithost.BitbucketPeople+test.contents)
			host := newBitbucket(t, b, test.edit)
			survey, err := host.Survey(t.Context(), githost.Want{Branch: "main"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.changes, survey.Changes); diff != "" || len(b.Changes()) > 0 {
				t.Errorf("the survey changed %v, and reports: %s", b.Changes(), diff)
			}
			made, err := host.Ensure(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.state, testgithost.State(t, b)); diff != "" {
				t.Error(diff)
			}
			want := githost.Repository{
				SyncURL: "ssh://git@" + b.SSHHostname + "/" + test.path, DefaultBranch: "main",
				Access: githost.Access{
					URL:      "https://" + strings.TrimSuffix(b.Hostname+"/"+b.Base, "/") + "/scm/" + test.path,
					Username: "git", Password: host.API.Hosted.Token, CABundle: b.CA,
				},
			}
			if diff := cmp.Diff(want, made); diff != "" {
				t.Error(diff)
			}
			if !survey.Exists { // the default port: the server has no repository with a URL
				want.SyncURL = "ssh://git@127.0.0.1:7999/" + test.path
			}
			if diff := cmp.Diff(want, survey.Repository); diff != "" {
				t.Errorf("from the survey: %s", diff)
			}
			b.Forget()
			again := newBitbucket(t, b, test.edit)
			if survey, err = again.Survey(t.Context(), githost.Want{Branch: "main"}); err != nil || len(survey.Changes) > 0 || !survey.Exists {
				t.Errorf("the second time: %v, %v", survey.Changes, err)
			}
			if _, err := again.Ensure(t.Context()); err != nil || len(b.Changes()) > 0 {
				t.Errorf("the second time: %v, %v", b.Changes(), err)
			}
		})
	}
}

// TestBitbucketProtected checks which restrictions reject a push.
func TestBitbucketProtected(t *testing.T) {
	t.Parallel()
	const (
		readOnly = "a branch restriction of repository PLAT/fleet: it is read-only, and alice is not exempt"
		requests = "a branch restriction of repository PLAT/fleet: changes require a pull request, and alice is not exempt"
	)
	for rule, want := range map[string]string{
		"read-only BRANCH main":                      readOnly,
		"read-only BRANCH main bob":                  readOnly,
		"read-only BRANCH main bob alice":            "",
		"read-only BRANCH side":                      "",
		"pull-request-only PATTERN m*":               requests,
		"pull-request-only PATTERN release/":         "",
		"fast-forward-only BRANCH main":              "",
		"no-deletes BRANCH main":                     "",
		"read-only ANY_REF ANY_REF_MATCHER_ID":       readOnly,
		"pull-request-only MODEL_BRANCH development": requests,
		"pull-request-only MODEL_BRANCH production":  "",
		"read-only MODEL_CATEGORY RELEASE":           "",
		"no-deletes BRANCH main\nread-only BRANCH x\nno-deletes BRANCH y\nread-only PATTERN main": readOnly,
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			rules := "restrict PLAT/fleet " + strings.ReplaceAll(rule, "\n", "\nrestrict PLAT/fleet ")
			b := openBitbucket(t, testgithost.BitbucketPeople+"repository PLAT/fleet\n"+rules)
			survey, err := newBitbucket(t, b, nil).Survey(t.Context(), githost.Want{Branch: "main"})
			if err != nil || survey.Protected != want {
				t.Errorf("%q, %v", survey.Protected, err)
			}
		})
	}
}

func TestMatchesPattern(t *testing.T) {
	t.Parallel()
	for pattern, branches := range map[string]map[string]bool{
		"main":            {"main": true, "team/main": true, "domain": false, "main/a": false},
		"refs/heads/main": {"main": true, "team/main": false},
		"release/":        {"release/1": true, "release/1/2": true, "release": false},
		"release/*":       {"release/1": true, "release/1/2": false},
		"release/**/fix":  {"release/fix": true, "release/1/fix": true, "release/1/2/fix": true, "release/1": false},
		"v?.x":            {"v1.x": true, "v10.x": false},
		"**":              {"main": true, "a/b": true},
	} {
		for branch, want := range branches {
			if got := matchesPattern(pattern, branch); got != want {
				t.Errorf("%s, %s: %t", pattern, branch, got)
			}
		}
	}
}
