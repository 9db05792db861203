package rows

import "errors"

// Picker is a short list of revisions, newest first, of which two are picked.
type Picker struct {
	Items  []string
	Cursor int
	Marks  map[int]bool
}

// Move moves the cursor.
func (p *Picker) Move(step int) { p.Cursor = max(0, min(len(p.Items)-1, p.Cursor+step)) }

// Mark marks the selected item, or removes the mark.
func (p *Picker) Mark() { p.Marks[p.Cursor] = !p.Marks[p.Cursor] }

// Lines returns a line for each item, with the cursor and the marks.
func (p *Picker) Lines() []string {
	var lines []string
	for i, item := range p.Items {
		cursor, mark := "  ", "  "
		if i == p.Cursor {
			cursor = "> "
		}
		if p.Marks[i] {
			mark = "● "
		}
		lines = append(lines, cursor+mark+item)
	}
	return lines
}

// Pair returns the indexes of two marked items, or of the selected item and the one after it.
func (p *Picker) Pair() (older, newer int, err error) {
	var marked []int
	for i := range p.Items {
		if p.Marks[i] {
			marked = append(marked, i)
		}
	}
	if len(marked) == 0 {
		marked = []int{p.Cursor, p.Cursor + 1}
	}
	if len(marked) != 2 || marked[1] == len(p.Items) {
		return 0, 0, errors.New("mark two revisions, or select one that has a previous revision")
	}
	return marked[1], marked[0], nil
}
