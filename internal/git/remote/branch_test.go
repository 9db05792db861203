package remote

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSetBranch checks that commits on another branch have the tree of the first branch and the
// history of both.
func TestSetBranch(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.commitElsewhere(t, "main", "a/one.yaml", "1\n")
	r := s.open(t, "main")
	r.SetBranch("flux/change", "")
	commit(t, r, change("First", map[string]string{"a/two.yaml": "2\n"}))
	patch, err := r.Patch()
	if err != nil {
		t.Fatal(err)
	}
	const want = `diff --git a/a/two.yaml b/a/two.yaml
new file mode 100644
index 0000000000000000000000000000000000000000..0cfbf08886fca9a91cb753ec8734c84fcbe52c9f
--- /dev/null
+++ b/a/two.yaml
@@ -0,0 +1 @@
+2
`
	if diff := cmp.Diff(want, patch); diff != "" {
		t.Error(diff)
	}
	push(t, r)
	if diff := cmp.Diff([]string{"Change a/one.yaml"}, s.log(t, "main")); diff != "" {
		t.Error(diff)
	}
	s.commitElsewhere(t, "main", "a/one.yaml", "one\n")
	tip := s.open(t, "flux/change")
	if !tip.BranchExists() {
		t.Fatal("the other branch does not exist")
	}
	r = s.open(t, "main")
	r.SetBranch("flux/change", tip.Head())
	commit(t, r, change("Second", map[string]string{"a/two.yaml": "two\n"}))
	commit(t, r, change("Third", map[string]string{"a/three.yaml": "3\n"}))
	push(t, r)
	if got := run(t, s.folder, "log", "-1", "--format=%P", "flux/change~1"); got != tip.Head()+" "+run(t, s.folder, "rev-parse", "main") {
		t.Errorf("the parents are %s", got)
	}
	if got := run(t, s.folder, "log", "--format=%s", "--first-parent", "flux/change"); got != "Third\nSecond\nFirst\nChange a/one.yaml" {
		t.Errorf("the history is %s", got)
	}
	if got := run(t, s.folder, "diff", "--stat=80", "--summary", "main...flux/change"); got == "" {
		t.Error("the branch does not differ from main")
	}
	if got := run(t, s.folder, "show", "flux/change:a/one.yaml"); got != "one" {
		t.Errorf("the branch lacks files of main: %s", got)
	}
	run(t, s.folder, "fsck", "--strict")
}
