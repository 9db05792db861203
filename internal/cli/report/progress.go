package report

import (
	"fmt"
	"sync"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/internal/ui"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/reconcile"
)

// manyStates is the number of objects from which on only failures are printed
// where nothing can be redrawn: of hundreds, every step would be noise.
const manyStates = 20

// Progress shows what objects say of themselves while they are waited for: on a
// terminal as one line that changes, elsewhere as a line for each new state.
type Progress struct {
	app  *app.App
	line *ui.Progress
	// what says what objects are when they are done.
	what        string
	total, done int

	mu     sync.Mutex
	said   map[string]bool
	latest map[string]string
	last   string
}

// NewProgress returns the progress of so many objects.
func NewProgress(a *app.App, total int, what string) *Progress {
	s := &Progress{app: a, what: what, total: total, said: map[string]bool{}, latest: map[string]string{}}
	s.line = a.UI.Progress(a.Now, "waiting")
	return s
}

// Update shows a state of an object, each once.
func (s *Progress) Update(subject reconcile.Subject, o controllers.Object, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := subject.String()
	text = redact.Text(OneLine(text))
	s.latest[id], s.last = text, id
	s.show()
	line := id + ": " + text
	if s.app.UI.Redraws() || s.said[line] {
		return
	}
	s.said[line] = true
	if s.total < manyStates || subject.Kind.Ready(o).Reason != "" && subject.Kind.Ready(o).Status == "False" && !subject.Kind.Pending(o) {
		s.app.UI.Waiting("%s", line)
	}
}

// Done says that an object is not waited for any more.
func (s *Progress) Done(subject reconcile.Subject) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done++
	delete(s.latest, subject.String())
	s.show()
}

// show brings the line up to date: with the last state that was told, or with
// one of another object where that is done.
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
		prefix = fmt.Sprintf("%d of %d %s; ", s.done, max(s.total, s.done), s.what)
	}
	if ok {
		s.line.Set("%s%s: %s", prefix, s.last, text)
	} else {
		s.line.Set("%swaiting", prefix)
	}
}

// Close ends the line.
func (s *Progress) Close() { s.line.Done() }
