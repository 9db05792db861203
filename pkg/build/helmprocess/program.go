package helmprocess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"

	"github.com/fluxkit/flux/pkg/build"
)

// Program implements build.Renderer by a process that is started when the
// first chart is to be rendered, and lives until Close.
type Program struct {
	// Find returns the path of the program.
	Find func() (string, error)
	// Cache is where it keeps charts.
	Cache string
	// Stderr is where it says what is wrong with itself.
	Stderr io.Writer

	mu      sync.Mutex
	cmd     *exec.Cmd
	begun   context.Context
	in      io.WriteCloser
	next    int
	waiting map[int]chan response
	ended   chan struct{}
	err     error
}

// Render implements build.Renderer.
func (p *Program) Render(ctx context.Context, release build.Release) (*build.Rendered, error) {
	answer, err := p.ask(ctx, release)
	if err != nil {
		return nil, err
	}
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case r, ok := <-answer:
			switch {
			case !ok && ctx.Err() != nil:
				return nil, context.Cause(ctx)
			case !ok:
				return nil, fmt.Errorf("flux-helm ended before its work: %w", p.err)
			case r.Wanted != nil:
				if err := p.find(ctx, release.Find, r.Wanted); err != nil {
					return nil, err
				}
				continue
			case r.Error != "":
				return nil, errors.New(r.Error)
			}
			return r.Rendered, nil
		}
	}
}

// ask sends a request and returns where the answer will come.
func (p *Program) ask(ctx context.Context, release build.Release) (<-chan response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		if err := p.start(ctx); err != nil {
			return nil, err
		}
	}
	p.next++
	// Of one release, there is a question or the answer under way, and an error
	// where nobody has taken the question.
	answer := make(chan response, 2)
	if p.waiting == nil {
		close(answer) // it has ended
		return answer, nil
	}
	p.waiting[p.next] = answer
	return answer, p.send(request{ID: p.next, Release: &release, Finds: release.Find != nil})
}

// send writes a line. p.mu is held.
func (p *Program) send(r request) error {
	line, err := json.Marshal(r)
	if err == nil {
		_, err = p.in.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("asking flux-helm: %w", err)
	}
	return nil
}

// find answers what a template looks for.
func (p *Program) find(ctx context.Context, find build.Finder, w *wanted) error {
	answer := &found{Number: w.Number}
	object, err := find(ctx, w.Wanted)
	if err == nil && object != nil {
		answer.Object, err = json.Marshal(object)
	}
	if err != nil {
		answer.Error = err.Error()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.send(request{Found: answer})
}

func (p *Program) start(ctx context.Context) error {
	path, err := p.Find()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, p.Cache)
	cmd.Stderr = p.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("starting flux-helm: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("starting flux-helm: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting flux-helm: %w", err)
	}
	p.cmd, p.begun, p.in, p.waiting, p.ended = cmd, ctx, in, map[int]chan response{}, make(chan struct{})
	go p.listen(out)
	return nil
}

// listen hands answers to those who wait, until the program ends.
func (p *Program) listen(out io.Reader) {
	defer close(p.ended)
	for answers := json.NewDecoder(out); ; {
		var r response
		if err := answers.Decode(&r); err != nil {
			p.end(err)
			return
		}
		p.mu.Lock()
		answer := p.waiting[r.ID]
		if r.Wanted == nil {
			delete(p.waiting, r.ID)
		}
		p.mu.Unlock()
		if answer != nil {
			answer <- r
		}
	}
}

func (p *Program) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
	for _, answer := range p.waiting {
		close(answer)
	}
	p.waiting = nil
}

// Close ends the program and waits for it. That it was killed when the context
// ended is no error of its own.
func (p *Program) Close() error {
	p.mu.Lock()
	cmd := p.cmd
	p.mu.Unlock()
	if cmd == nil {
		return nil
	}
	err := p.in.Close()
	<-p.ended
	err = errors.Join(err, cmd.Wait())
	if p.begun.Err() != nil {
		return nil // it was ended, which is known
	}
	return err
}
