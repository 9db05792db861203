package sites

import (
	"testing"
	"time"
)

// TestPauseAfter checks that only the evaluation of all objects is followed by a long pause.
func TestPauseAfter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		loading    bool
		took, want time.Duration
	}{
		{true, 300 * time.Millisecond, evaluationPause},
		{false, 300 * time.Millisecond, 6 * time.Second},
		{false, time.Millisecond, evaluationPause},
	} {
		if got := pauseAfter(c.loading, c.took); got != c.want {
			t.Errorf("loading %t, took %s: %s, want %s", c.loading, c.took, got, c.want)
		}
	}
}
