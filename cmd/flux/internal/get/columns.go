package get

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/pkg/controllers"
)

// column is a column of the output.
type column struct {
	header string
	cell   func(controllers.Kind, controllers.Object) string
	// key is the sort key of --sort-by if it is not the text.
	key sorter
}

func columnsOf(q *query, k controllers.Kind) []column {
	if q.flat() {
		return flatColumns(q)
	}
	columns := append(placeColumns(q), nameColumn(q))
	if q.options.showSource {
		columns = append(columns, sourceColumn())
	}
	for _, c := range k.Columns {
		columns = append(columns, column{header: c.Header, cell: c.Cell})
	}
	columns = append(columns, readyColumn())
	if q.wide() {
		columns = append(columns, wideColumns(q, k, columns)...)
	}
	return append(columns, messageColumn())
}

// flatColumns returns the columns of one table for several kinds.
func flatColumns(q *query) []column {
	columns := placeColumns(q)
	if q.hasKind() {
		columns = append(columns, kindColumn())
	}
	columns = append(columns, nameColumn(q), ownColumn("REVISION", "TAG"), suspendedColumn(), readyColumn())
	if q.hasKind() {
		columns = append(columns, ageColumn(q))
	}
	if q.wide() {
		columns = append(columns, sourceColumn(), handledColumn(q), noteColumn())
	}
	return append(columns, messageColumn())
}

func placeColumns(q *query) []column {
	if q.namespace != "" {
		return nil
	}
	return []column{{header: "NAMESPACE", cell: func(_ controllers.Kind, o controllers.Object) string { return controllers.Namespace(o) }}}
}

// nameColumn returns the column NAME, with the kind before the name if several
// kinds have tables of their own.
func nameColumn(q *query) column {
	return column{header: "NAME", cell: func(k controllers.Kind, o controllers.Object) string {
		if q.several && !q.hasKind() {
			return strings.ToLower(k.Kind) + "/" + controllers.Name(o)
		}
		return controllers.Name(o)
	}}
}

// wideColumns returns the columns that -o wide adds between READY and MESSAGE,
// without those that the table has or that do not apply to the kind.
func wideColumns(q *query, k controllers.Kind, there []column) []column {
	columns := []column{ageColumn(q)}
	hasSource := slices.ContainsFunc(there, func(c column) bool { return c.header == "SOURCE" })
	if !hasSource && !k.Webhook && (k.Family != "" || k.Source != nil || len(k.Refs) > 0) {
		columns = append(columns, sourceColumn())
	}
	if k.Has(controllers.Reconcile) || k.Family == "artifact" {
		columns = append(columns, handledColumn(q))
	}
	if k.Webhook {
		columns = append(columns, column{header: "WEBHOOK PATH", cell: func(k controllers.Kind, o controllers.Object) string { return k.Result.String(o) }})
	}
	if k.Suspension.Possible() {
		columns = append(columns, noteColumn())
	}
	return columns
}

// noteColumn returns the column with the reason and the author of a suspension.
func noteColumn() column {
	return column{header: "SUSPEND REASON", cell: func(_ controllers.Kind, o controllers.Object) string {
		return report.OneLine(controllers.SuspensionReason(o))
	}}
}

func kindColumn() column {
	return column{header: "KIND", cell: func(k controllers.Kind, _ controllers.Object) string { return k.Kind }}
}

func readyColumn() column {
	return column{
		header: "READY",
		cell:   func(k controllers.Kind, o controllers.Object) string { return k.Ready(o).Status },
		key: func(k controllers.Kind, o controllers.Object) sortKey {
			return sortKey{number: float64(urgency(k, o))}
		},
	}
}

func messageColumn() column {
	return column{header: "MESSAGE", cell: func(k controllers.Kind, o controllers.Object) string { return report.OneLine(k.Ready(o).Message) }}
}

// ownColumn returns a column that only some kinds have, some under another name.
func ownColumn(header string, others ...string) column {
	return column{header: header, cell: func(k controllers.Kind, o controllers.Object) string {
		for _, c := range k.Columns {
			if c.Header == header || slices.Contains(others, c.Header) {
				return c.Cell(k, o)
			}
		}
		return ""
	}}
}

func suspendedColumn() column {
	return column{header: "SUSPENDED", cell: func(k controllers.Kind, o controllers.Object) string {
		switch {
		case !k.Suspension.Possible():
			return ""
		case k.Suspension.Is(o):
			return "True"
		default:
			return "False"
		}
	}}
}

func sourceColumn() column { return column{header: "SOURCE", cell: sourceText} }

// sourceText returns the source of an object: another object, or an address
// outside the cluster.
func sourceText(k controllers.Kind, o controllers.Object) string {
	sources := k.SourceOf(o)
	if k.Source == nil && len(k.Refs) > 0 && !k.Webhook {
		sources = k.Refs[0].Targets(o)
	}
	if len(sources) > 0 {
		var texts []string
		for _, t := range sources {
			texts = append(texts, t.String())
		}
		return strings.Join(texts, ",")
	}
	if k.Family == "" {
		return "" // the address of a provider may be a secret
	}
	address := controllers.Path{k.Fetch.Address}.String(o)
	if k.Fetch.Bucket != "" {
		address += "/" + controllers.Path{k.Fetch.Bucket}.String(o)
	}
	return redact.Text(address)
}

func ageColumn(q *query) column { return sinceColumn(q, "AGE", "metadata.creationTimestamp") }

func handledColumn(q *query) column {
	return sinceColumn(q, "LAST HANDLED", "status.lastHandledReconcileAt")
}

// sinceColumn returns a column with the age of a time.
func sinceColumn(q *query, header, field string) column {
	since := controllers.Path{field}.String
	return column{
		header: header,
		cell:   func(_ controllers.Kind, o controllers.Object) string { return age(q, since(o)) },
		key:    func(_ controllers.Kind, o controllers.Object) sortKey { return sinceKey(since(o)) },
	}
}

// age returns the age of a time in RFC 3339, in the format of kubectl. Other text
// is returned unchanged: lastHandledReconcileAt may have any value.
func age(q *query, text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	return duration.HumanDuration(q.now().Sub(at))
}

func headers(columns []column) []string {
	var all []string
	for _, c := range columns {
		all = append(all, c.header)
	}
	return all
}

func cells(columns []column, k controllers.Kind, o controllers.Object) []string {
	row := make([]string, len(columns))
	for i, c := range columns {
		row[i] = c.cell(k, o)
	}
	return row
}
