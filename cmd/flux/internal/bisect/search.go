package bisect

// commitState is the result of testing a commit.
type commitState int

// A skipped commit could not be tested.
const (
	commitGood commitState = iota
	commitBad
	commitSkipped
)

// bisection is the result of a search.
type bisection struct {
	// First is the index of the first bad commit, and Good the index of the last good one.
	First, Good int
	// Candidates are the skipped commits between Good and First, each of which may be the first bad
	// one. Without candidates, First is the first bad commit.
	Candidates []int
	// Tested is the number of tests.
	Tested int
}

// search bisects n commits: the first one is good, the last one is bad. If a commit is skipped, search tests
// the nearest untested one instead. It returns the error of a failed test.
func search(n int, test func(i, left int) (commitState, error)) (bisection, error) {
	r := bisection{First: n - 1}
	skipped := map[int]bool{}
	for {
		i, ok := nearest(r.Good, r.First, skipped)
		if !ok {
			break
		}
		verdict, err := test(i, r.First-r.Good-1)
		if err != nil {
			return r, err
		}
		r.Tested++
		switch verdict {
		case commitGood:
			r.Good = i
		case commitBad:
			r.First = i
		default:
			skipped[i] = true
		}
	}
	for i := r.Good + 1; i < r.First; i++ {
		r.Candidates = append(r.Candidates, i)
	}
	return r, nil
}

// nearest returns the index between good and bad that is nearest to the middle and not skipped.
func nearest(good, bad int, skipped map[int]bool) (int, bool) {
	middle := good + (bad-good)/2
	for distance := range bad - good {
		for _, i := range []int{middle - distance, middle + distance} {
			if i > good && i < bad && !skipped[i] {
				return i, true
			}
		}
	}
	return 0, false
}

// steps returns the number of tests required to bisect the untested commits if none is skipped.
func steps(left int) int {
	steps := 0
	for ; left > 0; left /= 2 {
		steps++
	}
	return steps
}
