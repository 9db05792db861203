package get

import (
	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/sequence"
	"github.com/fluxkit/flux/internal/terminal/output"
)

// objectStream prints the objects of a list while it is read.
type objectStream struct {
	*sequence.Sequence
	list *output.ListWriter
}

// streamOf returns the stream of a query whose objects can be printed one by one,
// else nil: templates, columns and --sort-by require all of them.
func streamOf(a *app.App, q *query) *objectStream {
	list, ok := output.NewListWriter(a.Output(q.options.format), q.options.format)
	if !ok || q.sorter != nil || q.single() {
		return nil
	}
	return &objectStream{sequence.New(len(q.kinds), list.Add), list}
}

// single reports whether the query names one object, which is not printed as a list.
func (q *query) single() bool { return !q.several && len(q.objects) == 1 && q.namespace != "" }

// close writes the end of the list.
func (s *objectStream) close() error { return s.list.Close() }
