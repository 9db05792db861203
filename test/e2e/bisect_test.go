package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestBisect finds the commit that breaks a cluster among 16, of which one cannot be tested.
func TestBisect(t *testing.T) {
	t.Parallel()
	sh := newUser(t)
	sh.dir = t.TempDir()
	sh.env = append(sh.env, "GIT_AUTHOR_NAME=dev", "GIT_AUTHOR_EMAIL=dev@example.com", "GIT_COMMITTER_NAME=dev", "GIT_COMMITTER_EMAIL=dev@example.com")
	sh.run("git", "init", "--quiet", "--initial-branch=main")
	const planted, untestable = 11, 7
	var hashes []string
	for i := range 16 {
		files := map[string]string{}
		files[fmt.Sprintf("clusters/demo/app-%d.yaml", i)] = strings.ReplaceAll(configMapNamed(fmt.Sprintf("app-%d", i)), "namespace: apps", "namespace: default")
		switch i {
		case planted:
			files["clusters/demo/web.yaml"] = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: default}\nspec: {ports: [{port: 99999}], selector: {app: web}}\n"
		case untestable: // the directory of the cluster does not exist
			sh.run("git", "mv", "clusters", "moved")
			files = nil
		}
		if i == untestable+1 {
			sh.run("git", "mv", "moved", "clusters")
		}
		for name, content := range files {
			path := filepath.Join(sh.dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		sh.run("git", "add", "--all")
		sh.run("git", "commit", "--quiet", fmt.Sprintf("--message=Change %d", i))
		hashes = append(hashes, strings.TrimSpace(sh.run("git", "rev-parse", "HEAD")))
	}
	found, stderr, err := runBisect(sh, hashes[0], "HEAD")
	if err != nil || found.First.Hash != hashes[planted] || found.Good.Hash != hashes[planted-1] || len(found.Candidates) > 0 || !strings.Contains(stderr, "skipped: "+hashes[untestable][:8]) {
		t.Errorf("%v %+v, want %s\n%s", err, found, hashes[planted], stderr)
	}
	if len(found.Causes) == 0 || !strings.Contains(found.Causes[0].Message, "spec.ports[0].port") || !strings.Contains(strings.Join(found.Causes[0].Remedies, "\n"), "clusters/demo/web.yaml") {
		t.Errorf("causes %+v", found.Causes)
	}
	if !slices.Contains(found.Files, "clusters/demo/web.yaml") || found.First.Subject != fmt.Sprintf("Change %d", planted) || found.First.Author != "dev" {
		t.Errorf("%+v", found)
	}
	if found.Tested > 7 {
		t.Errorf("%d tests", found.Tested)
	}

	// A bad commit that is good is refused.
	if found, stderr, err := runBisect(sh, hashes[0], hashes[1]); err == nil || found.First.Hash != "" || !strings.Contains(stderr, "is not bad: all resources become ready") {
		t.Errorf("%v %+v\n%s", err, found, stderr)
	}
}

// runBisect runs flux bisect, which takes as long as many tests.
func runBisect(sh *shell, good, bad string) (found bisected, stderr string, err error) {
	sh.t.Helper()
	cmd := exec.CommandContext(sh.t.Context(), lookPath(sh.env, "flux"), "bisect", "--good="+good, "--bad="+bad, "-o", "json", "--", "--path", "clusters/demo")
	cmd.Env, cmd.Dir = sh.env, sh.dir
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
