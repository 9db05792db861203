package paint

import "strings"

// revisionWidth is the minimum width at which the list shows revisions.
const revisionWidth = 110

// Columns are the column widths of the list. Revision is 0 in a narrow terminal.
type Columns struct{ Revision, cluster, name, age, message int }

// ColumnsOf returns the column widths for the width of a terminal. The width of the clusters is 0 for one cluster.
func ColumnsOf(width, cluster int) Columns {
	if cluster > 0 {
		width -= cluster + 1
	}
	c := Columns{cluster: cluster, age: 5}
	if width >= revisionWidth {
		c.Revision = 24
	}
	c.name = min(60, (width-c.age-c.Revision)*45/100)
	c.message = width - c.name - c.age - c.Revision - 3
	if c.Revision == 0 {
		c.message++
	}
	return c
}

// Line returns a line of the list.
func (c Columns) Line(name, cluster, age, revision, message string) string {
	parts := []string{Cell(name, c.name)}
	if c.cluster > 0 {
		parts = append(parts, Cell(cluster, c.cluster))
	}
	parts = append(parts, Cell(age, c.age))
	if c.Revision > 0 {
		parts = append(parts, Cell(revision, c.Revision))
	}
	return strings.Join(append(parts, Cell(message, c.message)), " ")
}
