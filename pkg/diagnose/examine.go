package diagnose

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/artifact"
	"github.com/fluxkit/flux/pkg/build"
)

// eventsShown is how many events of a root are shown.
const eventsShown = 3

// examine asks about the root of a case what only further requests tell: the
// pods that are not ready, the file that is at fault, the last events. What
// cannot be had is left out: the case stands without it.
func (s *snapshot) examine(ctx context.Context, c *Case) {
	root := &c.Root
	o, ofFlux := s.objects[root.Object]
	if !ofFlux {
		c.settle()
		return
	}
	k := s.kindOf(root.Object)
	sub := newSubject(k, o)
	if said := spoken(sub.ready); sub.ready.Status != "True" && sub.ready.Reason != "" && !strings.Contains(root.Message, oneLine(sub.ready.Message)) {
		root.Details = append(root.Details, said)
	}
	if s.asksPods(sub, root.Code) && s.pods(ctx, root, sub) {
		c.settle() // pods say more than events, which only say that they were waited for
		return
	}
	if root.Code == "api-missing" {
		s.file(ctx, root, sub)
	}
	events, err := Events(ctx, s.Client, root.Object.Kind, root.Object.Namespace, root.Object.Name, eventsShown)
	if err != nil {
		events = nil
	}
	message := timeless(oneLine(sub.ready.Message))
	told := timeless(spoken(sub.ready) + "\n" + strings.Join(root.Details, "\n"))
	for _, e := range events {
		text := timeless(e.Text)
		if e.Type == "Warning" && !strings.Contains(told, text) && (message == "" || !strings.Contains(text, message)) {
			root.Details = append(root.Details, fmt.Sprintf("event %s: %s", e.At.UTC().Format("15:04:05"), e.Text))
			told += "\n" + text
		}
	}
	c.settle()
}

// timeless is a message without the durations in it, in which two of the same
// failure differ.
func timeless(message string) string {
	return regexp.MustCompile(`\b[0-9][0-9.]*(ms|µs|s)\b`).ReplaceAllString(message, "")
}

// settle makes the end of the chain what the root has become.
func (c *Case) settle() { c.Chain[len(c.Chain)-1] = c.Root }

// asksPods tells whether what the object has applied may be at fault.
func (s *snapshot) asksPods(sub subject, code string) bool {
	if !slices.Contains(appliers, sub.kind.Kind) {
		return false
	}
	return slices.Contains([]string{"not-ready", "progressing", "retries-exhausted"}, code)
}

// pods looks for workloads of the object that are not ready, and names the
// first as the cause; false says that there is none.
func (s *snapshot) pods(ctx context.Context, root *Finding, sub subject) bool {
	troubles := Workloads(ctx, s.Client, sub.kind.Managed(sub.object))
	for i, trouble := range troubles {
		line := trouble.Name + ": " + trouble.Message
		if i == 0 && root.Code != "retries-exhausted" {
			root.Code, root.Message = "health", line
			root.Remedies = []string{"mend the workload in the source, and push", sub.again()}
		} else {
			root.Details = append(root.Details, line)
		}
		if i == 0 {
			root.Details = append(root.Details, trouble.Details()...)
		}
	}
	return len(troubles) > 0
}

// file names the file with an API version that the cluster does not serve, out
// of what the source has fetched.
func (s *snapshot) file(ctx context.Context, root *Finding, sub subject) {
	sources := sub.kind.SourceOf(sub.object)
	if len(sources) != 1 {
		return
	}
	a, ok := artifact.Of(s.objects[key(sources[0])])
	if !ok {
		return
	}
	archive, err := artifact.Fetch(ctx, s.Client, a, s.Home)
	if err != nil {
		return
	}
	files, err := build.Archive(strings.NewReader(string(archive)))
	if err != nil {
		return
	}
	served := servedNot(sub.ready.Message)
	kind, version, _ := strings.Cut(served, " in version ")
	found, err := build.Search(ctx, files, []string{kind, version}, func(u *unstructured.Unstructured) bool {
		return u.GetKind() == kind && u.GetAPIVersion() == version
	})
	if err != nil || len(found) == 0 {
		return
	}
	var names []string
	for _, m := range found {
		if !slices.Contains(names, m.File) {
			names = append(names, m.File)
		}
	}
	root.Message += ", which is used in " + strings.Join(names, ", ")
	folder := names[0]
	if i := strings.LastIndexByte(folder, '/'); i > 0 {
		folder = folder[:i]
	}
	root.Remedies = append([]string{"flux migrate -f " + folder + " rewrites old versions of Flux's own kinds; of other kinds, change apiVersion by hand"},
		root.Remedies[len(root.Remedies)-1])
}
