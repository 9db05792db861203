package report

import (
	"fmt"
	"sync"
	"time"

	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/ui"
	"github.com/fluxkit/flux/pkg/controllers"
)

// manyStates is the number of objects above which only failures are printed if the line cannot be
// redrawn.
const manyStates = 20

// Progress shows the states of awaited objects: in a single redrawn line on a terminal, else in one
// line per new state.
type Progress struct {
	ui   *ui.Terminal
	line *ui.Progress
	// goal is the state of finished objects, e.g. "reconciled".
	goal        string
	total, done int

	mu      sync.Mutex
	printed map[string]bool
	// latest contains the states by object, last is the object that the line shows.
	latest map[string]string
	last   string
}

// NewProgress returns the progress for total objects. goal is the state of finished objects, e.g.
// "reconciled".
func NewProgress(terminal *ui.Terminal, now func() time.Time, total int, goal string) *Progress {
	return &Progress{
		ui: terminal, line: terminal.Progress(now, "waiting"), goal: goal, total: total,
		printed: map[string]bool{}, latest: map[string]string{},
	}
}

// Update shows the state of an object unless it was shown before.
func (s *Progress) Update(subject objref.Target, o controllers.Object, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := subject.Named().String()
	text = redact.Text(OneLine(text))
	s.latest[id], s.last = text, id
	s.show()
	line := id + ": " + text
	if s.ui.Redraws() || s.printed[line] {
		return
	}
	s.printed[line] = true
	if s.total < manyStates || subject.Kind.Ready(o).Reason != "" && subject.Kind.Ready(o).Status == "False" && !subject.Kind.Pending(o) {
		s.ui.Waiting("%s", line)
	}
}

// Done counts an object as finished.
func (s *Progress) Done(subject objref.Target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done++
	delete(s.latest, subject.Named().String())
	s.show()
}

// show redraws the line with the last state, or with the state of another object
// if that object is finished.
func (s *Progress) show() {
	text, ok := s.latest[s.last]
	for id, other := range s.latest {
		if ok {
			break
		}
		s.last, text, ok = id, other, true
	}
	prefix := ""
	if s.total > 1 {
		prefix = fmt.Sprintf("%d of %d %s; ", s.done, max(s.total, s.done), s.goal)
	}
	if ok {
		s.line.Set("%s%s: %s", prefix, s.last, text)
	} else {
		s.line.Set("%swaiting", prefix)
	}
}

// Close removes the line.
func (s *Progress) Close() { s.line.Done() }
