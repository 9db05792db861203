// Package supervisor owns the processes of a sandbox: it starts the components in
// order, watches them, records their status, and stops them in order.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fluxkit/flux/sandbox/internal/part"
	"github.com/fluxkit/flux/sandbox/internal/process"
	"github.com/fluxkit/flux/sandbox/internal/state"
)

var errEnded = errors.New("the process exited")

// Supervisor runs the components of one sandbox.
type Supervisor struct {
	folder  state.Folder
	binary  string
	starter *process.Starter
	stages  [][]spec
	log     *log.Logger
	failed  chan error
	network *network
	// requests receives the signals of other commands.
	requests chan os.Signal
	awaits   sync.WaitGroup

	mu       sync.Mutex
	status   state.Status
	children map[string]*process.Child
}

// Run supervises the sandbox in folder until ctx is canceled or parent, if it is not nil, reaches EOF. It runs the
// components from binary, and returns when all of its processes have exited. The parent owns the directory, which is removed
// when the parent exits.
func Run(ctx context.Context, folder state.Folder, binary string, parent io.Reader, out io.Writer) error {
	lock, err := folder.TryLock("supervisor")
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var orphaned atomic.Bool
	if parent != nil {
		go func() {
			_, _ = io.Copy(io.Discard, parent) // the parent writes nothing to it
			orphaned.Store(true)
			stop()
		}()
	}
	err = run(ctx, folder, binary, out)
	if orphaned.Load() {
		err = errors.Join(err, os.RemoveAll(string(folder)))
	}
	return errors.Join(err, lock.Close())
}

func run(ctx context.Context, folder state.Folder, binary string, out io.Writer) error {
	config, err := folder.LoadConfig()
	if err != nil {
		return err
	}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	s := &Supervisor{
		folder: folder, binary: binary, starter: process.NewStarter(background), log: log.New(out, "", log.LstdFlags|log.LUTC),
		failed: make(chan error, 1), requests: make(chan os.Signal, 1), children: map[string]*process.Child{},
	}
	if s.network, err = newNetwork(ctx, s.starter, config.Isolated); err != nil {
		return err
	}
	s.stages = s.network.stages(folder, config)
	signal.Notify(s.requests, restartSignal, reachSignal)
	defer signal.Stop(s.requests)
	s.status = state.Status{Supervisor: process.Self(), Phase: state.Starting, Started: time.Now().UTC()}
	for _, stage := range s.stages {
		for _, spec := range stage {
			s.status.Parts = append(s.status.Parts, s.describe(spec, config))
		}
	}
	open, shut := context.WithCancel(background)
	defer s.network.group.Wait()
	defer shut()
	if config.Isolated {
		if err := s.network.publish(open, folder, config, s.log); err != nil {
			return err
		}
	}
	return s.supervise(ctx, open)
}

// The signals that commands send to the supervisor: to restart the API server, and to make the addresses in the
// configuration available to the components.
const (
	restartSignal = syscall.SIGUSR1
	reachSignal   = syscall.SIGUSR2
)

func (s *Supervisor) describe(spec spec, config state.Config) state.Part {
	ports := map[string]int{}
	for purpose, name := range spec.ports {
		ports[purpose] = config.Ports[name]
	}
	return state.Part{Name: spec.name, Phase: state.Stopped, Ports: ports}
}

// supervise starts, watches and stops the components. If a component does not start, the sandbox is stopped. If one exits
// later, it is reported and the others keep running, so that their state can be examined. Connections with this machine stay
// open until the context open is canceled.
func (s *Supervisor) supervise(ctx, open context.Context) error {
	s.save()
	err := s.start(ctx)
	switch {
	case ctx.Err() != nil:
		err = nil
	case err != nil:
		s.setPhase(state.Failed, err.Error())
	default:
		s.setPhase(state.Ready, "")
		err = s.watch(ctx, open)
	}
	s.stop(err)
	return err
}

