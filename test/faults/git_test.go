package faults_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// gitFaults are faults of the Git server, and a part of the message about each.
var gitFaults = map[string]struct {
	want  string
	fault func(w http.ResponseWriter, r *http.Request)
}{
	"stalls": {"timed out after 3s", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the end of the connection is noticed after the body only
		<-r.Context().Done()
	}},
	"503": {"503", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "<html>Service Unavailable</html>", http.StatusServiceUnavailable)
	}},
	"drops": {"", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		w.Header().Set("Content-Length", "100000")
		_, _ = w.Write([]byte("0008NAK\nPACK")) // the client may have gone
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}},
}

// git injects faults into each sort of request of a bootstrap to the Git server. The command ends with
// a message, and neither the repository nor the temporary folder has anything of it.
func (w *world) git(t *testing.T) {
	for _, at := range []string{"/info/refs?service=git-upload-pack", "/git-upload-pack", "/info/refs?service=git-receive-pack", "/git-receive-pack"} {
		for how, f := range gitFaults {
			name := "git" + strings.NewReplacer("/", "-", "?", "-", "=", "-").Replace(at) + "-" + how
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				before := w.repositoryWithCommit(t, name)
				to, err := url.Parse(w.cluster.Env["FLUX_SANDBOX_GIT_URL"])
				check(t, err)
				reverse := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, FlushInterval: -1}
				server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					if strings.HasSuffix(r.URL.RequestURI(), at) {
						f.fault(rw, r)
						return
					}
					reverse.ServeHTTP(rw, r)
				}))
				t.Cleanup(server.Close)
				p := w.start(t, w.cluster.Kubeconfig, "bootstrap", "git", "--url="+server.URL+"/"+name+".git", "--allow-insecure-http", "--username=dev", "--password=any",
					"--token-auth", "--silent", "--path=clusters/demo", "--namespace="+name, "--timeout=3s")
				select {
				case <-p.ended:
				case <-time.After(bound):
					p.fatalf("does not exit")
				}
				t.Log(p.stderr)
				if code := p.cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(p.stderr.String(), f.want) {
					p.fatalf("exit code %d, want 1 and %q", code, f.want)
				}
				if after := w.headOf(t, name); after != before {
					p.fatalf("the repository has another commit: %s", after)
				}
				if left, err := os.ReadDir(p.temporary); err != nil || len(left) > 0 {
					p.fatalf("left in the temporary folder: %v, %v", left, err)
				}
			})
		}
	}
}

// repositoryWithCommit creates a repository with a file, and returns its commit.
func (w *world) repositoryWithCommit(t *testing.T, name string) string {
	t.Helper()
	w.cluster.Sandbox(t, "git", "create", name)
	folder := t.TempDir()
	check(t, os.WriteFile(filepath.Join(folder, "README.md"), []byte(strings.Repeat("a line\n", 1000)), 0o600))
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "first"},
		{"push", "-q", filepath.Join(w.cluster.Dir, "git", name+".git"), "main"},
	} {
		if out, err := exec.Command("git", append([]string{"-C", folder}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	return w.headOf(t, name)
}

func (w *world) headOf(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("git", "--git-dir="+filepath.Join(w.cluster.Dir, "git", name+".git"), "rev-parse", "main").CombinedOutput()
	check(t, err)
	return string(out)
}
