package main

import (
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/controllers"
)

func TestSequenceKeepsTheOrderOfTheLists(t *testing.T) {
	t.Parallel()
	var got []string
	s := newSequence(3, func(o controllers.Object) error {
		got = append(got, o["name"].(string))
		return nil
	})
	started := make(chan struct{})
	done := make(chan error, 3)
	lists := [][]string{{"a", "b"}, nil, {"c", "d"}}
	for i := len(lists) - 1; i >= 0; i-- { // the last one answers first
		go func() {
			done <- s.read(i, func(each func(controllers.Object) error) error {
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

// What follows a list that breaks off is not written; a list that is refused
// does not keep the others from being written.
func TestSequenceEndsWithAListThatBreaksOff(t *testing.T) {
	t.Parallel()
	var got []string
	s := newSequence(3, func(o controllers.Object) error {
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
	if err := s.read(0, one("", refused)); !errors.Is(err, refused) || s.failure() != nil {
		t.Errorf("a refused list: %v, %v", err, s.failure())
	}
	if err := s.read(1, one("a", broken)); !strings.HasSuffix(err.Error(), "connection reset: the output is incomplete") {
		t.Error(err)
	}
	if err := s.read(2, one("b", nil)); !errors.Is(err, errCutShort) {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"a"}, got); diff != "" || !errors.Is(s.failure(), broken) {
		t.Error(diff, s.failure())
	}
}

// A list that breaks off fails, says so, and leaves nothing that reads as whole.
func TestListsThatBreakOff(t *testing.T) {
	t.Parallel()
	s := fake(t)
	for _, k := range controllers.Kinds {
		s.Handle("GET "+fleetPath(k), func(w http.ResponseWriter, _ *http.Request) {
			text := `{"metadata":{},"items":[]}`
			if k.Kind == "Kustomization" {
				text = `{"metadata":{},"items":[{"metadata":{"name":"app","namespace":"apps"}},{"metadata":{"name":`
			}
			_, _ = io.WriteString(w, text)
		})
	}
	for _, line := range []string{
		"get ks -A -o json", "get ks -A -o yaml", "get all -A -o json", "export ks -A", "export ks -A -o json", "export all -A",
	} {
		got := flux(t.Context(), s, strings.Fields(line)...)
		said := regexp.MustCompile(`^✗ reading the list of kustomizations: .*unexpected EOF.*: the output is incomplete\n$`).MatchString(got.Err)
		if got.Code != exitFailed || !said || strings.Contains(got.Out, "kind: List") || strings.Contains(got.Out, `"kind": "List"`) {
			t.Errorf("flux %s: %+v", line, got)
		}
	}
}
