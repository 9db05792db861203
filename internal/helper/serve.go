package helper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/fluxkit/flux/internal/budget"
)

// concurrency is the maximum number of jobs that run at the same time.
const concurrency = 8

// Query sends a query to the process that started the job, and decodes the reply.
type Query func(ctx context.Context, value, reply any) error

// Handler runs the jobs with a name.
type Handler struct {
	name string
	run  func(ctx context.Context, input json.RawMessage, send Query) (output any, err error)
}

// Serve runs jobs by name until there are no more requests. It then cancels running jobs, because
// their results are no longer needed.
func Serve(ctx context.Context, handlers []Handler, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	s := &server{handlers: handlers, responses: json.NewEncoder(out), slots: make(chan struct{}, concurrency), queries: map[int]chan *reply{}}
	var running sync.WaitGroup
	defer func() {
		cancel()
		ended := make(chan struct{})
		go func() { running.Wait(); close(ended) }()
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
		if r.Reply != nil {
			s.deliver(r.Reply)
			continue
		}
		running.Go(func() { s.run(ctx, r) })
	}
}

type server struct {
	handlers []Handler
	slots    chan struct{}

	mu        sync.Mutex
	responses *json.Encoder
	queries   map[int]chan *reply
	number    int
}

func (s *server) run(ctx context.Context, r request) {
	s.slots <- struct{}{}
	defer func() { <-s.slots }()
	result := response{ID: r.ID}
	output, err := s.output(ctx, r)
	if err != nil && !errors.As(err, &result.Error) {
		result.Error = &Error{Text: budget.Excerpt(err.Error(), budget.ErrorText)}
	}
	result.Output = output
	s.send(result)
}

// output runs a job and returns its output, whose size is limited.
func (s *server) output(ctx context.Context, r request) (json.RawMessage, error) {
	i := slices.IndexFunc(s.handlers, func(h Handler) bool { return h.name == r.Job })
	if i < 0 {
		return nil, fmt.Errorf("%s does not support the job %q: install the same version of flux and %s", Program, r.Job, Program)
	}
	output, err := s.handlers[i].run(ctx, r.Input, func(ctx context.Context, value, reply any) error { return s.query(ctx, r.ID, value, reply) })
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(output)
	if err == nil && len(encoded) > budget.HelperOutput {
		return nil, &budget.ExceededError{Fact: "the output of " + r.Job + " is larger than " + budget.Size(budget.HelperOutput)}
	}
	return encoded, err
}

func (s *server) send(r response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.responses.Encode(r) // the other process has exited if this fails
}

// query sends a query for a job and waits for the reply.
func (s *server) query(ctx context.Context, id int, value, into any) error {
	encoded, err := json.Marshal(value)
	if err != nil {
		return err
	}
	replies := make(chan *reply, 1)
	s.mu.Lock()
	s.number++
	q := &query{Number: s.number, Value: encoded}
	s.queries[q.Number] = replies
	s.mu.Unlock()
	s.send(response{ID: id, Query: q})
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case a := <-replies:
		if a.Error != "" {
			return errors.New(a.Error)
		}
		return json.Unmarshal(a.Value, into)
	}
}

func (s *server) deliver(a *reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if replies := s.queries[a.Number]; replies != nil {
		replies <- a
		delete(s.queries, a.Number)
	}
}
