package tree_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// TestWideOnATerminal checks that lines are truncated to the width of the terminal, not counting
// color codes.
func TestWideOnATerminal(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 11, 4, 10, 0, 0, 0, time.UTC)
	restarts := 12
	root := &tree.Node{
		Object: controllers.ID{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "app"},
		Status: tree.Ready, Created: &created, Message: "all is\nwell",
		Children: []*tree.Node{{
			Object: controllers.ID{Kind: "Node", Name: "größe"},
			Status: tree.Failed, Restarts: &restarts, Message: "a message that is far too long for this terminal",
		}},
	}
	var out bytes.Buffer
	style := tree.Style{
		Now: created.Add(90 * time.Minute), Separator: "  ", Width: 60,
		Paint: func(s tree.Status, text string) string { return "<" + string(s) + ">" + text + "</>" },
	}
	if err := tree.Wide(&out, root, style); err != nil {
		t.Fatal(err)
	}
	want := `NAME               STATUS  RESTARTS  AGE  MESSAGE
Deployment/ns/app  <Ready>Ready </>            90m  all is well
└── Node/größe     <Failed>Failed</>  12             a message that is…

`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestMarks checks the marks of all statuses, and that an object without a status has none.
func TestMarks(t *testing.T) {
	t.Parallel()
	root := &tree.Node{Object: controllers.ID{Kind: "Node", Name: "all"}}
	for _, status := range []tree.Status{tree.Ready, tree.Failed, tree.NotFound, tree.InProgress, tree.Terminating, tree.Unknown} {
		root.Children = append(root.Children, &tree.Node{Object: controllers.ID{Kind: "Node", Name: strings.ToLower(string(status))}, Status: status})
	}
	var out bytes.Buffer
	if err := tree.Wide(&out, root, tree.Style{Separator: "  ", Bare: true, Marks: true}); err != nil {
		t.Fatal(err)
	}
	want := `NAME                    STATUS       MESSAGE
Node/all
├── ✔ Node/ready        Ready
├── ✗ Node/failed       Failed
├── ✗ Node/notfound     NotFound
├── ◎ Node/inprogress   InProgress
├── ◎ Node/terminating  Terminating
└── ? Node/unknown      Unknown

`
	got := regexp.MustCompile(` +\n`).ReplaceAllString(out.String(), "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestWideOnANarrowTerminal checks that on a very narrow terminal messages are omitted.
func TestWideOnANarrowTerminal(t *testing.T) {
	t.Parallel()
	root := &tree.Node{Object: controllers.ID{Name: "x", Kind: "Node"}, Status: tree.Ready, Message: "long enough"}
	var out bytes.Buffer
	if err := tree.Wide(&out, root, tree.Style{Separator: "  ", Width: 10}); err != nil {
		t.Fatal(err)
	}
	want := "NAME    STATUS  RESTARTS  AGE\nNode/x  Ready\n\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestWideFolded checks that with Fold, messages are printed in full below their objects, beside
// the branches.
func TestWideFolded(t *testing.T) {
	t.Parallel()
	node := func(name, message string, children ...*tree.Node) *tree.Node {
		return &tree.Node{Object: controllers.ID{Namespace: "apps", Name: name, Kind: "Kustomization"}, Status: tree.Failed, Message: message, Children: children}
	}
	root := node("all", "a message that is far too long for this terminal", node("one", "another one of which there is no end either", node("deep", "short")), node("two", ""))
	var out bytes.Buffer
	if err := tree.Wide(&out, root, tree.Style{Separator: "  ", Width: 50, Bare: true, Fold: true}); err != nil {
		t.Fatal(err)
	}
	want := `NAME                             STATUS  MESSAGE
Kustomization/apps/all           Failed
│    a message that is far too long for this
│    terminal
├── Kustomization/apps/one       Failed
│   │    another one of which there is no end
│   │    either
│   └── Kustomization/apps/deep  Failed  short
└── Kustomization/apps/two       Failed

`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestWideFoldedHeader checks that the header names the column of messages only if a message is in
// it.
func TestWideFoldedHeader(t *testing.T) {
	t.Parallel()
	root := &tree.Node{Object: controllers.ID{Namespace: "apps", Name: "all", Kind: "Kustomization"}, Status: tree.Ready, Message: "Applied revision: main@sha1:3b545be5"}
	var out bytes.Buffer
	if err := tree.Wide(&out, root, tree.Style{Separator: "  ", Width: 44, Bare: true, Fold: true}); err != nil {
		t.Fatal(err)
	}
	want := `NAME                    STATUS
Kustomization/apps/all  Ready
     Applied revision: main@sha1:3b545be5

`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
