package githost

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/testgithost"
)

// faulty is a stand-in that can be made to fail.
type faulty interface {
	Inject(testgithost.Fault)
	State() (string, error)
}

// lostAnswers makes a repository that needs three changes on a host, and hangs
// up on each of them, before and after it was done: the same steps once more,
// by a row that knows nothing of the first, have to end in the wanted state.
func lostAnswers(t *testing.T, want string, open func() (faulty, func() Host)) {
	t.Helper()
	steps := func(row Host) error {
		if _, err := row.Survey(t.Context(), Want{Branch: "main", KeyTitle: "flux"}); err != nil {
			return err
		}
		if _, err := row.Ensure(t.Context()); err != nil {
			return err
		}
		return row.DeployKey(t.Context(), DeployKey{Title: "flux", Public: keyOne})
	}
	for change := 1; change <= 3; change++ {
		for _, late := range []bool{false, true} {
			host, newRow := open()
			host.Inject(func(r testgithost.Request, done bool) bool { return r.Change == change && done == late })
			if err := steps(newRow()); err == nil {
				t.Errorf("change %d: nothing was lost", change)
			}
			host.Inject(nil)
			if err := steps(newRow()); err != nil {
				t.Errorf("change %d, late %t: %v", change, late, err)
			}
			if diff := cmp.Diff(want, state(t, host)); diff != "" {
				t.Errorf("change %d, late %t: %s", change, late, diff)
			}
		}
	}
}
