package faults_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testlimit"
	"github.com/fluxkit/flux/test/support/tier"
)

// faultyRegistry is a registry that responds with a fault to one kind of request.
type faultyRegistry struct {
	handler http.Handler
	address string

	mu    sync.Mutex
	sorts []string
	at    string
	fault func(w http.ResponseWriter, r *http.Request, from http.Handler)
}

func newRegistry(t *testing.T) *faultyRegistry {
	t.Helper()
	f := &faultyRegistry{handler: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	server := httptest.NewServer(f)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(server.Close)
	f.address = strings.TrimPrefix(server.URL, "http://")
	return f
}

// ServeHTTP implements http.Handler.
func (f *faultyRegistry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	s := r.Method
	for _, part := range []string{"blobs/uploads", "blobs", "manifests", "tags"} {
		if strings.Contains(r.URL.Path, "/"+part+"/") {
			s += " " + part
			break
		}
	}
	if !slices.Contains(f.sorts, s) {
		f.sorts = append(f.sorts, s)
	}
	fault := f.fault
	if s != f.at {
		fault = nil
	}
	f.mu.Unlock()
	if fault == nil {
		f.handler.ServeHTTP(w, r)
		return
	}
	fault(w, r, f.handler)
}

// set injects a fault, or none if it is "", and clears the recorded kinds of requests.
func (f *faultyRegistry) set(at string, fault func(http.ResponseWriter, *http.Request, http.Handler)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at, f.fault, f.sorts = at, fault, nil
}

func (f *faultyRegistry) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.sorts)
}

// trickle sends the response of the registry at a byte a second.
func trickle(w http.ResponseWriter, r *http.Request, from http.Handler) {
	recorded := httptest.NewRecorder()
	if r.Method == http.MethodGet {
		from.ServeHTTP(recorded, r)
	}
	for name, values := range recorded.Header() {
		w.Header()[name] = values
	}
	if recorded.Body.Len() < 10 { // its headers take as long, and the server has done nothing yet
		_, _ = io.Copy(io.Discard, r.Body) // the client may have gone
		<-r.Context().Done()
		return
	}
	each := time.NewTicker(time.Second)
	defer each.Stop()
	w.WriteHeader(recorded.Code)
	for _, b := range recorded.Body.Bytes() {
		if _, err := w.Write([]byte{b}); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		select {
		case <-each.C:
		case <-r.Context().Done():
			return
		}
	}
}

// drop ends the connection in the middle of the response of the registry.
func drop(w http.ResponseWriter, r *http.Request, from http.Handler) {
	recorded := httptest.NewRecorder()
	if r.Method == http.MethodGet {
		from.ServeHTTP(recorded, r)
	}
	for name, values := range recorded.Header() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Length", fmt.Sprint(recorded.Body.Len()))
	if half := recorded.Body.Bytes()[:recorded.Body.Len()/2]; len(half) > 0 {
		w.WriteHeader(recorded.Code)
		_, _ = w.Write(half) // the client may have gone
		w.(http.Flusher).Flush()
	}
	panic(http.ErrAbortHandler)
}

// TestRegistryFaults makes the registry send every kind of response at one byte per second, and close
// the connection in the middle of it. Each command ends with an error, or after --timeout, and leaves no
// incomplete files.
func TestRegistryFaults(t *testing.T) {
	t.Parallel()
	w := &world{bin: testcluster.Programs(t)}
	content := t.TempDir()
	check(t, os.WriteFile(filepath.Join(content, "cm.yaml"), []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata: {a: "+strings.Repeat("x", 5000)+"}\n"), 0o600))
	other := t.TempDir()
	check(t, os.WriteFile(filepath.Join(other, "cm.yaml"), []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"), 0o600))
	for name, args := range map[string]string{
		"push": "push artifact URL:2 --path OTHER --source s --revision main@sha1:1", "pull": "pull artifact URL:1 --output OUT/new",
		"list": "list artifacts URL", "tag": "tag artifact URL:1 --tag 3", "diff": "diff artifact URL:1 --path CONTENT",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newRegistry(t)
			run := func(args string, timeout string) (p *process, out string) {
				out = t.TempDir()
				line := strings.NewReplacer("URL", "oci://"+f.address+"/app", "CONTENT", content, "OTHER", other, "OUT", out).Replace(args)
				p = w.start(t, "/dev/null", append(strings.Fields(line), "--insecure-registry", "--timeout="+timeout)...)
				select {
				case <-p.ended:
				case <-time.After(testlimit.Wait):
					p.fatalf("does not exit")
				}
				return p, out
			}
			if p, _ := run("push artifact URL:1 --path CONTENT --source s --revision main@sha1:1", "1m"); p.err != nil {
				p.fatalf("%v", p.err)
			}
			f.set("", nil)
			if p, _ := run(args, "1m"); p.err != nil {
				p.fatalf("%v", p.err)
			}
			sorts := f.seen()
			if !tier.Nightly() {
				sorts = sorts[len(sorts)-1:]
			}
			for _, at := range sorts {
				for how, fault := range map[string]func(http.ResponseWriter, *http.Request, http.Handler){"a byte a second": trickle, "dropped": drop} {
					f.handler = registry.New(registry.Logger(log.New(io.Discard, "", 0)))
					f.set("", nil)
					if p, _ := run("push artifact URL:1 --path CONTENT --source s --revision main@sha1:1", "1m"); p.err != nil {
						p.fatalf("%v", p.err)
					}
					f.set(at, fault)
					start := time.Now()
					timeout := "1m"
					if how != "dropped" {
						timeout = "2s"
					}
					p, out := run(args, timeout)
					t.Logf("%s, %s: %s", at, how, time.Since(start).Round(time.Millisecond))
					f.unharmed(t, p, at+", "+how, out, timeout == "2s")
				}
			}
		})
	}
}

// unharmed checks the end of a command, and that it has written nothing.
func (f *faultyRegistry) unharmed(t *testing.T, p *process, where, out string, late bool) {
	t.Helper()
	f.set("", nil)
	said := p.stderr.String()
	t.Logf("%s: %d %s", where, p.cmd.ProcessState.ExitCode(), said)
	if code := p.cmd.ProcessState.ExitCode(); code != 1 && code != 2 {
		p.fatalf("%s: exit code %d", where, code)
	}
	if late != strings.Contains(said, "timed out after 2s") {
		p.fatalf("%s: a message about --timeout: %t", where, !late)
	}
	if lost := strings.Contains(said, "the connection to the registry was lost") && strings.Contains(said, "run the command again"); lost == late {
		p.fatalf("%s: a message about the connection: %t", where, lost)
	}
	if left, err := os.ReadDir(out); err != nil || len(left) > 0 {
		p.fatalf("%s: it leaves %v (%v)", where, left, err)
	}
	recorded := httptest.NewRecorder()
	f.handler.ServeHTTP(recorded, httptest.NewRequest(http.MethodGet, "/v2/app/tags/list", nil))
	if tags := recorded.Body.String(); !strings.Contains(tags, `"tags":["1"]`) {
		p.fatalf("%s: the registry has %s", where, tags)
	}
}
