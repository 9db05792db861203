package bisect

import (
	"errors"
	"slices"
	"testing"
)

// search searches n commits of which all from first on are bad. It fails if a commit is tested twice.
func searched(t *testing.T, n, first int, skipped ...int) bisection {
	t.Helper()
	tested := map[int]bool{}
	r, err := search(n, func(i, left int) (commitState, error) {
		if tested[i] || i <= 0 || i >= n-1 || left <= 0 {
			t.Fatalf("commit %d of %d is tested, with %d left: %v", i, n, left, tested)
		}
		tested[i] = true
		switch {
		case slices.Contains(skipped, i):
			return commitSkipped, nil
		case i >= first:
			return commitBad, nil
		}
		return commitGood, nil
	})
	if err != nil || r.Tested != len(tested) {
		t.Fatalf("%+v %v, tested %d", r, err, len(tested))
	}
	return r
}

// TestSearch finds every commit of histories of all lengths, with as many tests as are announced.
func TestSearch(t *testing.T) {
	t.Parallel()
	for n := 2; n <= 40; n++ {
		for first := 1; first < n; first++ {
			r := searched(t, n, first)
			if r.First != first || r.Good != first-1 || len(r.Candidates) > 0 {
				t.Errorf("%d of %d commits: %+v", first, n, r)
			}
			if steps := steps(n - 2); r.Tested > steps {
				t.Errorf("%d of %d commits: %d tests, announced %d", first, n, r.Tested, steps)
			}
		}
	}
}

// TestSearchSkips names exactly the skipped commits between the last good and the first bad one.
func TestSearchSkips(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		n, first   int
		skipped    []int
		candidates []int
		good       int
		bad        int
	}{
		"the middle":                   {16, 5, []int{7}, nil, 4, 5},
		"the first bad one":            {16, 5, []int{5}, []int{5}, 4, 6},
		"the last good one":            {16, 5, []int{4}, []int{4}, 3, 5},
		"around the first bad one":     {16, 5, []int{3, 4, 5, 6}, []int{3, 4, 5, 6}, 2, 7},
		"far from the first bad one":   {16, 5, []int{1, 2, 9, 10, 11, 12}, nil, 4, 5},
		"all":                          {5, 2, []int{1, 2, 3}, []int{1, 2, 3}, 0, 4},
		"the last one is the only bad": {6, 5, []int{4}, []int{4}, 3, 5},
		"the first one is already bad": {6, 1, []int{2, 3}, nil, 0, 1},
		"nothing between":              {2, 1, nil, nil, 0, 1},
	} {
		r := searched(t, c.n, c.first, c.skipped...)
		if !slices.Equal(r.Candidates, c.candidates) || r.Good != c.good || r.First != c.bad {
			t.Errorf("%s: %+v, want %v between %d and %d", name, r, c.candidates, c.good, c.bad)
		}
	}
}

func TestSearchEndsAtError(t *testing.T) {
	t.Parallel()
	failed := errors.New("interrupted")
	tests := 0
	_, err := search(16, func(int, int) (commitState, error) {
		tests++
		return commitGood, failed
	})
	if !errors.Is(err, failed) || tests != 1 {
		t.Errorf("%v after %d tests", err, tests)
	}
}

func TestSteps(t *testing.T) {
	t.Parallel()
	for left, want := range map[int]int{0: 0, 1: 1, 2: 2, 3: 2, 4: 3, 14: 4, 15: 4, 16: 5} {
		if got := steps(left); got != want {
			t.Errorf("%d commits: %d steps, want %d", left, got, want)
		}
	}
}
