// Package helmprocess has charts rendered by a process of its own: flux-helm,
// which begins with Helm's SDK where flux begins without. The two exchange
// lines of JSON, several renders at a time; secrets go through the pipe only.
package helmprocess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fluxkit/flux/pkg/build"
)

// atOnce bounds how many charts are rendered at the same time.
const atOnce = 8

// request asks for a release to be rendered, or answers what a template of one
// has looked up.
type request struct {
	ID      int            `json:"id"`
	Release *build.Release `json:"release,omitempty"`
	// Finds tells that templates may look things up.
	Finds bool   `json:"finds,omitempty"`
	Found *found `json:"found,omitempty"`
}

// response is a rendered release, or something that its template looks for.
type response struct {
	ID       int             `json:"id"`
	Rendered *build.Rendered `json:"rendered,omitempty"`
	Error    string          `json:"error,omitempty"`
	Wanted   *wanted         `json:"wanted,omitempty"`
}

// wanted is a question, found its answer with the same number.
type wanted struct {
	Number int `json:"number"`
	build.Wanted
}

type found struct {
	Number int             `json:"number"`
	Object json.RawMessage `json:"object,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// Serve answers requests until there are no more.
func Serve(ctx context.Context, renderer build.Renderer, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	s := &server{renderer: renderer, answers: json.NewEncoder(out), slots: make(chan struct{}, atOnce), asked: map[int]chan *found{}}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel() // nobody is there any more to answer templates
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
	rendered, err := s.renderer.Render(ctx, *r.Release)
	if answer.Rendered = rendered; err != nil {
		answer = response{ID: r.ID, Error: err.Error()}
	}
	s.say(answer)
}

func (s *server) say(r response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.answers.Encode(r) // who asked is gone if this fails
}

// find asks back for what a template looks for.
func (s *server) find(ctx context.Context, id int, w build.Wanted) (map[string]any, error) {
	answer := make(chan *found, 1)
	s.mu.Lock()
	s.number++
	number := s.number
	s.asked[number] = answer
	s.mu.Unlock()
	s.say(response{ID: id, Wanted: &wanted{number, w}})
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case f := <-answer:
		if f.Error != "" {
			return nil, errors.New(f.Error)
		}
		var object map[string]any
		if len(f.Object) == 0 {
			return nil, nil
		}
		// Whole numbers have to stay such, or templates print them with exponents.
		err := utiljson.Unmarshal(f.Object, &object)
		return object, err
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
