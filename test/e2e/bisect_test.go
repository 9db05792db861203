package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// bisection is a history with a commit that breaks a cluster and one that cannot be tested.
type bisection struct {
	commits, planted, untestable int
	// most is the maximum number of tests.
	most int
}

func TestBisect(t *testing.T) {
	t.Parallel()
	bisection{commits: 7, planted: 5, untestable: 3, most: 6}.find(t)
}

func TestNightlyBisect(t *testing.T) {
	t.Parallel()
	sh, hashes := bisection{commits: 16, planted: 11, untestable: 7, most: 7}.find(t)

	// A bad commit that is good is rejected.
	if found, stderr, err := runBisect(sh, hashes[0], hashes[1]); err == nil || found.First.Hash != "" || !strings.Contains(stderr, "is not bad: all resources become ready") {
		t.Errorf("%v %+v\n%s", err, found, stderr)
	}
}

// find checks that flux bisect finds the commit. It returns a shell in the repository, and its commits.
func (b bisection) find(t *testing.T) (sh *shell, hashes []string) {
	t.Helper()
	sh = newUser(t).in(t.TempDir())
	hashes = b.commit(sh)
	found, stderr, err := runBisect(sh, hashes[0], "HEAD")
	if err != nil || found.First.Hash != hashes[b.planted] || found.Good.Hash != hashes[b.planted-1] || len(found.Candidates) > 0 || !strings.Contains(stderr, "skipped: "+hashes[b.untestable][:8]) {
		t.Errorf("%v %+v, want %s\n%s", err, found, hashes[b.planted], stderr)
	}
	if len(found.Causes) == 0 || !strings.Contains(found.Causes[0].Message, "spec.ports[0].port") || !strings.Contains(strings.Join(found.Causes[0].Remedies, "\n"), "clusters/demo/web.yaml") {
		t.Errorf("causes %+v", found.Causes)
	}
	if !slices.Contains(found.Files, "clusters/demo/web.yaml") || found.First.Subject != fmt.Sprintf("Change %d", b.planted) || found.First.Author != "dev" {
		t.Errorf("%+v", found)
	}
	if found.Tested > b.most {
		t.Errorf("%d tests", found.Tested)
	}
	return sh, hashes
}

// commit creates the history and returns its commits, oldest first.
func (b bisection) commit(sh *shell) (hashes []string) {
	sh.t.Helper()
	sh.run("git", "init", "--quiet", "--initial-branch=main")
	for i := range b.commits {
		if i == b.untestable+1 {
			sh.run("git", "mv", "moved", "clusters")
		}
		if i == b.untestable { // the cluster's directory does not exist
			sh.run("git", "mv", "clusters", "moved")
		} else {
			writeFile(sh.t, sh.dir, fmt.Sprintf("clusters/demo/app-%d.yaml", i), configMap(fmt.Sprintf("app-%d", i), "a: b", ", namespace: default"))
		}
		if i == b.planted {
			writeFile(sh.t, sh.dir, "clusters/demo/web.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: default}\nspec: {ports: [{port: 99999}], selector: {app: web}}\n")
		}
		sh.run("git", "add", "--all")
		sh.run("git", "commit", "--quiet", fmt.Sprintf("--message=Change %d", i))
		hashes = append(hashes, strings.TrimSpace(sh.run("git", "rev-parse", "HEAD")))
	}
	return hashes
}

// runBisect runs flux bisect, which takes as long as several tests.
func runBisect(sh *shell, good, bad string) (found bisected, stderr string, err error) {
	sh.t.Helper()
	cmd := sh.command(sh.t.Context(), "flux", "bisect", "--good="+good, "--bad="+bad, "-o", "json", "--", "--path", "clusters/demo")
	var out, log strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &log
	err = cmd.Run()
	if out.Len() > 0 {
		if err := json.Unmarshal([]byte(out.String()), &found); err != nil {
			sh.t.Fatalf("%v\n%s%s", err, out.String(), log.String())
		}
	}
	return found, log.String(), err
}

// bisected is the result of flux bisect.
type bisected struct {
	First, Good struct{ Hash, Subject, Author string }
	Files       []string
	Causes      []struct {
		Message  string
		Remedies []string
	}
	Candidates []struct{ Hash string }
	Tested     int
}
