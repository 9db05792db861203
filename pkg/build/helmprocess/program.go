package helmprocess

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build"
)

// Program implements build.Renderer and build.Kustomizer by a process that is
// started when it is first needed, and lives until Close, or until its work
// exceeds what it may use: the next request starts another one.
type Program struct {
	// Find returns the path of the program.
	Find func() (string, error)
	// Cache is where it keeps charts.
	Cache string
	// Stderr is where it says what is wrong with itself.
	Stderr io.Writer
	// Bases is nil for a program that renders charts, and what a program that
	// runs kustomize may fetch.
	Bases *Bases

	mu      sync.Mutex
	cmd     *exec.Cmd
	begun   context.Context //nolint:containedctx // of the process
	in      io.WriteCloser
	next    int
	waiting map[int]chan response
	ended   chan struct{}
	err     error
	said    *lastWords
}

// Render implements build.Renderer.
func (p *Program) Render(ctx context.Context, release build.Release) (*build.Rendered, error) {
	what := "rendering chart " + release.Chart.Name
	r, err := p.do(ctx, what, request{Release: &release, Finds: release.Find != nil}, func(w *wanted) *found {
		answer := &found{}
		object, err := release.Find(ctx, w.Wanted)
		if err == nil && object != nil {
			answer.Object, err = json.Marshal(object)
		}
		if err != nil {
			answer.Error = err.Error()
		}
		return answer
	})
	return r.Rendered, err
}

// Kustomize implements build.Kustomizer.
func (p *Program) Kustomize(ctx context.Context, folder string, from build.FileSystem) ([][]byte, error) {
	r, err := p.do(ctx, "kustomize", request{Kustomize: folder}, func(w *wanted) *found { return read(from, w.File) })
	if refused := p.Bases.refused(); err != nil && refused != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w: %s", err, refused) //nolint:errorlint // wrapping it would make it a failure of the API server
	}
	objects := make([][]byte, len(r.Objects))
	for i, o := range r.Objects {
		objects[i] = o
	}
	return objects, err
}

// read answers what kustomize wants of a source.
func read(from build.FileSystem, f *file) *found {
	answer := &found{}
	var err error
	switch f.Method {
	case "IsDir":
		answer.True = from.IsDir(f.Name)
	case "Exists":
		answer.True = from.Exists(f.Name)
	case "ReadFile":
		answer.Data, err = from.ReadFile(f.Name)
	case "ReadDir":
		answer.Names, err = from.ReadDir(f.Name)
	case "Glob":
		answer.Names, err = from.Glob(f.Name)
	}
	if err != nil {
		answer.Error = err.Error()
	}
	return answer
}

// do sends a request, answers the questions about it, and returns its result.
func (p *Program) do(ctx context.Context, what string, asked request, answer func(*wanted) *found) (response, error) {
	responses, ended, err := p.ask(ctx, asked)
	if err != nil {
		return response{}, err
	}
	for {
		select {
		case <-ctx.Done():
			return response{}, context.Cause(ctx)
		case r, ok := <-responses:
			switch {
			case !ok && ctx.Err() != nil:
				return response{}, context.Cause(ctx)
			case !ok:
				<-ended
				return response{}, p.failure(what)
			case r.Wanted != nil:
				reply := answer(r.Wanted)
				reply.Number = r.Wanted.Number
				if err := p.reply(reply); err != nil {
					return response{}, err
				}
				continue
			case r.Error != "":
				return response{}, errors.New(r.Error)
			}
			return r, nil
		}
	}
}

// failure says why the process has ended before its work.
func (p *Program) failure(what string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var exit *exec.ExitError
	switch {
	case !errors.As(p.err, &exit):
	case exit.ExitCode() == exitCrash && !p.said.contain("out of memory", "cannot allocate memory"):
		return &budget.ExceededError{Name: what, Fact: "the process that runs it crashed, which its limit of " + budget.Size(budget.HelperData) + " of memory can cause"}
	case exit.ExitCode() == ExitMemory || exit.ExitCode() == exitCrash:
		return &budget.ExceededError{Name: what, Fact: "more than " + budget.Size(budget.HelperMemory) + " of memory are needed"}
	}
	return fmt.Errorf("flux-helm ended before its work: %w", p.err)
}

