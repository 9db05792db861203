// Package fakeapi is a Kubernetes API server for unit tests. It stores, lists and watches objects
// over HTTP, and fails the test on unknown requests. Behavior that depends on a real API server
// is tested in the sandbox.
package fakeapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Server stores collections of objects by path, such as "/api/v1/namespaces/web/pods".
type Server struct {
	// Client is a client of the server.
	Client *kube.Client
	// URL is the address of the server.
	URL string

	t           testing.TB
	mu          sync.Mutex
	version     int
	collections map[string]map[string]controllers.Object
	history     []change
	changed     chan struct{}
	handlers    map[string]http.HandlerFunc
	aliases     map[string]string
	requests    []string
	onWatch     map[string]func()
}

type change struct {
	version    int
	collection string
	typ        string
	object     controllers.Object
}

// New starts a server that is stopped at the end of the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{
		t: t, version: 100, collections: map[string]map[string]controllers.Object{},
		changed: make(chan struct{}), handlers: map[string]http.HandlerFunc{},
		onWatch: map[string]func(){}, aliases: map[string]string{},
	}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	client, err := kube.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	s.Client, s.URL = client, server.URL
	return s
}

// Serve adds empty collections.
func (s *Server) Serve(collections ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range collections {
		if s.collections[c] == nil {
			s.collections[c] = map[string]controllers.Object{}
		}
	}
}

// ServeAs serves the requests of a path, such as the one that lists all
// namespaces, with the objects of a collection.
func (s *Server) ServeAs(path, collection string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aliases[path] = collection
}

// Handle sets the handler of requests such as "GET /version"; nil removes it.
func (s *Server) Handle(request string, answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers[request] = answer
}

// OnWatch sets a function that is called when the first watch of a collection starts.
func (s *Server) OnWatch(collection string, do func()) { s.onWatch[collection] = do }

// Put creates or replaces an object and notifies watches. It stores a copy, so that the stored
// object does not change while a request is handled.
func (s *Server) Put(collection string, object controllers.Object) {
	s.Serve(collection)
	object = clone(object)
	s.mu.Lock()
	defer s.mu.Unlock()
	name := controllers.Name(object)
	typ := "ADDED"
	if _, there := s.collections[collection][name]; there {
		typ = "MODIFIED"
	}
	s.record(collection, typ, object)
	s.collections[collection][name] = object
}

// Take removes an object, regardless of finalizers, and notifies watches.
func (s *Server) Take(collection, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	object, there := s.collections[collection][name]
	if !there {
		return
	}
	delete(s.collections[collection], name)
	s.record(collection, "DELETED", clone(object))
}

func (s *Server) record(collection, typ string, object controllers.Object) {
	s.version++
	meta, _ := object["metadata"].(map[string]any)
	meta["resourceVersion"] = strconv.Itoa(s.version)
	if object["kind"] == nil { // required by decoders
		object["apiVersion"], object["kind"] = "v1", "Object"
	}
	s.history = append(s.history, change{s.version, collection, typ, object})
	close(s.changed)
	s.changed = make(chan struct{})
}

// Names returns the names of a collection's objects, sorted.
func (s *Server) Names(collection string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := []string{}
	for name := range s.collections[collection] {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Object returns a copy of an object, or nil if it does not exist.
func (s *Server) Object(collection, name string) controllers.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	object, there := s.collections[collection][name]
	if !there {
		return nil
	}
	return clone(object)
}

// Requests returns all requests as "GET /path"; a watch is "WATCH /path".
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	if r.URL.Query().Get("watch") == "true" {
		method = "WATCH"
	}
	request := method + " " + r.URL.Path
	s.mu.Lock()
	s.requests = append(s.requests, request)
	handler := s.handlers[request]
	if collection, ok := s.aliases[r.URL.Path]; ok {
		r.URL.Path = collection
	}
	collection, isCollection := s.collections[r.URL.Path]
	parent, name := cut(r.URL.Path)
	_, isObject := s.collections[parent]
	s.mu.Unlock()
	switch {
	case handler != nil:
		handler(w, r)
	case isCollection && method == http.MethodGet:
		s.list(w, r, collection)
	case isCollection && method == "WATCH":
		s.watch(w, r)
	case isCollection && method == http.MethodDelete:
		s.removeAll(w, r)
	case isObject && method == http.MethodGet:
		s.answer(w, s.Object(parent, name), name)
	case isObject && method == http.MethodDelete:
		s.remove(w, parent, name)
	case isObject && method == http.MethodPatch:
		s.patch(w, r, parent, name)
	default:
		s.t.Errorf("unexpected request %s", request)
		Status(w, http.StatusTeapot, "Unknown", "unknown request "+request)
	}
}

func cut(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:i], path[i+1:]
}

func matches(r *http.Request, object controllers.Object) bool {
	query := r.URL.Query()
	if name, ok := strings.CutPrefix(query.Get("fieldSelector"), "metadata.name="); ok && name != controllers.Name(object) {
		return false
	}
	selector, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return false
	}
	set := labels.Set{}
	v, _ := controllers.Path{"metadata.labels"}.Lookup(object)
	m, _ := v.(map[string]any)
	for key, value := range m {
		set[key] = fmt.Sprint(value)
	}
	return selector.Matches(set)
}

