package script_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fluxkit/flux/test/support/testlimit"
)

// hook serves webhooks at HOOK until the script ends. It writes every request
// to FILE and answers with the codes one after the other, in the end with 200;
// what is below /token it answers as the runners of CI systems do: hook FILE CODE…
func hook(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: hook FILE CODE…")
	}
	h := &hookServer{file: ts.MkAbs(args[0])}
	for _, arg := range args[1:] {
		code, err := strconv.Atoi(arg)
		ts.Check(err)
		h.codes = append(h.codes, code)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	server := &http.Server{Handler: h, ReadHeaderTimeout: testlimit.Wait}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	ts.Setenv("HOOK", "http://"+listener.Addr().String())
	ts.Defer(func() {
		ts.Check(server.Close())
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			ts.Fatalf("serving webhooks: %v", err)
		}
	})
}

type hookServer struct {
	file  string
	mu    sync.Mutex
	codes []int
}

// ServeHTTP implements http.Handler.
func (h *hookServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.write(r); err != nil {
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/token") {
		_, _ = fmt.Fprintf(w, `{"value": "token-for-%s"}`, r.URL.Query().Get("audience")) // the client sees what is missing
		return
	}
	code := http.StatusOK
	if len(h.codes) > 0 {
		code, h.codes = h.codes[0], h.codes[1:]
	}
	switch code {
	case http.StatusFound:
		w.Header().Set("Location", "/elsewhere")
	case http.StatusForbidden:
		http.Error(w, "no access with "+r.Header.Get("X-Gitlab-Token")+"\nsecond line", code)
		return
	}
	w.WriteHeader(code)
}

// write adds a request to the file: the line, the headers that every HTTP
// client does not send, and the body.
func (h *hookServer) write(r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	lines := []string{r.Method + " " + r.URL.RequestURI()}
	for name, values := range r.Header {
		if !slices.Contains([]string{"Accept-Encoding", "Content-Length", "User-Agent"}, name) {
			lines = append(lines, name+": "+strings.Join(values, ", "))
		}
	}
	slices.Sort(lines[1:])
	if len(body) > 0 {
		lines = append(lines, string(body))
	}
	f, err := os.OpenFile(h.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, strings.Join(lines, "\n")+"\n")
	return errors.Join(err, f.Close())
}
