package helper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/fluxkit/flux/internal/budget"
)

// Environment returns the complete environment of a process.
type Environment func(context.Context) ([]string, error)

// Process is a helper process of a Pool. It starts with its first job and runs until Close, or until
// it exceeds its limits; the next job starts another process. Each environment and each set of
// arguments requires a separate Process.
type Process struct {
	find        func() (string, error)
	arguments   []string
	environment Environment
	// report is called when the process has exited, with each line of its stderr. The lines do not
	// belong to a particular job and may contain control characters from the input.
	report func(line string)

	mu      sync.Mutex
	cmd     *exec.Cmd
	started context.Context // the process ends when this context ends
	in      io.WriteCloser
	number  int
	waiting map[int]chan response
	ended   chan struct{}
	err     error
	stderr  *excerpt
}

// Responder handles a query of a job. Its result is encoded as JSON.
type Responder func(query json.RawMessage) (any, error)

// do runs a job, responds to its queries, and returns its output.
func (p *Process) do(ctx context.Context, job, title string, input json.RawMessage, respond Responder) (json.RawMessage, error) {
	responses, ended, err := p.begin(ctx, request{Job: job, Input: input})
	if err != nil {
		return nil, err
	}
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case r, ok := <-responses:
			switch {
			case !ok && ctx.Err() != nil:
				return nil, context.Cause(ctx)
			case !ok:
				<-ended
				return nil, p.failure(title)
			case r.Query != nil:
				if err := p.reply(respond, r.Query); err != nil {
					return nil, err
				}
				continue
			case r.Error != nil:
				return nil, r.Error
			}
			return r.Output, nil
		}
	}
}

// failure returns the error for a process that exited before its jobs were finished.
func (p *Process) failure(title string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var exit *exec.ExitError
	switch {
	case !errors.As(p.err, &exit):
	case exit.ExitCode() == exitCrash && !p.stderr.contains("out of memory", "cannot allocate memory"):
		return &budget.ExceededError{Name: title, Fact: "the helper process crashed, possibly because of its memory limit of " + budget.Size(budget.HelperData)}
	case exit.ExitCode() == ExitMemory || exit.ExitCode() == exitCrash:
		return &budget.ExceededError{Name: title, Fact: "requires more than " + budget.Size(budget.HelperMemory) + " of memory"}
	}
	return fmt.Errorf("%s exited before it finished %s: %w", Program, title, p.err)
}

// begin sends a request. It returns the channel of responses, and a channel that is closed when the
// process has ended.
func (p *Process) begin(ctx context.Context, r request) (<-chan response, <-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == nil {
		if err := p.start(ctx); err != nil {
			return nil, nil, err
		}
	}
	p.number++
	r.ID = p.number
	// There is at most one unread query and, if the query is never read, one error.
	responses := make(chan response, 2)
	p.waiting[r.ID] = responses
	return responses, p.ended, p.send(r)
}

func (p *Process) reply(respond Responder, q *query) error {
	reply := &reply{Number: q.Number}
	value, err := respond(q.Value)
	if err == nil {
		reply.Value, err = json.Marshal(value)
	}
	if err != nil {
		reply.Error = err.Error()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.send(request{Reply: reply})
}

// send writes a line. The caller must hold p.mu.
func (p *Process) send(r request) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding a request to %s: %w", Program, err)
	}
	_, _ = p.in.Write(append(line, '\n')) // if the process has exited, its exit code is the error
	return nil
}

// start starts the process. The caller must hold p.mu.
func (p *Process) start(ctx context.Context) error {
	path, err := p.find()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, p.arguments...)
	cmd.WaitDelay = time.Second
	if cmd.Env, err = p.environment(ctx); err != nil {
		return err
	}
	p.stderr = &excerpt{}
	cmd.Stderr = p.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("starting %s: %w", Program, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("starting %s: %w", Program, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", Program, err)
	}
	p.cmd, p.started, p.in, p.waiting, p.ended = cmd, ctx, in, map[int]chan response{}, make(chan struct{})
	go p.receive(cmd, out, p.ended)
	return nil
}

// receive distributes responses until the process ends.
func (p *Process) receive(cmd *exec.Cmd, out io.Reader, ended chan struct{}) {
	defer close(ended)
	for responses := json.NewDecoder(out); ; {
		var r response
		if err := responses.Decode(&r); err != nil {
			p.end(cmd, err)
			return
		}
		p.mu.Lock()
		waiting := p.waiting[r.ID]
		if r.Query == nil {
			delete(p.waiting, r.ID)
		}
		p.mu.Unlock()
		if waiting != nil {
			waiting <- r
		}
	}
}

func (p *Process) end(cmd *exec.Cmd, err error) {
	if !errors.Is(err, io.EOF) {
		_ = cmd.Process.Kill() // its output is malformed
	}
	if exit := cmd.Wait(); exit != nil {
		err = exit
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
	for _, waiting := range p.waiting {
		close(waiting)
	}
	p.waiting = nil
	p.stderr.report(p.report)
}

// Close stops the process and waits until it has exited. It returns no error if the process was
// killed because its context ended or it exceeded its memory limit.
func (p *Process) Close() error {
	p.mu.Lock()
	cmd := p.cmd
	p.mu.Unlock()
	if cmd == nil {
		return nil
	}
	_ = p.in.Close() // the process may have exited
	<-p.ended
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd = nil // a second call returns no error
	var exit *exec.ExitError
	if errors.As(p.err, &exit) && p.started.Err() == nil && exit.ExitCode() != ExitMemory {
		return p.err
	}
	return nil
}
