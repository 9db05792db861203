// Package rows implements the list of the dashboard, with filter, cursor and marks.
package rows

import (
	"slices"

	"github.com/fluxkit/flux/pkg/live"
)

// List is the list of objects. Its zero value is empty.
type List struct {
	Rows   []live.Row
	Filter live.Filter
	Marks  map[live.Key]bool
	// Cursor is the index of the selected row. Top is the index of the first of Height visible
	// rows.
	Cursor, Top, Height int
	// Moves counts the cursor movements.
	Moves int

	earlier []live.Key
}

// Show sets the rows. The cursor stays on its object, and marks of deleted objects are removed.
func (l *List) Show(s live.Snapshot) {
	at, had := l.Selected()
	clear(l.Rows)                                 // releases the objects
	l.Rows = slices.Grow(l.Rows[:0], len(s.Rows)) // this runs between two keys
	there := make(map[live.Key]bool, len(l.Marks))
	for _, row := range s.Rows {
		if l.Marks[row.Key] {
			there[row.Key] = true
		}
		if l.Filter.Matches(row, s.At) {
			l.Rows = append(l.Rows, row)
		}
	}
	l.Marks = there
	if i := l.index(at.Key); had && i >= 0 && (l.Cursor > 0 || l.Moves > 0) {
		l.Cursor = i
	}
	l.Scroll()
}

func (l *List) index(key live.Key) int {
	return slices.IndexFunc(l.Rows, func(r live.Row) bool { return r.Key == key })
}

// Selected returns the row of the cursor.
func (l *List) Selected() (live.Row, bool) {
	if l.Cursor < 0 || l.Cursor >= len(l.Rows) {
		return live.Row{}, false
	}
	return l.Rows[l.Cursor], true
}

// Scroll scrolls until the cursor is visible.
func (l *List) Scroll() {
	l.Cursor = max(0, min(l.Cursor, len(l.Rows)-1))
	l.Top = max(0, min(l.Top, l.Cursor, len(l.Rows)-1), l.Cursor-l.Height+1)
}

// Move moves the cursor if the key is a movement, and reports whether it is.
func (l *List) Move(key string) bool {
	steps := map[string]int{
		"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -l.Height, "ctrl+b": -l.Height, "pgdown": l.Height, "ctrl+f": l.Height,
		"home": -len(l.Rows), "g": -len(l.Rows), "end": len(l.Rows), "G": len(l.Rows),
	}
	step, is := steps[key]
	if is {
		l.Moves++
		l.Cursor += step
		l.Scroll()
	}
	return is
}

// Mark marks an object for an action, or removes the mark.
func (l *List) Mark(key live.Key) {
	if l.Marks[key] {
		delete(l.Marks, key)
	} else {
		l.Marks[key] = true
	}
}

// Jump moves the cursor to an object, and clears a filter that hides it. It reports whether the object is in the list.
func (l *List) Jump(s live.Snapshot, key live.Key) bool {
	if !slices.ContainsFunc(s.Rows, func(r live.Row) bool { return r.Key == key }) {
		return false
	}
	if row, ok := l.Selected(); ok && row.Key != key {
		l.earlier = append(l.earlier, row.Key)
	}
	if l.index(key) < 0 {
		l.Filter = live.Filter{}
		l.Show(s)
	}
	l.Moves++
	l.Cursor = l.index(key)
	l.Scroll()
	return true
}

// Back moves the cursor to the object before the last jump.
func (l *List) Back() bool {
	for len(l.earlier) > 0 {
		last := len(l.earlier) - 1
		i := l.index(l.earlier[last])
		l.earlier = l.earlier[:last]
		if i >= 0 {
			l.Moves++
			l.Cursor = i
			l.Scroll()
			return true
		}
	}
	return false
}

// Targets returns the marked rows, or else the selected one.
func (l *List) Targets(s live.Snapshot) []live.Row {
	var rows []live.Row
	for _, row := range s.Rows {
		if l.Marks[row.Key] {
			rows = append(rows, row)
		}
	}
	if row, ok := l.Selected(); ok && len(rows) == 0 {
		rows = append(rows, row)
	}
	return rows
}
