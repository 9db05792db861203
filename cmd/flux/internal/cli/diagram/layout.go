package diagram

import "unicode/utf8"

// place is the upper left corner and the width of a box.
type place struct{ x, y, width int }

// layout places each box in a column to the right of all its predecessors, and in a row beside one
// of them. Arrows in a tree do not cross: each leaf has its own row, and parents are centered
// beside their children.
func (d Diagram) layout() map[string]place {
	next := d.forward()
	columns := d.columns(next)
	first := parents(d.Boxes, next, columns)
	width := map[int]int{}
	for _, box := range d.Boxes {
		letters := max(utf8.RuneCountInString(cut(box.Head)), utf8.RuneCountInString(cut(box.Text)))
		c := columns[box.ID]
		width[c] = max(width[c], int(float64(letters)*letter)+2*padding)
	}
	left := map[int]int{0: margin}
	for c := range len(width) {
		left[c+1] = left[c] + width[c] + columnGap
	}
	at := map[string]place{}
	row := 0
	var put func(id string) int
	put = func(id string) int {
		top, bottom := -1, 0
		for _, child := range next[id] {
			if first[child] != id {
				continue
			}
			y := put(child)
			if top < 0 {
				top = y
			}
			bottom = y
		}
		y := (top + bottom) / 2
		if top < 0 {
			y = headline + margin/2 + row*(boxHeight+rowGap)
			row++
		}
		at[id] = place{left[columns[id]], y, width[columns[id]]}
		return y
	}
	for _, box := range d.Boxes {
		if _, led := first[box.ID]; !led {
			put(box.ID)
		}
	}
	return at
}

// forward returns the outgoing arrows of each box, without the arrows that close a cycle.
func (d Diagram) forward() map[string][]string {
	to, led := map[string][]string{}, map[string]bool{}
	for _, a := range d.Arrows {
		to[a.From], led[a.To] = append(to[a.From], a.To), true
	}
	next := map[string][]string{}
	const under, done = 1, 2
	state := map[string]int{}
	var walk func(id string)
	walk = func(id string) {
		state[id] = under
		for _, child := range to[id] {
			if state[child] == under {
				continue
			}
			next[id] = append(next[id], child)
			if state[child] == 0 {
				walk(child)
			}
		}
		state[id] = done
	}
	for _, inCycles := range []bool{false, true} { // boxes that are only in cycles come last
		for _, box := range d.Boxes {
			if state[box.ID] == 0 && led[box.ID] == inCycles {
				walk(box.ID)
			}
		}
	}
	return next
}

// parents returns the box that each box is placed beside: the first predecessor in the previous
// column.
func parents(boxes []Box, next map[string][]string, columns map[string]int) map[string]string {
	first := map[string]string{}
	for _, box := range boxes {
		for _, child := range next[box.ID] {
			if _, chosen := first[child]; !chosen && columns[child] == columns[box.ID]+1 {
				first[child] = box.ID
			}
		}
	}
	return first
}

// columns returns the length of the longest path to each box.
func (d Diagram) columns(next map[string][]string) map[string]int {
	led := map[string]int{}
	for _, box := range d.Boxes {
		for _, child := range next[box.ID] {
			led[child]++
		}
	}
	var ready []string
	for _, box := range d.Boxes {
		if led[box.ID] == 0 {
			ready = append(ready, box.ID)
		}
	}
	columns := map[string]int{}
	for len(ready) > 0 {
		id := ready[0]
		ready = ready[1:]
		for _, child := range next[id] {
			columns[child] = max(columns[child], columns[id]+1)
			if led[child]--; led[child] == 0 {
				ready = append(ready, child)
			}
		}
	}
	return columns
}
