package sequence

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/controllers"
)

func TestSequenceKeepsTheOrderOfTheLists(t *testing.T) {
	t.Parallel()
	var got []string
	s := New(3, func(o controllers.Object) error {
		got = append(got, o["name"].(string))
		return nil
	})
	started := make(chan struct{})
	done := make(chan error, 3)
	lists := [][]string{{"a", "b"}, nil, {"c", "d"}}
	for i := len(lists) - 1; i >= 0; i-- { // the last one answers first
		go func() {
			done <- s.Read(i, func(each func(controllers.Object) error) error {
				if i > 0 {
					started <- struct{}{}
				} else {
					<-started
					<-started
				}
				for _, name := range lists[i] {
					if err := each(controllers.Object{"name": name}); err != nil {
						return err
					}
				}
				return nil
			})
		}()
	}
	for range lists {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestSequenceEndsWithAListThatBreaksOff checks that nothing is written after a list that is cut
// off, and that a refused list does not keep the others from being written.
func TestSequenceEndsWithAListThatBreaksOff(t *testing.T) {
	t.Parallel()
	var got []string
	s := New(3, func(o controllers.Object) error {
		got = append(got, o["name"].(string))
		return nil
	})
	one := func(name string, err error) func(func(controllers.Object) error) error {
		return func(each func(controllers.Object) error) error {
			if name == "" {
				return err
			}
			return errors.Join(each(controllers.Object{"name": name}), err)
		}
	}
	refused, broken := errors.New("refused"), errors.New("connection reset")
	if err := s.Read(0, one("", refused)); !errors.Is(err, refused) || s.Failure() != nil {
		t.Errorf("a refused list: %v, %v", err, s.Failure())
	}
	if err := s.Read(1, one("a", broken)); !strings.HasSuffix(err.Error(), "connection reset: the output is incomplete") {
		t.Error(err)
	}
	if err := s.Read(2, one("b", nil)); !errors.Is(err, ErrCutShort) {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"a"}, got); diff != "" || !errors.Is(s.Failure(), broken) {
		t.Error(diff, s.Failure())
	}
}
