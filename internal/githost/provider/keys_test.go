package provider

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/test/support/testgithost"
)

// keyCase is the deploy keys of a repository before DeployKey of testgithost.KeyOne, and
// after it. REPOSITORY is the repository, and a write is the HTTP method.
type keyCase struct {
	contents string
	write    bool
	keep     bool
	state    string
	writes   string
	// other reports whether testgithost.KeyTwo has access in the end.
	other bool
}

// permit is the writes that change the permission of a key.
const permit = "PERMIT"

var keyCases = map[string]keyCase{
	"none":                {"", false, false, "  key ro flux ssh-ed25519\n", "POST", false},
	"none, write access":  {"", true, false, "  key rw flux ssh-ed25519\n", "POST", false},
	"same":                {"key REPOSITORY ro flux " + testgithost.KeyOne + " comment", false, false, "  key ro flux ssh-ed25519\n", "", false},
	"same, other title":   {"key REPOSITORY ro manual " + testgithost.KeyOne, false, false, "  key ro manual ssh-ed25519\n", "", false},
	"more permissions":    {"key REPOSITORY ro flux " + testgithost.KeyOne, true, false, "  key rw flux ssh-ed25519\n", permit, false},
	"fewer permissions":   {"key REPOSITORY rw flux " + testgithost.KeyOne, false, false, "  key ro flux ssh-ed25519\n", permit, false},
	"other key":           {"key REPOSITORY ro flux " + testgithost.KeyTwo, false, false, "  key ro flux ssh-ed25519\n", "POST DELETE", false},
	"other key, kept":     {"key REPOSITORY ro flux " + testgithost.KeyTwo, false, true, "  key ro flux ssh-ed25519\n  key ro flux ssh-ed25519\n", "POST", true},
	"other key and title": {"key REPOSITORY rw ci " + testgithost.KeyTwo, false, false, "  key rw ci ssh-ed25519\n  key ro flux ssh-ed25519\n", "POST", true},
	"same and other key": {
		"key REPOSITORY ro flux " + testgithost.KeyTwo + "\nkey REPOSITORY ro flux " + testgithost.KeyOne, false, false, "  key ro flux ssh-ed25519\n", "DELETE", false,
	},
	"several pages": {
		strings.Repeat("key REPOSITORY ro other "+testgithost.KeyTwo+"\n", 101) + "key REPOSITORY ro flux " + testgithost.KeyOne, false, false,
		strings.Repeat("  key ro other ssh-ed25519\n", 101) + "  key ro flux ssh-ed25519\n", "", true,
	},
}

// TestDeployKey checks the deploy keys that DeployKey leaves on each host, the order
// of its writes, and that a second call changes nothing.
func TestDeployKey(t *testing.T) {
	t.Parallel()
	for hostName, row := range hostCases {
		if row.start == nil {
			continue // real hosts have tests of their own
		}
		for name, test := range keyCases {
			t.Run(hostName+"/"+name, func(t *testing.T) {
				t.Parallel()
				standIn, hosted := row.open(t)
				repository := hosted.Owner + "/fleet"
				if err := standIn.Add(strings.ReplaceAll("repository REPOSITORY\n"+test.contents, "REPOSITORY", repository)); err != nil {
					t.Fatal(err)
				}
				hosted.ReadWriteKey, hosted.Teams = test.write, nil
				host := row.host(t, hosted)
				if _, err := host.Survey(t.Context(), githost.Want{Branch: "main"}); err != nil {
					t.Fatal(err)
				}
				key := githost.DeployKey{Title: "flux", Public: testgithost.KeyOne, KeepOthers: test.keep}
				if err := host.DeployKey(t.Context(), key); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(repository+" private empty\n"+test.state, testgithost.State(t, standIn)); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff(strings.Fields(strings.ReplaceAll(test.writes, permit, row.permits)), methods(standIn)); diff != "" {
					t.Error(diff)
				}
				one, two := standIn.KeyAccess(testgithost.KeyOne, repository), standIn.KeyAccess(testgithost.KeyTwo, repository)
				if !one.Read || one.Write != test.write || two.Read != test.other {
					t.Errorf("access of the keys: %+v, %+v", one, two)
				}
				standIn.Forget()
				if err := host.DeployKey(t.Context(), key); err != nil || len(standIn.Changes()) > 0 {
					t.Errorf("second call: %v, %v", standIn.Changes(), err)
				}
			})
		}
	}
}

// methods returns the HTTP methods of the writes so far.
func methods(standIn standIn) []string {
	all := []string{}
	for _, change := range standIn.Changes() {
		method, _, _ := strings.Cut(change, " ")
		all = append(all, method)
	}
	return slices.Clip(all)
}

// TestRequestChange requires of each host that the second request returns the pull
// request that the first has opened.
func TestRequestChange(t *testing.T) {
	t.Parallel()
	for name, row := range hostCases {
		if row.start == nil {
			continue // real hosts have tests of their own
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			standIn, hosted := row.open(t)
			repository := hosted.Owner + "/fleet"
			if err := standIn.Add(strings.ReplaceAll("repository REPOSITORY\ncommit REPOSITORY main a b\ncommit REPOSITORY flux c d", "REPOSITORY", repository)); err != nil {
				t.Fatal(err)
			}
			hosted.Teams = nil
			host := row.host(t, hosted)
			if _, err := host.Survey(t.Context(), githost.Want{Branch: "main", ChangeRequest: true}); err != nil {
				t.Fatal(err)
			}
			for _, opened := range []bool{true, false} {
				got, err := host.(githost.Requester).RequestChange(t.Context(), githost.Change{Head: "flux", Base: "main", Title: "Bootstrap", Body: "Why"})
				if want := (githost.Request{URL: "https://" + hosted.Hostname + row.request, Number: 1, Opened: opened}); err != nil || got != want {
					t.Errorf("%+v, %v, want %+v", got, err, want)
				}
			}
			// Without a survey, the same request is found.
			got, err := row.host(t, hosted).(githost.Opener).OpenRequest(t.Context(), githost.Change{Head: "flux", Base: "main", Title: "Bootstrap", Body: "Why"})
			if want := (githost.Request{URL: "https://" + hosted.Hostname + row.request, Number: 1}); err != nil || got != want {
				t.Errorf("without a survey: %+v, %v, want %+v", got, err, want)
			}
			want := repository + " private main\n  " + row.requestState + " flux → main \"Bootstrap\"\n" +
				"  flux: Other <other@example.com> Change c\n  flux: Other <other@example.com> Change a\n  main: Other <other@example.com> Change a\n"
			if diff := cmp.Diff(want, testgithost.State(t, standIn)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