func (s *Server) list(w http.ResponseWriter, r *http.Request, collection map[string]controllers.Object) {
	s.mu.Lock()
	items := []controllers.Object{}
	for _, object := range collection {
		if matches(r, object) {
			items = append(items, object)
		}
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version)}, "items": items})
	s.mu.Unlock()
	s.write(w, body, err)
}

func (s *Server) write(w http.ResponseWriter, body []byte, err error) {
	if err != nil {
		s.t.Errorf("encoding an answer: %v", err)
	}
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(body); err != nil {
		s.t.Logf("writing an answer: %v", err)
	}
}

// watch sends the changes since the resourceVersion of the request.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	from, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		s.t.Errorf("watch of %s without a version to start at", r.URL.Path)
	}
	w.Header().Set("Content-Type", "application/json")
	flusher, _ := w.(http.Flusher)
	flusher.Flush()
	s.mu.Lock()
	begun := s.onWatch[r.URL.Path]
	delete(s.onWatch, r.URL.Path)
	s.mu.Unlock()
	if begun != nil {
		begun()
	}
	for {
		s.mu.Lock()
		var lines []byte
		for _, c := range s.history {
			if c.version > from && c.collection == r.URL.Path && matches(r, c.object) {
				line, err := json.Marshal(map[string]any{"type": c.typ, "object": c.object})
				if err != nil {
					s.t.Errorf("encoding an event: %v", err)
				}
				lines = append(append(lines, line...), '\n')
			}
		}
		from = s.version
		changed := s.changed
		s.mu.Unlock()
		if len(lines) > 0 {
			if _, err := w.Write(lines); err != nil {
				return
			}
			flusher.Flush()
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func (s *Server) answer(w http.ResponseWriter, object controllers.Object, name string) {
	if object == nil {
		Status(w, http.StatusNotFound, "NotFound", fmt.Sprintf("%q not found", name))
		return
	}
	body, err := json.Marshal(object)
	s.write(w, body, err)
}

// removeAll deletes the objects of a collection that match the label selector.
func (s *Server) removeAll(w http.ResponseWriter, r *http.Request) {
	for _, name := range s.Names(r.URL.Path) {
		if object := s.Object(r.URL.Path, name); object != nil && matches(r, object) {
			s.takeAway(r.URL.Path, name, object)
		}
	}
	s.write(w, []byte(success), nil)
}

func (s *Server) remove(w http.ResponseWriter, collection, name string) {
	object := s.Object(collection, name)
	if object == nil {
		s.answer(w, nil, name)
		return
	}
	s.takeAway(collection, name, object)
	if left := s.Object(collection, name); left != nil {
		s.answer(w, left, name)
	} else {
		s.write(w, []byte(success), nil)
	}
}

const success = `{"kind":"Status","apiVersion":"v1","status":"Success"}`

// takeAway deletes an object, or sets its deletionTimestamp if it has finalizers.
func (s *Server) takeAway(collection, name string, object controllers.Object) {
	if len(kube.Finalizers(object)) == 0 {
		s.Take(collection, name)
	} else {
		object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-11-01T10:00:00Z"
		s.Put(collection, object)
	}
}

// patch applies merge patches of metadata, and rejects those with an outdated resourceVersion.
func (s *Server) patch(w http.ResponseWriter, r *http.Request, collection, name string) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("Content-Type") != "application/merge-patch+json" {
		s.t.Errorf("unexpected patch of %s/%s: %s %v", collection, name, r.Header.Get("Content-Type"), err)
	}
	var change struct {
		Metadata struct {
			ResourceVersion string
			Finalizers      []any
		}
	}
	if err := json.Unmarshal(body, &change); err != nil {
		s.t.Errorf("reading a patch: %v", err)
	}
	object := s.Object(collection, name)
	if object == nil {
		s.answer(w, nil, name)
		return
	}
	if v := change.Metadata.ResourceVersion; v != "" && v != (controllers.Path{"metadata.resourceVersion"}).String(object) {
		Status(w, http.StatusConflict, "Conflict", "the object has been modified")
		return
	}
	meta := object["metadata"].(map[string]any)
	meta["finalizers"] = change.Metadata.Finalizers
	s.Put(collection, object)
	object = s.Object(collection, name)
	if len(change.Metadata.Finalizers) == 0 && meta["deletionTimestamp"] != nil {
		s.Take(collection, name)
	}
	s.answer(w, object, name)
}

// clone returns a deep copy of an object.
func clone(o controllers.Object) controllers.Object {
	body, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	var c controllers.Object
	if err := json.Unmarshal(body, &c); err != nil {
		panic(err)
	}
	return c
}

// Reply sends a JSON response.
func Reply(w http.ResponseWriter, format string, args ...any) {
	w.Header().Set("Content-Type", "application/json")
	if _, err := fmt.Fprintf(w, format, args...); err != nil {
		panic(http.ErrAbortHandler) // the client has disconnected
	}
}

// Status sends an error like the API server.
func Status(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	Reply(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":%q}`, code, reason, message)
}
