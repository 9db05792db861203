package live

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
)

// Filter selects rows.
type Filter struct {
	Text  string
	terms []func(Row, time.Time) bool
}

// ParseFilter parses a filter: words and fields, separated by spaces, all of which must match. A word matches a part of the kind, the
// namespace, the name or the message. Fields are kind:hr, ns:apps, name:web, cluster:prod, ready:false, state:failed, suspended:true, age<1h
// and age>1h.
func ParseFilter(text string) (Filter, error) {
	f := Filter{Text: strings.TrimSpace(text)}
	for _, word := range strings.Fields(strings.ToLower(text)) {
		term, err := parseTerm(word)
		if err != nil {
			return Filter{}, err
		}
		f.terms = append(f.terms, term)
	}
	return f, nil
}

// Matches reports whether a filter selects a row.
func (f Filter) Matches(row Row, now time.Time) bool {
	return !slices.ContainsFunc(f.terms, func(term func(Row, time.Time) bool) bool { return !term(row, now) })
}

func parseTerm(word string) (func(Row, time.Time) bool, error) {
	if i := strings.IndexAny(word, "<>"); i > 0 {
		return parseAge(word[:i], word[i], word[i+1:])
	}
	field, value, ok := strings.Cut(word, ":")
	if !ok {
		return func(r Row, _ time.Time) bool {
			return strings.Contains(strings.ToLower(r.Key.String()+" "+r.Message), word)
		}, nil
	}
	switch field {
	case "kind":
		named := controllers.KindsNamed(value)
		if len(named) == 0 {
			return nil, fmt.Errorf("unknown kind %q", value)
		}
		return func(r Row, _ time.Time) bool {
			return slices.ContainsFunc(named, func(k controllers.Kind) bool { return k.Kind == r.ID.Kind })
		}, nil
	case "ns":
		return func(r Row, _ time.Time) bool { return r.ID.Namespace == value }, nil
	case "name":
		return func(r Row, _ time.Time) bool { return strings.Contains(r.ID.Name, value) }, nil
	case "cluster":
		return func(r Row, _ time.Time) bool { return strings.Contains(strings.ToLower(r.Cluster), value) }, nil
	case "state":
		i := slices.IndexFunc(States(), func(s State) bool { return strings.EqualFold(string(s), value) })
		if i < 0 {
			return nil, fmt.Errorf("unknown state %q: use one of %v", value, States())
		}
		return func(r Row, _ time.Time) bool { return r.State == States()[i] }, nil
	case "ready", "suspended":
		want, err := strconv.ParseBool(value)
		if err != nil {
			return nil, fmt.Errorf("%s:%s: use true or false", field, value)
		}
		return func(r Row, _ time.Time) bool {
			if field == "suspended" {
				return r.Suspended == want
			}
			return (r.Object != nil && r.Kind.IsReady(r.Object)) == want
		}, nil
	}
	return nil, fmt.Errorf("unknown field %q: use kind, ns, name, cluster, ready, state, suspended or age", field)
}

func parseAge(field string, operator byte, value string) (func(Row, time.Time) bool, error) {
	limit, err := time.ParseDuration(value)
	if days, isDays := strings.CutSuffix(value, "d"); isDays {
		var n int
		n, err = strconv.Atoi(days)
		limit = time.Duration(n) * 24 * time.Hour
	}
	switch {
	case field != "age":
		return nil, fmt.Errorf("unknown field %q before %c: use age", field, operator)
	case err != nil:
		return nil, fmt.Errorf("invalid age %q: use a duration such as 90m, 12h or 3d", value)
	}
	return func(r Row, now time.Time) bool {
		age := now.Sub(r.Created)
		return !r.Created.IsZero() && (operator == '<' && age < limit || operator == '>' && age > limit)
	}, nil
}
