package mode

import (
	"strings"
	"sync"
	"time"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
)

// progress reports the steps of bootstrap and, with --verbose, their duration.
type progress struct {
	terminal
	app          *app.App
	busy, waited time.Duration
}

// terminal is the subset of ui.Terminal that bootstrap.Progress requires.
type terminal interface {
	Action(format string, args ...any)
	Waiting(format string, args ...any)
	Success(format string, args ...any)
	Warning(format string, args ...any)
}

// reminderInterval is the time between progress messages of a waiting step.
const reminderInterval = 15 * time.Second

// Step implements bootstrap.Progress.
func (p *progress) Step(name string, waits bool) func() {
	start := p.app.Now()
	stop := p.app.UI.Progress(p.app.Now, "%s", name).Done
	if waits && !p.app.UI.Redraws() {
		stop = p.remind(strings.TrimPrefix(name, "wait "), start)
	}
	return func() {
		stop()
		took := p.app.Now().Sub(start)
		label := ""
		if waits {
			p.waited += took
			label = ", waiting"
		} else {
			p.busy += took
		}
		if p.app.Global.Verbose {
			p.app.UI.Line("  %s: %.2fs%s (total %.2fs, plus %.2fs waiting)", name, took.Seconds(), label, p.busy.Seconds(), p.waited.Seconds())
		}
	}
}

// remind reports periodically how long a step has been waiting, until the returned
// function is called.
func (p *progress) remind(what string, start time.Time) func() {
	ticker := time.NewTicker(reminderInterval)
	done := make(chan struct{})
	var reminder sync.WaitGroup
	reminder.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				p.Waiting("still waiting %s (%s)", what, p.app.Now().Sub(start).Round(time.Second))
			}
		}
	})
	return func() {
		ticker.Stop()
		close(done)
		reminder.Wait()
	}
}
