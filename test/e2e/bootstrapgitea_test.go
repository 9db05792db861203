package e2e_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testgitea"
)

// forge is a cluster and a Gitea server with alice, who owns the organization acme, and bob, who can push to some
// of its repositories.
type forge struct {
	t          *testing.T
	cluster    *testcluster.Cluster
	shell      *shell
	server     *testgitea.Server
	alice, bob testgitea.Account
}

// TestBootstrapGitea bootstraps from a real Gitea, from the repository of a user over HTTPS with the token.
func TestBootstrapGitea(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	f.refusals()
	f.planned("alice/fleet", "--personal", "--token-auth", "--path=clusters/mine")
	f.synchronized("alice/fleet", "--personal", "--token-auth", "--path=clusters/mine")
	if keys := f.state("alice/fleet").Keys; len(keys) > 0 {
		t.Errorf("alice/fleet has deploy keys though the cluster used the token: %+v", keys)
	}
}

// TestNightlyBootstrapGitea bootstraps from the repository of an organization over SSH with a deploy key, and from
// a protected branch that requires pull requests.
func TestNightlyBootstrapGitea(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	f.guard()
	production := []string{"--team=ops", "--path=clusters/production", "--description=What runs where"}
	f.synchronized("acme/fleet", production...)
	f.keyOfFleet()
	f.rotated("acme/fleet", production...)
	f.shell.run("flux", "uninstall", "--silent")
	f.reviewed("acme/guarded", "--token-auth", "--path=clusters/reviewed", "--pull-request")
}

// newForge starts a cluster and a Gitea.
func newForge(t *testing.T) *forge {
	t.Helper()
	whole := newWhole(t)
	f := &forge{t: t, cluster: whole.cluster, shell: whole.shell, server: testgitea.Start(t)}
	f.alice, f.bob = f.server.User(t, "alice"), f.server.User(t, "bob")
	f.server.Organization(t, f.alice, "acme")
	f.server.Team(t, f.alice, "acme", "ops", "write")
	return f
}

// args returns the arguments of a bootstrap from a repository "owner/name".
func (f *forge) args(repository string, extra ...string) []string {
	owner, name, _ := strings.Cut(repository, "/")
	return append([]string{
		"bootstrap", "gitea", "--hostname=" + f.server.Hostname, "--ca-file=" + f.server.CAFile, "--owner=" + owner, "--repository=" + name,
	}, extra...)
}

// with returns the shell of a user with a token.
func (f *forge) with(token string) *shell { return f.shell.with("GITEA_TOKEN=" + token) }

// guard creates the repository acme/guarded, to whose protected branch only alice may push.
func (f *forge) guard() {
	f.t.Helper()
	f.server.As(f.t, f.alice, http.MethodPost, "/orgs/acme/repos", map[string]any{"name": "guarded", "auto_init": true, "default_branch": "main"}, nil)
	f.server.As(f.t, f.alice, http.MethodPut, "/repos/acme/guarded/collaborators/bob", map[string]any{"permission": "admin"}, nil)
	f.server.As(f.t, f.alice, http.MethodPost, "/repos/acme/guarded/branch_protections",
		map[string]any{"rule_name": "main", "enable_push": true, "enable_push_whitelist": true, "push_whitelist_usernames": []string{"alice"}}, nil)
}

// refusals checks that failures do not change the server and the cluster.
func (f *forge) refusals() {
	f.t.Helper()
	f.guard()
	narrow := f.server.Token(f.t, f.alice, "write:repository", "read:user")
	unknown := strings.Repeat("0123456789", 4)
	for _, test := range []struct {
		what, token, problem string
		args                 []string
	}{
		{"unknown token", unknown, f.server.Hostname + " rejected the token", f.args("alice/unmade", "--personal")},
		{"missing scope", narrow, "the token is missing the scope write:user", f.args("alice/unmade", "--personal", "--token-auth")},
		{"missing scope of an organization", narrow, "the token is missing the scope write:organization", f.args("acme/unmade")},
		{"protected branch", f.bob.Token, "bob is not allowed to push to it", f.args("acme/guarded", "--token-auth")},
		{"unknown certificate", f.alice.Token, "signed by an unknown authority", slices.DeleteFunc(f.args("alice/unmade", "--personal"), func(arg string) bool { return strings.HasPrefix(arg, "--ca-file") })},
	} {
		stderr := bootstrapFails(f.with(test.token), f.cluster, test.what, test.args...)
		if !strings.Contains(stderr, test.problem) || strings.Contains(stderr, test.token) {
			f.t.Errorf("%s: the error does not contain %q, or contains the token:\n%s", test.what, test.problem, stderr)
		}
	}
	f.untouched("alice/unmade")
	f.untouched("acme/unmade")
	if subjects := f.subjects("acme/guarded"); len(subjects) != 1 {
		f.t.Errorf("the protected branch has the commits %q", subjects)
	}
}

