package columns

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/client-go/util/jsonpath"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Key is the sort key of an object.
type Key struct {
	absent bool
	number float64
	text   string
}

// Compare sorts objects without a key after the others.
func (k Key) Compare(other Key) int {
	switch {
	case k.absent != other.absent && k.absent:
		return 1
	case k.absent != other.absent:
		return -1
	}
	return cmp.Or(cmp.Compare(k.number, other.number), cmp.Compare(k.text, other.text))
}

// Sorter returns the sort key of an object.
type Sorter func(controllers.Kind, controllers.Object) Key

// Sorter returns the sorter for the name of a column, such as "ready" or
// "last-handled", or for a JSONPath expression as in kubectl.
func (q *Table) Sorter(by string) (Sorter, error) {
	if by == "" {
		return nil, nil
	}
	columns := sortable(q)
	if i := slices.IndexFunc(columns, func(c Column) bool { return columnWord(c.Header) == columnWord(by) }); i >= 0 {
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
	return func(_ controllers.Kind, o controllers.Object) Key { return pathKey(j, o) }, nil
}

// Words returns the names of the columns by which a table can be sorted.
func (q *Table) Words() []string { return columnWords(sortable(q)) }

// sortable returns the columns of the tables of all listed kinds.
func sortable(q *Table) []Column {
	columns := []Column{
		{Header: "NAME", Cell: func(_ controllers.Kind, o controllers.Object) string { return controllers.Name(o) }},
		{Header: "NAMESPACE", Cell: func(_ controllers.Kind, o controllers.Object) string { return controllers.Namespace(o) }},
		readyColumn(), messageColumn(), ageColumn(q), sourceColumn(), handledColumn(q),
	}
	if q.Several {
		columns = append(columns, kindColumn())
	}
	for _, k := range q.Kinds {
		for _, c := range k.Columns {
			if !slices.ContainsFunc(columns, func(there Column) bool { return there.Header == c.Header }) {
				columns = append(columns, ownColumn(c.Header))
			}
		}
	}
	return columns
}

// columnWord returns the name of a column on the command line.
func columnWord(header string) string { return strings.ReplaceAll(strings.ToLower(header), " ", "-") }

func columnWords(columns []Column) []string {
	var words []string
	for _, c := range columns {
		words = append(words, columnWord(c.Header))
	}
	slices.Sort(words)
	return words
}

func (c Column) sorter() Sorter {
	if c.key != nil {
		return c.key
	}
	return func(k controllers.Kind, o controllers.Object) Key {
		text := c.Cell(k, o)
		return Key{absent: text == "", text: text}
	}
}

func pathKey(j *jsonpath.JSONPath, o controllers.Object) Key {
	results, err := j.FindResults(o)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return Key{absent: true}
	}
	v := results[0][0]
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch {
	case !v.IsValid():
		return Key{absent: true}
	case v.CanInt():
		return Key{number: float64(v.Int())}
	case v.CanFloat():
		return Key{number: v.Float()}
	default:
		return Key{text: fmt.Sprint(v.Interface())}
	}
}
