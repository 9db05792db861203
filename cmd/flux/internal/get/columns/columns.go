// Package columns has the table columns of flux get and sorts by them.
package columns

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Table describes the table of a query.
type Table struct {
	Kinds []controllers.Kind
	// Several is set if several kinds are listed, Flat if they share one table, and Kind if that table has a
	// kind column. Otherwise, names contain the kind.
	Several, Flat, Kind bool
	// Namespaces, Source and Wide add columns.
	Namespaces, Source, Wide bool
	Now                      func() time.Time
}

// Column is a column of the output.
type Column struct {
	Header string
	Cell   func(controllers.Kind, controllers.Object) string
	// key is the sort key of --sort-by if it is not the text.
	key Sorter
}

// Of returns the columns of a kind.
func (q *Table) Of(k controllers.Kind) []Column {
	if q.Flat {
		return flatColumns(q)
	}
	columns := append(placeColumns(q), nameColumn(q))
	if q.Source {
		columns = append(columns, sourceColumn())
	}
	for _, c := range k.Columns {
		columns = append(columns, Column{Header: c.Header, Cell: c.Cell})
	}
	columns = append(columns, readyColumn())
	if q.Wide {
		columns = append(columns, wideColumns(q, k, columns)...)
	}
	return append(columns, messageColumn())
}

// flatColumns returns the columns of one table for several kinds.
func flatColumns(q *Table) []Column {
	columns := placeColumns(q)
	if q.Kind {
		columns = append(columns, kindColumn())
	}
	columns = append(columns, nameColumn(q), ownColumn("REVISION", "TAG"), suspendedColumn(), readyColumn())
	if q.Kind {
		columns = append(columns, ageColumn(q))
	}
	if q.Wide {
		columns = append(columns, sourceColumn(), handledColumn(q), noteColumn())
	}
	return append(columns, messageColumn())
}

func placeColumns(q *Table) []Column {
	if !q.Namespaces {
		return nil
	}
	return []Column{{Header: "NAMESPACE", Cell: func(_ controllers.Kind, o controllers.Object) string { return controllers.Namespace(o) }}}
}

// nameColumn returns the column NAME. Names are prefixed with the kind if several kinds have
// separate tables.
func nameColumn(q *Table) Column {
	return Column{Header: "NAME", Cell: func(k controllers.Kind, o controllers.Object) string {
		if q.Several && !q.Kind {
			return strings.ToLower(k.Kind) + "/" + controllers.Name(o)
		}
		return controllers.Name(o)
	}}
}

// wideColumns returns the columns that -o wide adds between READY and MESSAGE, except existing ones
// and those that do not apply to the kind.
func wideColumns(q *Table, k controllers.Kind, there []Column) []Column {
	columns := []Column{ageColumn(q)}
	hasSource := slices.ContainsFunc(there, func(c Column) bool { return c.Header == "SOURCE" })
	if !hasSource && !k.Webhook && (k.Family != "" || k.Source != nil || len(k.Refs) > 0) {
		columns = append(columns, sourceColumn())
	}
	if k.Has(controllers.Reconcile) || k.Family == "artifact" {
		columns = append(columns, handledColumn(q))
	}
	if k.Webhook {
		columns = append(columns, Column{Header: "WEBHOOK PATH", Cell: func(k controllers.Kind, o controllers.Object) string { return k.Result.String(o) }})
	}
	if k.Suspension.Possible() {
		columns = append(columns, noteColumn())
	}
	return columns
}

// noteColumn returns the column with the reason and the author of a suspension.
func noteColumn() Column {
	return Column{Header: "SUSPEND REASON", Cell: func(_ controllers.Kind, o controllers.Object) string {
		return report.OneLine(controllers.SuspensionReason(o))
	}}
}

func kindColumn() Column {
	return Column{Header: "KIND", Cell: func(k controllers.Kind, _ controllers.Object) string { return k.Kind }}
}

func readyColumn() Column {
	return Column{
		Header: "READY",
		Cell:   func(k controllers.Kind, o controllers.Object) string { return k.Ready(o).Status },
		key: func(k controllers.Kind, o controllers.Object) Key {
			return Key{number: float64(Urgency(k, o))}
		},
	}
}

func messageColumn() Column {
	return Column{Header: "MESSAGE", Cell: func(k controllers.Kind, o controllers.Object) string { return report.OneLine(k.Ready(o).Message) }}
}

// ownColumn returns a column that only some kinds have, some under another name.
func ownColumn(header string, others ...string) Column {
	return Column{Header: header, Cell: func(k controllers.Kind, o controllers.Object) string {
		for _, c := range k.Columns {
			if c.Header == header || slices.Contains(others, c.Header) {
				return c.Cell(k, o)
			}
		}
		return ""
	}}
}

func suspendedColumn() Column {
	return Column{Header: "SUSPENDED", Cell: func(k controllers.Kind, o controllers.Object) string {
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

func sourceColumn() Column { return Column{Header: "SOURCE", Cell: sourceText} }

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

func ageColumn(q *Table) Column { return sinceColumn(q, "AGE", "metadata.creationTimestamp") }

func handledColumn(q *Table) Column {
	return sinceColumn(q, "LAST HANDLED", "status.lastHandledReconcileAt")
}

// sinceColumn returns a column with ages.
func sinceColumn(q *Table, header, field string) Column {
	since := controllers.Path{field}.String
	return Column{
		Header: header,
		Cell:   func(_ controllers.Kind, o controllers.Object) string { return age(q, since(o)) },
		key:    func(_ controllers.Kind, o controllers.Object) Key { return sinceKey(since(o)) },
	}
}

// age returns the age of a time in RFC 3339, in the format of kubectl. Other text
// is returned unchanged: lastHandledReconcileAt may have any value.
func age(q *Table, text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	return duration.HumanDuration(q.Now().Sub(at))
}

// Headers returns the headers of columns.
func Headers(columns []Column) []string {
	var all []string
	for _, c := range columns {
		all = append(all, c.Header)
	}
	return all
}

// Cells returns the cells of an object.
func Cells(columns []Column, k controllers.Kind, o controllers.Object) []string {
	row := make([]string, len(columns))
	for i, c := range columns {
		row[i] = c.Cell(k, o)
	}
	return row
}

// sinceKey returns a key that sorts the most recent time first, as ascending ages.
func sinceKey(text string) Key {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return Key{absent: text == "", text: text}
	}
	return Key{number: -float64(at.UnixNano())}
}

// Urgency sorts failed objects first, then objects that are not reconciled yet,
// and then objects that are being reconciled.
func Urgency(k controllers.Kind, o controllers.Object) int {
	if kinds.Failed(k, o) {
		return 0
	}
	return 1 + slices.Index([]string{"False", "Unknown", "True"}, k.Ready(o).Status)
}
