// Package helmprocess runs Helm and kustomize in a process of its own: flux-helm,
// which has Helm's SDK, where flux starts without it, a limit of memory, and an
// end when flux ends. The two exchange lines of JSON, several renders at a time;
// files and secrets go through the pipe only.
package helmprocess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build"
)

// atOnce bounds how many charts are rendered at the same time.
const atOnce = 8

// request asks for a release to be rendered, or answers what a template of one
// has looked up.
type request struct {
	ID      int            `json:"id"`
	Release *build.Release `json:"release,omitempty"`
	// Kustomize is a folder to build instead.
	Kustomize string `json:"kustomize,omitempty"`
	// Finds tells that templates may look things up.
	Finds bool   `json:"finds,omitempty"`
	Found *found `json:"found,omitempty"`
}

// response is a rendered release, or something that its template looks for.
type response struct {
	ID       int             `json:"id"`
	Rendered *build.Rendered `json:"rendered,omitempty"`
	// Objects are what kustomize has returned.
	Objects []json.RawMessage `json:"objects,omitempty"`
	Error   string            `json:"error,omitempty"`
	Wanted  *wanted           `json:"wanted,omitempty"`
}

// wanted is a question, found its answer with the same number.
type wanted struct {
	Number int `json:"number"`
	build.Wanted
	// File is what kustomize wants of the source.
	File *file `json:"file,omitempty"`
}

// file is a call of a method of build.FileSystem.
type file struct {
	Method string `json:"method"`
	Name   string `json:"name"`
}

type found struct {
	Number int             `json:"number"`
	Object json.RawMessage `json:"object,omitempty"`
	// Data, Names and True are what methods of build.FileSystem return.
	Data  []byte   `json:"data,omitempty"`
	Names []string `json:"names,omitempty"`
	True  bool     `json:"true,omitempty"`
	Error string   `json:"error,omitempty"`
}

// Serve answers requests until there are no more. It does not wait long for
// those under way then: nobody takes their answers.
func Serve(ctx context.Context, renderer build.Renderer, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	s := &server{renderer: renderer, answers: json.NewEncoder(out), slots: make(chan struct{}, atOnce), asked: map[int]chan *found{}}
	var wg sync.WaitGroup
	defer func() {
		cancel() // nobody is there any more to answer templates
		ended := make(chan struct{})
		go func() { wg.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(budget.HelperGrace):
		}
	}()
	for requests := json.NewDecoder(in); ; {
		var r request
		err := requests.Decode(&r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading a request: %w", err)
		}
		if r.Found != nil {
			s.hear(r.Found)
			continue
		}
		wg.Go(func() { s.render(ctx, r) })
	}
}

// server renders for one who asks.
type server struct {
	renderer build.Renderer
	slots    chan struct{}

	mu      sync.Mutex
	answers *json.Encoder
	asked   map[int]chan *found
	number  int
}

func (s *server) render(ctx context.Context, r request) {
	s.slots <- struct{}{}
	defer func() { <-s.slots }()
	if r.Finds {
		r.Release.Find = func(ctx context.Context, w build.Wanted) (map[string]any, error) { return s.find(ctx, r.ID, w) }
	}
	answer := response{ID: r.ID}
	var err error
	if r.Release == nil {
		answer.Objects, err = s.kustomize(ctx, r)
	} else if answer.Rendered, err = s.renderer.Render(ctx, *r.Release); err == nil {
		err = renderedWithin(answer.Rendered)
	}
	if err != nil {
		answer = response{ID: r.ID, Error: err.Error()}
	}
	s.say(answer)
}

func (s *server) kustomize(ctx context.Context, r request) ([]json.RawMessage, error) {
	objects, err := build.Kustomize(r.Kustomize, &source{ctx, s, r.ID})
	if err != nil {
		return nil, err
	}
	raw := make([]json.RawMessage, len(objects))
	size := 0
	for i, o := range objects {
		raw[i] = o
		size += len(o)
	}
	return raw, within("kustomize", size)
}

// outputMax bounds what one build or one chart returns.
const outputMax = 64 << 20

func within(what string, size int) error {
	if size > outputMax {
		return &budget.ExceededError{Fact: "the output of " + what + " is larger than " + budget.Size(outputMax)}
	}
	return nil
}

func renderedWithin(r *build.Rendered) error {
	size := 0
	for _, part := range [][]string{r.CRDs, r.Manifests, r.Hooks} {
		for _, document := range part {
			size += len(document)
		}
	}
	return within("the chart", size)
}

// source asks back for the files of a build.
type source struct {
	ctx    context.Context //nolint:containedctx // it lives as long as one build
	server *server
	id     int
}

var _ build.FileSystem = (*source)(nil)

func (s *source) ask(method, name string) *found {
	answer, err := s.server.ask(s.ctx, s.id, wanted{File: &file{method, name}})
	if err != nil {
		return &found{Error: err.Error()}
	}
	return answer
}

// IsDir implements build.FileSystem.
func (s *source) IsDir(name string) bool { return s.ask("IsDir", name).True }

// Exists implements build.FileSystem.
func (s *source) Exists(name string) bool { return s.ask("Exists", name).True }

// ReadFile implements build.FileSystem.
func (s *source) ReadFile(name string) ([]byte, error) {
	answer := s.ask("ReadFile", name)
	return answer.Data, answer.err()
}

// ReadDir implements build.FileSystem.
func (s *source) ReadDir(name string) ([]string, error) {
	answer := s.ask("ReadDir", name)
	return answer.Names, answer.err()
}

// Glob implements build.FileSystem.
func (s *source) Glob(pattern string) ([]string, error) {
	answer := s.ask("Glob", pattern)
	return answer.Names, answer.err()
}

func (f *found) err() error {
	if f.Error == "" {
		return nil
	}
	return errors.New(f.Error)
}

func (s *server) say(r response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.answers.Encode(r) // who asked is gone if this fails
}

// find asks back for what a template looks for.
func (s *server) find(ctx context.Context, id int, w build.Wanted) (map[string]any, error) {
	f, err := s.ask(ctx, id, wanted{Wanted: w})
	if err == nil {
		err = f.err()
	}
	if err != nil || len(f.Object) == 0 {
		return nil, err
	}
	// Whole numbers have to stay such, or templates print them with exponents.
	var object map[string]any
	err = utiljson.Unmarshal(f.Object, &object)
	return object, err
}

// ask sends a question about a request and waits for the answer.
func (s *server) ask(ctx context.Context, id int, w wanted) (*found, error) {
	answer := make(chan *found, 1)
	s.mu.Lock()
	s.number++
	w.Number = s.number
	s.asked[w.Number] = answer
	s.mu.Unlock()
	s.say(response{ID: id, Wanted: &w})
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case f := <-answer:
		return f, nil
	}
}

func (s *server) hear(f *found) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer := s.asked[f.Number]; answer != nil {
		answer <- f
		delete(s.asked, f.Number)
	}
}
