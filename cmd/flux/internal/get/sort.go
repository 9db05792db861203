package get

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/util/jsonpath"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/controllers"
)

// sortKey is the sort key of an object.
type sortKey struct {
	absent bool
	number float64
	text   string
}

// compare sorts objects without a key after the others.
func (k sortKey) compare(other sortKey) int {
	switch {
	case k.absent != other.absent && k.absent:
		return 1
	case k.absent != other.absent:
		return -1
	}
	return cmp.Or(cmp.Compare(k.number, other.number), cmp.Compare(k.text, other.text))
}

// sorter returns the sort key of an object.
type sorter func(controllers.Kind, controllers.Object) sortKey

// newSorter returns the sorter for the name of a column, such as "ready" or
// "last-handled", or for a JSONPath expression as in kubectl.
func newSorter(q *query, by string) (sorter, error) {
	if by == "" {
		return nil, nil
	}
	columns := sortable(q)
	if i := slices.IndexFunc(columns, func(c column) bool { return columnWord(c.header) == columnWord(by) }); i >= 0 {
		return columns[i].sorter(), nil
	}
	if !strings.ContainsAny(by, ".{[") {
		return nil, hint.Errorf("--sort-by takes "+strings.Join(columnWords(columns), ", ")+", or a JSONPath such as .metadata.creationTimestamp",
			"unknown column %q", by)
	}
	path := strings.TrimPrefix(strings.TrimSuffix(strings.TrimPrefix(by, "{"), "}"), ".")
	j := jsonpath.New("sort-by").AllowMissingKeys(true)
	if err := j.Parse("{." + path + "}"); err != nil {
		return nil, fmt.Errorf("--sort-by %q: %w", by, err)
	}
	return func(_ controllers.Kind, o controllers.Object) sortKey { return pathKey(j, o) }, nil
}

// sortable returns the columns of all tables of the kinds of the query.
func sortable(q *query) []column {
	columns := []column{
		{header: "NAME", cell: func(_ controllers.Kind, o controllers.Object) string { return controllers.Name(o) }},
		{header: "NAMESPACE", cell: func(_ controllers.Kind, o controllers.Object) string { return controllers.Namespace(o) }},
		readyColumn(), messageColumn(), ageColumn(q), sourceColumn(), handledColumn(q),
	}
	if q.several {
		columns = append(columns, kindColumn())
	}
	for _, k := range q.kinds {
		for _, c := range k.Columns {
			if !slices.ContainsFunc(columns, func(there column) bool { return there.header == c.Header }) {
				columns = append(columns, ownColumn(c.Header))
			}
		}
	}
	return columns
}

// columnWord returns the name of a column on the command line.
func columnWord(header string) string { return strings.ReplaceAll(strings.ToLower(header), " ", "-") }

func columnWords(columns []column) []string {
	var words []string
	for _, c := range columns {
		words = append(words, columnWord(c.header))
	}
	slices.Sort(words)
	return words
}

func (c column) sorter() sorter {
	if c.key != nil {
		return c.key
	}
	return func(k controllers.Kind, o controllers.Object) sortKey {
		text := c.cell(k, o)
		return sortKey{absent: text == "", text: text}
	}
}

func pathKey(j *jsonpath.JSONPath, o controllers.Object) sortKey {
	results, err := j.FindResults(o)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return sortKey{absent: true}
	}
	v := results[0][0]
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch {
	case !v.IsValid():
		return sortKey{absent: true}
	case v.CanInt():
		return sortKey{number: float64(v.Int())}
	case v.CanFloat():
		return sortKey{number: v.Float()}
	default:
		return sortKey{text: fmt.Sprint(v.Interface())}
	}
}

// sinceKey returns a key that sorts the most recent time first, as ascending ages.
func sinceKey(text string) sortKey {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return sortKey{absent: text == "", text: text}
	}
	return sortKey{number: -float64(at.UnixNano())}
}

// sort sorts entries by the key. Without a key it sorts one table of several
// kinds by urgency. Equal entries keep the order of the catalog and the server.
func (q *query) sort(entries []entry) {
	switch {
	case q.sorter != nil:
		slices.SortStableFunc(entries, func(a, b entry) int { return a.key.compare(b.key) })
	case q.flat():
		slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.urgency, b.urgency) })
	}
}

// urgency sorts failed objects first, then objects that are not reconciled yet,
// and then objects that are being reconciled.
func urgency(k controllers.Kind, o controllers.Object) int {
	if kinds.Failed(k, o) {
		return 0
	}
	return 1 + slices.Index([]string{"False", "Unknown", "True"}, k.Ready(o).Status)
}