// synchronized bootstraps twice, the second time without changes, and checks that the controllers apply a later
// commit.
func (f *forge) synchronized(repository string, extra ...string) {
	f.t.Helper()
	as := f.with(f.alice.Token)
	as.run("flux", f.args(repository, extra...)...)
	before := f.state(repository)
	want := []string{"Add Flux sync manifests", "Add Flux v" + controllers.DefaultVersion + " component manifests"}
	if diff := cmp.Diff(want, before.Commits); diff != "" {
		f.t.Fatalf("%s: %s", repository, diff)
	}
	as.run("flux", f.args(repository, extra...)...)
	if diff := cmp.Diff(before, f.state(repository)); diff != "" {
		f.t.Errorf("%s: the second run changed something: %s", repository, diff)
	}
	directory, _ := strings.CutPrefix(extra[slices.IndexFunc(extra, func(arg string) bool { return strings.HasPrefix(arg, "--path=") })], "--path=")
	name := strings.ReplaceAll(repository, "/", "-")
	f.push(repository, filepath.Join(directory, "settings.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+name+", namespace: default}\n")
	f.shell.run("flux", "reconcile", "kustomization", "flux-system", "--with-source")
	if _, err := f.cluster.Client.Get(f.t.Context(), configMaps, "default", name); err != nil {
		f.t.Errorf("%s: the commit was not applied: %v", repository, err)
	}
	f.shell.run("flux", "check")
}

// planned checks that a dry run prints the changes and makes none.
func (f *forge) planned(repository string, extra ...string) {
	f.t.Helper()
	for flag, want := range map[string]string{
		"--preflight": "", "--dry-run": "host: would create the private repository " + repository + "\n",
	} {
		stdout := f.with(f.alice.Token).run("flux", f.args(repository, append([]string{flag}, extra...)...)...)
		if !strings.HasPrefix(stdout, want) || want == "" && stdout != "" {
			f.t.Errorf("%s prints %.300q, not %q", flag, stdout, want)
		}
	}
	f.untouched(repository)
}

// untouched checks that neither the repository nor Flux exists.
func (f *forge) untouched(repository string) {
	f.t.Helper()
	if err := f.server.Call(f.t.Context(), f.server.Admin.Token, http.MethodGet, "/api/v1/repos/"+repository, nil, nil); err == nil {
		f.t.Errorf("%s was created", repository)
	}
	if _, err := f.cluster.Client.Get(f.t.Context(), namespaces, "", "flux-system"); err == nil {
		f.t.Error("the cluster was changed")
	}
}

// rotated replaces the key on the cluster: the server then has only the new key, and
// the controllers fetch with it.
func (f *forge) rotated(repository string, extra ...string) {
	f.t.Helper()
	before := f.state(repository).Keys
	f.with(f.alice.Token).run("flux", f.args(repository, append([]string{"--rotate-key"}, extra...)...)...)
	after := f.state(repository).Keys
	if len(after) != 1 || after[0].ID == before[0].ID || !after[0].ReadOnly {
		f.t.Errorf("%s has the keys %+v, before %+v", repository, after, before)
	}
	f.shell.run("flux", "reconcile", "source", "git", "flux-system")
}

// reviewed opens a pull request once, and continues with the cluster after it was
// merged.
func (f *forge) reviewed(repository string, args ...string) {
	f.t.Helper()
	as, args := f.with(f.bob.Token), f.args(repository, args...)
	asked := as.run("flux", args...)
	again := as.run("flux", args...)
	if want := "https://" + f.server.Hostname + "/" + repository + "/pulls/1\n"; asked != want || again != want {
		f.t.Fatalf("asked for %q and %q, not %q twice", asked, again, want)
	}
	if _, err := f.cluster.Client.Get(f.t.Context(), namespaces, "", "flux-system"); err == nil {
		f.t.Error("the cluster was changed before the pull request was merged")
	}
	if subjects := f.subjects(repository); len(subjects) != 1 {
		f.t.Errorf("the protected branch has the commits %q before the pull request was merged", subjects)
	}
	f.server.As(f.t, f.alice, http.MethodPost, "/repos/"+repository+"/pulls/1/merge", map[string]any{"Do": "merge"}, nil)
	merged := f.subjects(repository)
	if out := as.run("flux", args...); out != "" {
		f.t.Errorf("opened another pull request after the merge: %q", out)
	}
	f.shell.run("flux", "check")
	if diff := cmp.Diff(merged, f.subjects(repository)); diff != "" {
		f.t.Errorf("committed after the merge: %s", diff)
	}
}

// state is the state that a second run must not change.
type state struct {
	Commits    []string
	Private    bool   `json:"private"`
	Updated    string `json:"updated_at"`
	Keys       []deployKey
	Deployed   map[string]string
	Repository string `json:"full_name"`
}

type deployKey struct {
	ID       int    `json:"id"`
	Title    string `json:"title"`
	ReadOnly bool   `json:"read_only"`
}

func (f *forge) state(repository string) state {
	f.t.Helper()
	var s state
	f.server.As(f.t, f.alice, http.MethodGet, "/repos/"+repository, nil, &s)
	f.server.As(f.t, f.alice, http.MethodGet, "/repos/"+repository+"/keys", nil, &s.Keys)
	s.Commits, s.Deployed = f.subjects(repository), generations(f.t, f.cluster)
	return s
}

// keyOfFleet checks the deploy key of the organization's repository.
func (f *forge) keyOfFleet() {
	f.t.Helper()
	found := f.state("acme/fleet")
	if len(found.Keys) != 1 || !found.Keys[0].ReadOnly || found.Keys[0].Title != "flux-system-main-flux-system-./clusters/production" || !found.Private {
		f.t.Errorf("acme/fleet is %+v", found)
	}
	var teams []struct{ Name string }
	f.server.As(f.t, f.alice, http.MethodGet, "/repos/acme/fleet/teams", nil, &teams)
	if fmt.Sprint(teams) != "[{Owners} {ops}]" {
		f.t.Errorf("teams of acme/fleet: %v", teams)
	}
}

// git runs Git with alice's token, which is neither in a URL nor in the
// arguments.
func (f *forge) git(dir string, args ...string) string {
	f.t.Helper()
	basic := base64.StdEncoding.EncodeToString([]byte("alice:" + f.alice.Token))
	return f.shell.in(dir).with("GIT_SSL_CAINFO="+f.server.CAFile,
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http.extraHeader", "GIT_CONFIG_VALUE_0=Authorization: Basic "+basic).run("git", args...)
}

// checkout clones a repository.
func (f *forge) checkout(repository string) string {
	f.t.Helper()
	dir := f.t.TempDir()
	f.git(dir, "clone", "--quiet", "https://"+f.server.Hostname+"/"+repository+".git", ".")
	return dir
}

// subjects returns the subjects of the commits on the default branch, newest first.
func (f *forge) subjects(repository string) []string {
	f.t.Helper()
	return strings.Split(strings.TrimSpace(f.git(f.checkout(repository), "log", "--format=%s")), "\n")
}

// push commits and pushes a file.
func (f *forge) push(repository, name, content string) {
	f.t.Helper()
	dir := f.checkout(repository)
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.git(dir, "add", "--all")
	f.git(dir, "commit", "--quiet", "--message=Add "+name)
	f.git(dir, "push", "--quiet")
}
