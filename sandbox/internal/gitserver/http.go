package gitserver

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/url"
	"os/exec"
	"strings"

	"github.com/fluxkit/flux/sandbox/internal/credentials"
)

// The two services of Git's wire protocol.
const (
	uploadPack  = "git-upload-pack"
	receivePack = "git-receive-pack"
)

// call is the requested service of a repository. Only the smart protocol is served, because the dumb protocol would
// allow clients to read any file of the repository.
type call struct {
	repository string
	service    string
	endpoint   string
}

func parseCall(r *http.Request) (call, bool) {
	path, service := r.URL.Path, ""
	for _, endpoint := range []string{"info/refs", uploadPack, receivePack} {
		repository, found := strings.CutSuffix(path, "/"+endpoint)
		if !found {
			continue
		}
		service = endpoint
		method := http.MethodPost
		if endpoint == "info/refs" {
			service, method = r.URL.Query().Get("service"), http.MethodGet
		}
		known := service == uploadPack || service == receivePack
		return call{repository, service, endpoint}, known && r.Method == method
	}
	return call{}, false
}

// fetches reports whether a request is part of a fetch. Server faults do not affect pushes.
func fetches(r *http.Request) bool {
	asked, _ := parseCall(r)
	return asked.service != receivePack
}

// ServeHTTP serves a request of a Git client. It authenticates first, so that unauthenticated clients cannot detect which
// repositories exist.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	set, err := s.credentials.Load()
	if err != nil {
		s.log.Print(err)
		s.reject(w, r, http.StatusInternalServerError, "the server's credentials cannot be read: see its log")
		return
	}
	access := set.Request(r)
	if access == credentials.None {
		credentials.Challenge(w)
		s.reject(w, r, http.StatusUnauthorized, "authentication failed: a valid username and password, or a bearer token, is required")
		return
	}
	asked, ok := parseCall(r)
	if !ok {
		s.reject(w, r, http.StatusNotFound, "not found: only Git's smart HTTP protocol is served")
		return
	}
	name, _, err := s.repositories.Find(asked.repository)
	if err != nil {
		s.refuseRepository(w, r, err)
		return
	}
	if asked.service == receivePack && access < credentials.Write {
		s.reject(w, r, http.StatusForbidden, fmt.Sprintf("these credentials may read %s but not push to it", name))
		return
	}
	s.log.Printf("%s %s %s", r.Method, name, asked.endpoint+"?"+asked.service)
	s.backend(w, r, name, asked)
}

func (s *server) refuseRepository(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, ErrNotFound) {
		s.reject(w, r, http.StatusNotFound, err.Error())
		return
	}
	s.log.Print(err)
	s.reject(w, r, http.StatusInternalServerError, "the repository cannot be opened: see the server's log")
}

// reject responds in plain text, which Git prints after "remote:".
func (s *server) reject(w http.ResponseWriter, r *http.Request, status int, reason string) {
	s.log.Printf("%s %q rejected with %d: %s", r.Method, r.URL.Path, status, reason)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, reason)
}

// backend passes the request to git http-backend, with a path built from checked parts instead of the client's path.
func (s *server) backend(w http.ResponseWriter, r *http.Request, name string, asked call) {
	program, err := exec.LookPath("git")
	if err != nil {
		s.log.Print(err)
		s.reject(w, r, http.StatusInternalServerError, "git is not installed on the server")
		return
	}
	request := r.Clone(r.Context())
	request.URL = &url.URL{Path: "/" + name + ".git/" + asked.endpoint}
	if asked.endpoint == "info/refs" {
		request.URL.RawQuery = url.Values{"service": {asked.service}}.Encode()
	}
	request.Header.Del("Authorization") // would be in the environment of Git and of the hooks
	// Git sends a large push chunked, without a length. Package cgi rejects requests with this field; the body is already
	// decoded, and without a length, the backend reads to EOF.
	request.TransferEncoding = nil
	// With a length, the backend waits for that many bytes and does not detect EOF: after a client disconnects during a
	// push, it would loop forever.
	request.ContentLength = -1

	env := append(environment(s.repositories.root), "GIT_PROJECT_ROOT="+s.repositories.root, "GIT_HTTP_EXPORT_ALL=1")
	if version := r.Header.Get("Git-Protocol"); version != "" {
		env = append(env, "GIT_PROTOCOL="+version)
	}
	handler := &cgi.Handler{
		Path:   program,
		Args:   append(settings(), "http-backend"),
		Dir:    s.repositories.root,
		Env:    env,
		Logger: s.log,
		Stderr: logWriter{s.log},
	}
	handler.ServeHTTP(w, request)
}
