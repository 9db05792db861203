package helper

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/fluxkit/flux/internal/hint"
)

// Pool manages the helper processes of a command. Each package with jobs has a constructor that
// takes a Pool. A process starts with its first job, and Close stops all of them.
type Pool struct {
	// Find returns the path of the helper program; nil searches the directory of the running program.
	Find func() (string, error)
	// LookupEnv and Environ return the environment of flux.
	LookupEnv func(string) (string, bool)
	Environ   func() []string
	// Warn is called once for each distinct line that a library writes to stderr. It may be nil.
	Warn func(text string)

	mu      sync.Mutex
	clients map[string]io.Closer
	warned  sync.Map
}

// Shared returns the client with a name in a pool. The first call creates the client, and Close of the pool closes
// it.
func Shared[C io.Closer](p *Pool, name string, create func() C) C {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c, ok := p.clients[name].(C); ok {
		return c
	}
	if p.clients == nil {
		p.clients = map[string]io.Closer{}
	}
	c := create()
	p.clients[name] = c
	return c
}

// Process returns a new process, which the caller closes. The arguments select its jobs and contain
// no secrets. library is the name of the library in warnings, "" to ignore its output on stderr.
func (p *Pool) Process(library string, environment Environment, arguments ...string) *Process {
	return &Process{find: p.Program, arguments: arguments, environment: environment, report: func(line string) {
		if library != "" && p.Warn != nil {
			p.warn(library, line)
		}
	}}
}

// warn prints the output of a library on stderr, such as the deprecation warnings of kustomize.
func (p *Pool) warn(library, line string) {
	line, _, _ = strings.Cut(line, " val=") // kustomize logs values, possibly from a Secret
	text := library + ": " + strings.TrimPrefix(line, "# Warning: ")
	if _, warned := p.warned.LoadOrStore(text, true); !warned {
		p.Warn(text)
	}
}

// Program returns the path of the helper program.
func (p *Pool) Program() (string, error) {
	if p.Find != nil {
		return p.Find()
	}
	path, err := Find(Program)
	if errors.Is(err, ErrNotFound) {
		err = hint.Errorf("install "+Program+" from the flux release archive in the same directory as flux", "%w", err)
	}
	return path, err
}

// Env returns an environment variable of flux, "" if it is not set.
func (p *Pool) Env(name string) string {
	value, _ := p.LookupEnv(name)
	return value
}

// Named returns an environment with only the named variables, which excludes pipeline tokens.
func (p *Pool) Named(names ...string) Environment {
	return func(context.Context) ([]string, error) {
		env := []string{}
		for _, name := range names {
			if value, ok := p.LookupEnv(name); ok {
				env = append(env, name+"="+value)
			}
		}
		return env, nil
	}
}

// Close stops the processes.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	for _, client := range p.clients {
		err = errors.Join(err, client.Close())
	}
	return err
}
