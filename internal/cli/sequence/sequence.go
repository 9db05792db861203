// Package sequence writes the objects of several lists in order while they are
// read.
package sequence

import (
	"errors"
	"fmt"
	"sync"

	"github.com/fluxkit/flux/pkg/controllers"
)

// Sequence writes objects of several lists in the order of the lists while they
// are read, all of them at once: the requests do not wait for each other, and
// no list is held in memory.
type Sequence struct {
	write func(controllers.Object) error
	// ended has a channel for each list that is closed once it and those before
	// it have ended.
	ended []chan struct{}

	mu      sync.Mutex
	Written int
	broken  error
}

// New returns a Sequence of so many lists.
func New(lists int, write func(controllers.Object) error) *Sequence {
	s := &Sequence{write: write}
	for range lists {
		s.ended = append(s.ended, make(chan struct{}))
	}
	return s
}

// ErrCutShort is returned by the lists after one that has broken off.
var ErrCutShort = errors.New("the output ended before")

// Read reads the list of a place in the order. An error after the first object
// ends the output: what follows would hide that something is missing.
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

// Failure is why the output has broken off, nil where it has not.
func (s *Sequence) Failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}