func (s *Supervisor) start(ctx context.Context) error {
	for _, stage := range s.stages {
		errs := make(chan error, len(stage))
		for _, spec := range stage {
			go func() { errs <- s.startPart(ctx, spec) }()
		}
		var err error
		for range stage {
			err = errors.Join(err, <-errs)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Supervisor) startPart(ctx context.Context, spec spec) error {
	path := s.folder.Log(spec.name)
	if err := rotate(path); err != nil {
		return err
	}
	file, err := process.OpenLog(path)
	if err != nil {
		return err
	}
	child, err := s.starter.Start(ctx, process.Command{
		Path: s.binary, Args: []string{"part", spec.name, "--dir", string(s.folder)},
		Env: append(process.Environment(string(s.folder)), spec.env...), Dir: string(s.folder), Output: file,
	})
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	s.mu.Lock()
	s.children[spec.name] = child
	s.mu.Unlock()
	s.setPart(spec.name, func(p *state.Part) { p.Identity, p.Phase = child.Identity, state.Starting })
	s.awaits.Go(func() { s.await(spec, child) })
	if err := poll(ctx, spec.ready, child.Done()); err != nil {
		return s.explain(spec.name, fmt.Errorf("%s did not become ready: %w", spec.name, err))
	}
	s.setPart(spec.name, func(p *state.Part) {
		if p.Phase == state.Starting {
			p.Phase = state.Ready
		}
	})
	return nil
}

// await records the exit of a component, and whether it was stopped on purpose.
func (s *Supervisor) await(spec spec, child *process.Child) {
	<-child.Done()
	wanted := false
	s.setPart(spec.name, func(p *state.Part) {
		if wanted = s.children[spec.name] != child; wanted {
			return // it was restarted
		}
		wanted = p.Phase == state.Stopping
		p.Phase = state.Stopped
		if !wanted {
			p.Phase = state.Failed
			p.Message = fmt.Sprintf("exited unexpectedly: %v", endOf(child))
		}
	})
	if wanted {
		return
	}
	select {
	case s.failed <- s.explain(spec.name, fmt.Errorf("%s exited unexpectedly: %v", spec.name, endOf(child))):
	default: // one report is enough, the status lists every component
	}
}

func endOf(child *process.Child) string {
	if child.Err() == nil {
		return "exit status 0"
	}
	return child.Err().Error()
}

// watch blocks until ctx is canceled, and records the first component that exits in the status of the sandbox.
func (s *Supervisor) watch(ctx, open context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-s.failed:
			s.log.Print(err)
			s.setPhase(state.Failed, err.Error())
		case request := <-s.requests:
			err := error(nil)
			if request == restartSignal {
				err = s.restart(ctx, part.APIServer)
			} else {
				err = s.reach(open)
			}
			if err != nil && ctx.Err() == nil {
				s.log.Print(err)
				s.setPhase(state.Failed, err.Error())
			}
		}
	}
}

// reach makes the addresses in the configuration available to the components.
func (s *Supervisor) reach(ctx context.Context) error {
	config, err := s.folder.LoadConfig()
	if err != nil {
		return err
	}
	reached, err := s.network.reach(ctx, config.Reachable, s.status.Reached)
	s.mu.Lock()
	s.status.Reached = reached
	s.mu.Unlock()
	s.save()
	return err
}

// restart stops a component and starts it again.
func (s *Supervisor) restart(ctx context.Context, name string) error {
	for _, stage := range s.stages {
		for _, spec := range stage {
			if spec.name != name {
				continue
			}
			s.mu.Lock()
			child := s.children[name]
			s.mu.Unlock()
			s.stopPart(spec, child)
			return s.startPart(ctx, spec)
		}
	}
	return nil
}

// stop stops the components in reverse order of their stages and waits for each.
func (s *Supervisor) stop(cause error) {
	if cause == nil {
		s.setPhase(state.Stopping, "")
	}
	for i := len(s.stages) - 1; i >= 0; i-- {
		var group sync.WaitGroup
		for _, spec := range s.stages[i] {
			s.mu.Lock()
			child := s.children[spec.name]
			s.mu.Unlock()
			if child == nil {
				continue
			}
			group.Go(func() { s.stopPart(spec, child) })
		}
		group.Wait()
	}
	s.awaits.Wait()
	if cause == nil {
		s.setPhase(state.Stopped, "")
	}
}

func (s *Supervisor) stopPart(spec spec, child *process.Child) {
	s.setPart(spec.name, func(p *state.Part) {
		if p.Phase != state.Failed {
			p.Phase = state.Stopping
		}
	})
	child.Stop(spec.grace)
}

// explain adds the end of a component's log to err.
func (s *Supervisor) explain(name string, err error) error {
	tail := Tail(s.folder.Log(name), 12)
	if tail == "" {
		return err
	}
	return fmt.Errorf("%w\nthe end of %s:\n%s", err, s.folder.Log(name), tail)
}

func (s *Supervisor) setPhase(phase state.Phase, message string) {
	s.mu.Lock()
	s.status.Phase, s.status.Message = phase, message
	s.mu.Unlock()
	s.save()
}

func (s *Supervisor) setPart(name string, change func(*state.Part)) {
	s.mu.Lock()
	for i := range s.status.Parts {
		if s.status.Parts[i].Name == name {
			change(&s.status.Parts[i])
		}
	}
	s.mu.Unlock()
	s.save()
}

// save writes the status under a lock, so that an older status never replaces a newer one.
func (s *Supervisor) save() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.folder.SaveStatus(s.status); err != nil {
		s.log.Print(err)
	}
}

// crash matches the first line of the crash output of a Go program.
var crash = regexp.MustCompile(`^(panic|fatal error|runtime): `)

// Tail returns the last lines of a file, indented, or "" if the file is empty or missing. If the program has crashed, it
// returns the lines starting with the reason instead of the end of a stack trace.
func Tail(path string, lines int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	if all[0] == "" && len(all) == 1 {
		return ""
	}
	from := slices.IndexFunc(all, crash.MatchString)
	if from < 0 {
		from = max(0, len(all)-lines)
	}
	return "  " + strings.Join(all[from:min(from+lines, len(all))], "\n  ")
}

// rotate keeps the log of the previous run, which contains the reason of a crash.
func rotate(path string) error {
	err := os.Rename(path, path+".previous")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("rotating log: %w", err)
	}
	return nil
}
