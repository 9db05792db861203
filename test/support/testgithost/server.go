// Package testgithost implements stand-ins for Git hosts that cannot be run in tests. Each
// implements the documented API with state and rejects the requests that the host rejects. A
// request that it does not implement or that is not documented fails the test. The repositories are
// real and served by Git.
package testgithost

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"

	"github.com/fluxkit/flux/test/support/testopenapi"
)

// API serves the API of a host and authorizes Git access.
type API interface {
	// ServeHTTP serves all requests except Git requests.
	http.Handler
	// GitAccess returns the access of credentials to a repository, whose name has no suffix ".git".
	GitAccess(username, secret, repository string) Access
}

// Below is an API whose repositories have a base path over HTTP.
type Below interface {
	// GitName returns the name of a repository from its HTTP path. SSH uses the same name.
	GitName(path string) string
}

// Access is the access to a repository.
type Access struct {
	// Known reports whether the credentials are valid.
	Known bool
	// Read and Write are the permissions. Without Read, the repository is not found.
	Read, Write bool
	// Bypass allows pushes to protected branches.
	Bypass bool
}

// Request is a request to the server.
type Request struct {
	// Number starts at 1. Change counts writes and is 0 for other requests.
	Number, Change int
	Method, Path   string
	// Status is the status of the response, or 0 before it is sent.
	Status int
}

func (r Request) String() string { return fmt.Sprintf("%s %s %d", r.Method, r.Path, r.Status) }

// Fault is called with each request before it is handled and, with done, before the
// response. It returns true to close the connection without a response.
type Fault func(r Request, done bool) (hangUp bool)

// Server is a Git host on an address of this machine, over TLS.
type Server struct {
	// Hostname is the host and port, CA its CA certificate in PEM format.
	Hostname string
	CA       []byte
	// SSHHostname is the host and port of SSH, or "" if the API does not implement Keyed.
	SSHHostname string
	// KnownHosts is the line of the server for a known_hosts file.
	KnownHosts string
	// Git holds the repositories.
	Git *Repositories

	// description is the published description of the API, or nil if there is none.
	description *testopenapi.Description

	api  API
	http *httptest.Server
	ssh  *sshServer

	mu       sync.Mutex
	requests []Request
	changes  int
	problems []error
	fault    Fault
}

// Open starts a host. It serves SSH if the API is [Keyed].
func Open(newAPI func(*Server) API) (*Server, error) {
	dir, err := os.MkdirTemp("", "flux-githost-")
	if err != nil {
		return nil, err
	}
	s := &Server{}
	if s.Git, err = newRepositories(dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.http.Config.ErrorLog = log.New(io.Discard, "", 0) // ignore unused connections of clients
	s.api = newAPI(s)
	if keyed, ok := s.api.(Keyed); ok {
		if s.ssh, err = openSSH(s.Git, keyed); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		s.SSHHostname, s.KnownHosts = s.ssh.Addr(), s.ssh.knownHosts()
	}
	s.http.StartTLS()
	s.Hostname = s.http.Listener.Addr().String()
	s.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
	return s, nil
}

// Close stops the host and removes its repositories. It returns an error if a request was not
// implemented or differs from the published description.
func (s *Server) Close() error {
	s.http.Close()
	var err error
	if s.ssh != nil {
		err = s.ssh.Close()
	}
	err = errors.Join(err, os.RemoveAll(s.Git.dir))
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(append(s.problems, err)...)
}

// Inject sets the fault for all further requests. Nil removes it.
func (s *Server) Inject(fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

// Requests returns the requests so far, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Changes returns the writes that were not rejected.
func (s *Server) Changes() []string {
	var all []string
	for _, r := range s.Requests() {
		if r.Change > 0 && r.Status < http.StatusBadRequest {
			all = append(all, r.Method+" "+r.Path)
		}
	}
	return all
}

// Forget removes the recorded requests and restarts their numbers.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests, s.changes = nil, 0
}

// unknownCall responds to a request that the API does not implement.
func (s *Server) unknownCall(w http.ResponseWriter, r *http.Request) {
	s.problem(fmt.Errorf("the stand-in does not implement %s %s", r.Method, r.URL.RequestURI()))
	http.Error(w, "the stand-in does not implement this request", http.StatusNotImplemented)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	index, fault := s.arrived(r)
	hangUp := func(done bool) bool {
		s.mu.Lock()
		request := s.requests[index]
		s.mu.Unlock()
		return fault != nil && fault(request, done)
	}
	if hangUp(false) {
		panic(http.ErrAbortHandler)
	}
	answer := httptest.NewRecorder()
	if repository, service, ok := gitService(r.URL.Path); ok {
		s.serveGit(answer, r, repository, service)
	} else {
		s.serveAPI(answer, r)
	}
	s.mu.Lock()
	s.requests[index].Status = answer.Code
	s.mu.Unlock()
	if hangUp(true) {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // the client may have closed the connection
}

// serveAPI serves a request of the API and validates the request and its response against the
// published description.
func (s *Server) serveAPI(w *httptest.ResponseRecorder, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client has closed the connection
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.api.ServeHTTP(w, r)
	if s.description == nil || w.Code == http.StatusNotImplemented {
		return
	}
	if err := s.description.Check(r, body, w.Result(), w.Body.Bytes()); err != nil {
		s.problem(err)
	}
}

// problem adds an error that Close returns.
func (s *Server) problem(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, err)
}

// arrived records a request and returns its number and the fault.
func (s *Server) arrived(r *http.Request) (int, Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	request := Request{Number: len(s.requests) + 1, Method: r.Method, Path: r.URL.Path}
	if r.Method != http.MethodGet && r.Method != http.MethodHead && !strings.HasSuffix(r.URL.Path, "/git-upload-pack") {
		s.changes++
		request.Change = s.changes
	}
	s.requests = append(s.requests, request)
	return len(s.requests) - 1, s.fault
}

// gitService splits the path of a request of Git.
func gitService(path string) (repository, service string, ok bool) {
	for _, service := range []string{"/info/refs", "/git-upload-pack", "/git-receive-pack"} {
		if rest, found := strings.CutSuffix(path, service); found {
			return strings.TrimSuffix(strings.Trim(rest, "/"), ".git"), service, true
		}
	}
	return "", "", false
}

func (s *Server) serveGit(w http.ResponseWriter, r *http.Request, repository, service string) {
	writes := service == "/git-receive-pack" || r.URL.Query().Get("service") == "git-receive-pack"
	username, secret, given := r.BasicAuth()
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		secret, given = bearer, true
	}
	if b, ok := s.api.(Below); ok {
		repository = b.GitName(repository)
	}
	access := s.api.GitAccess(username, secret, repository)
	switch {
	case !given || !access.Known:
		w.Header().Set("WWW-Authenticate", `Basic realm="Git"`)
		http.Error(w, "authentication required", http.StatusUnauthorized)
	case !access.Read || !s.Git.exists(repository):
		http.Error(w, "repository not found", http.StatusNotFound)
	case writes && !access.Write:
		http.Error(w, "write access to the repository is not granted", http.StatusForbidden)
	default:
		s.Git.serve(w, r, repository, service, access.Bypass)
		if err := s.Git.adopt(repository); writes && err != nil {
			panic(err) // the temporary directory was removed
		}
	}
}

// reply responds with JSON.
func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	if body == nil {
		return
	}
	if err := json.NewEncoder(w).Encode(body); err != nil {
		panic(err) // the body cannot be encoded as JSON
	}
}
