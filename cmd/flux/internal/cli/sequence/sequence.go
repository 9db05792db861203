// Package sequence writes the objects of several lists in order while they are
// read.
package sequence

import (
	"errors"
	"fmt"
	"sync"

	"github.com/fluxkit/flux/pkg/controllers"
)

// Sequence writes the objects of several lists in the order of the lists. The
// lists are requested concurrently, and no list is kept in memory.
type Sequence struct {
	write func(controllers.Object) error
	// ended has a channel for each list, which is closed when the list and all
	// lists before it have ended.
	ended []chan struct{}

	mu sync.Mutex
	// Written is the number of written objects.
	Written int
	broken  error
}

// New returns a Sequence of a number of lists.
func New(lists int, write func(controllers.Object) error) *Sequence {
	s := &Sequence{write: write}
	for range lists {
		s.ended = append(s.ended, make(chan struct{}))
	}
	return s
}

// ErrCutShort is returned for the lists after an incomplete list.
var ErrCutShort = errors.New("an earlier list is incomplete")

// Read reads the list at a place in the order. An error after the first object of
// a list ends the output, so that an incomplete list is noticed.
func (s *Sequence) Read(place int, list func(each func(controllers.Object) error) error) error {
	mine := 0
	err := list(func(o controllers.Object) error {
		s.await(place)
		if mine++; s.Failure() != nil {
			return ErrCutShort
		}
		return s.add(o)
	})
	s.await(place)
	defer close(s.ended[place])
	if err != nil && mine > 0 && !errors.Is(err, ErrCutShort) {
		err = fmt.Errorf("%w: the output is incomplete", err)
		s.mu.Lock()
		s.broken = err
		s.mu.Unlock()
	}
	return err
}

func (s *Sequence) await(place int) {
	if place > 0 {
		<-s.ended[place-1]
	}
}

func (s *Sequence) add(o controllers.Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Written++
	return s.write(o)
}

// Failure returns the error that ended the output, or nil.
func (s *Sequence) Failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}