// ask sends a request and returns where the answer will come, and what is
// closed when the process has ended.
func (p *Program) ask(ctx context.Context, r request) (<-chan response, <-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == nil {
		if err := p.start(ctx); err != nil {
			return nil, nil, err
		}
	}
	p.next++
	r.ID = p.next
	// Of one request, there is a question or the answer under way, and an error
	// where nobody has taken the question.
	answer := make(chan response, 2)
	p.waiting[p.next] = answer
	return answer, p.ended, p.send(r)
}

func (p *Program) reply(f *found) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.send(request{Found: f})
}

// send writes a line. p.mu is held.
func (p *Program) send(r request) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("asking flux-helm: %w", err)
	}
	_, _ = p.in.Write(append(line, '\n')) // where it has ended, the answer says so
	return nil
}

func (p *Program) start(ctx context.Context) error {
	path, err := p.Find()
	if err != nil {
		return err
	}
	argument := p.Cache
	if p.Bases != nil {
		argument = kustomizeOnly
	}
	cmd := exec.CommandContext(ctx, path, argument)
	cmd.WaitDelay = time.Second
	cmd.Env = chartEnvironment(os.LookupEnv) //nolint:forbidigo // the process gets named variables of this one
	if p.Bases != nil {
		if cmd.Env, err = p.Bases.environment(ctx); err != nil {
			return err
		}
	}
	p.said = &lastWords{}
	cmd.Stderr = p.said
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
	go p.listen(cmd, out, p.ended)
	return nil
}

// listen hands answers to those who wait, until the program ends.
func (p *Program) listen(cmd *exec.Cmd, out io.Reader, ended chan struct{}) {
	defer close(ended)
	for answers := json.NewDecoder(out); ; {
		var r response
		if err := answers.Decode(&r); err != nil {
			p.end(cmd, err)
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

func (p *Program) end(cmd *exec.Cmd, err error) {
	if !errors.Is(err, io.EOF) {
		_ = cmd.Process.Kill() // what it says cannot be read any more
	}
	if exit := cmd.Wait(); exit != nil {
		err = exit
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
	for _, answer := range p.waiting {
		close(answer)
	}
	p.waiting = nil
	if p.Stderr != nil {
		p.said.tell(p.Stderr)
	}
}

// Close ends the program and waits for it. That it was killed when the context
// ended, or for its memory, is no error of its own.
func (p *Program) Close() error {
	p.mu.Lock()
	cmd := p.cmd
	p.mu.Unlock()
	if cmd == nil {
		return p.Bases.close()
	}
	_ = p.in.Close() // it may have ended
	<-p.ended
	err := p.Bases.close()
	var exit *exec.ExitError
	if errors.As(p.err, &exit) && p.begun.Err() == nil && exit.ExitCode() != ExitMemory {
		return errors.Join(p.err, err)
	}
	return err
}

// lastWords keeps the beginning of what a process writes to stderr.
type lastWords struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// wordsMax is enough for an error, and for the first line of a crash.
const wordsMax = 4 << 10

// Write implements io.Writer.
func (l *lastWords) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p[:max(0, min(len(p), wordsMax-l.text.Len()))])
	return len(p), nil
}

func (l *lastWords) contain(any ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range any {
		if bytes.Contains(l.text.Bytes(), []byte(s)) {
			return true
		}
	}
	return false
}

// tell repeats what was written, except for the stacks of a crash.
func (l *lastWords) tell(to io.Writer) {
	if l.contain("out of memory", "cannot allocate memory", "goroutine ", "runtime", "00000000") {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = to.Write(l.text.Bytes())
}
