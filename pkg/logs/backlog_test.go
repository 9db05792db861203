package logs_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxkit/flux/pkg/logs"
)

// mixed returns a log in which one of every given number of lines concerns an object.
func mixed(count, every int, text string) *printing {
	start := time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)
	return &printing{ended: true, count: count, line: func(i int) printed {
		name, at := "other", start.Add(time.Duration(i)*time.Millisecond)
		if i%every == 0 {
			name = "app"
		}
		return printed{at, record("info", "Kustomization", name, "apps", fmt.Sprint(i)+text, at)}
	}}
}

// TestTailCountsMatchingLines checks that the last lines of an object are found anywhere in the
// log, reading no more of the log than necessary.
func TestTailCountsMatchingLines(t *testing.T) {
	t.Parallel()
	app := logs.Filter{Objects: map[string]bool{logs.Key("Kustomization", "apps", "app"): true}}
	for name, c := range map[string]struct {
		count, every int
		tail         int64
		filter       logs.Filter
		breaks       []int
		want         []string
		opened       int
	}{
		"all are shown":              {50, 7, 2, logs.Filter{}, nil, []string{"48", "49"}, 1},
		"near the end":               {500, 7, 3, app, nil, []string{"483", "490", "497"}, 1},
		"beyond the first window":    {9_000, 4_000, 2, app, nil, []string{"4000", "8000"}, 2},
		"fewer than asked for":       {9_000, 4_000, 9, app, nil, []string{"0", "4000", "8000"}, 2},
		"as many as there are":       {9_000, 4_000, 3, app, nil, []string{"0", "4000", "8000"}, 2},
		"none":                       {30, 7, 3, logs.Filter{Name: "gone"}, nil, nil, 1},
		"by level":                   {30, 7, 3, logs.Filter{Level: "error"}, nil, nil, 1},
		"a broken connection":        {500, 7, 3, app, []int{100}, []string{"483", "490", "497"}, 2},
		"more than the first window": {5_000, 2, 2_000, app, nil, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKubelet(t)
			k.breaks["a"] = c.breaks
			k.run("a", "a", mixed(c.count, c.every, ""))
			pods, err := logs.Pods(t.Context(), k.server.Client, "flux-system")
			if err != nil {
				t.Fatal(err)
			}
			o := options(t)
			o.Filter, o.Tail = c.filter, c.tail
			var got []string
			err = logs.Read(t.Context(), k.server.Client, pods, o, func(e *logs.Entry) error {
				got = append(got, e.Message)
				return nil
			})
			if c.want == nil && name == "more than the first window" {
				for i := c.count - 2*int(c.tail); i < c.count; i += 2 {
					c.want = append(c.want, fmt.Sprint(i))
				}
			}
			if err != nil || !slices.Equal(c.want, got) || k.opened["a"] != c.opened {
				t.Errorf("%v, opened %d times, want %d; %d lines, want %d\ngot  %q\nwant %q", err, k.opened["a"], c.opened, len(got), len(c.want), got, c.want)
			}
		})
	}
}

// TestTailIsBounded checks that the newest lines are shown, with a warning, if the lines exceed
// the memory limit.
func TestTailIsBounded(t *testing.T) {
	t.Parallel()
	k := newKubelet(t)
	k.run("a", "a", mixed(30, 1, " "+strings.Repeat("x", 1<<20)))
	pods, err := logs.Pods(t.Context(), k.server.Client, "flux-system")
	if err != nil {
		t.Fatal(err)
	}
	o, warned := options(t), ""
	o.Filter.Name, o.Tail = "app", 20
	o.Warn = func(format string, args ...any) { warned += fmt.Sprintf(format, args...) }
	var got []string
	err = logs.Read(t.Context(), k.server.Client, pods, o, func(e *logs.Entry) error {
		number, _, _ := strings.Cut(e.Message, " ")
		got = append(got, number)
		return nil
	})
	if want := []string{"23", "24", "25", "26", "27", "28", "29"}; err != nil || !slices.Equal(want, got) {
		t.Errorf("%v %q, want %q", err, got, want)
	}
	if !strings.Contains(warned, "showing 7 of the last 20 lines") {
		t.Errorf("warned: %q", warned)
	}
}

// TestFollowTail checks that following continues after the last lines.
func TestFollowTail(t *testing.T) {
	t.Parallel()
	k := newKubelet(t)
	p := mixed(500, 7, "")
	p.ended = false
	k.run("a", "a", p)
	o := options(t)
	o.Filter.Name, o.Tail = "app", 2
	var got []string
	enough := errors.New("enough")
	err := logs.Follow(t.Context(), k.server.Client, "flux-system", o, func(e *logs.Entry) error {
		got = append(got, e.Message)
		switch len(got) {
		case 2:
			k.print("a", record("info", "Kustomization", "other", "apps", "not this", time.Now()), record("info", "Kustomization", "app", "apps", "new", time.Now()))
		case 3:
			return enough
		}
		return nil
	})
	if want := []string{"490", "497", "new"}; !errors.Is(err, enough) || !slices.Equal(want, got) {
		t.Errorf("%v %q, want %q", err, got, want)
	}
}
