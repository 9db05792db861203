package tree

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/fluxkit/flux/internal/terminal/fit"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/internal/terminal/printable"
)

// Text prints one line for each object and a trailing blank line.
func Text(w io.Writer, root *Node) error {
	out := bufio.NewWriter(w)
	for _, l := range lines(root) {
		out.WriteString(l.branch + printable.Line(l.node.Object.String()) + "\n")
	}
	out.WriteString("\n")
	return out.Flush()
}

// JSON prints the nodes as JSON.
func JSON(w io.Writer, root *Node) error { return printJSON(w, root) }

// YAML prints the nodes as YAML with a trailing blank line.
func YAML(w io.Writer, root *Node) error { return printYAML(w, root) }

// recordedObject is an ID with the JSON fields of Flux 2.9.
type recordedObject struct {
	Namespace string
	Name      string
	GroupKind schema.GroupKind
}

// recordedNode is a node with the JSON fields of Flux 2.9, for compatibility.
type recordedNode struct {
	Object   recordedObject  `json:"resource"`
	Status   Status          `json:"status,omitempty"`
	Message  string          `json:"message,omitempty"`
	Restarts *int            `json:"restarts,omitempty"`
	Created  *time.Time      `json:"createdAt,omitempty"`
	Children []*recordedNode `json:"resources,omitempty"`
}

func recorded(n *Node) *recordedNode {
	r := &recordedNode{Object: recordedObject{n.Object.Namespace, n.Object.Name, n.Object.GroupKind()}, Status: n.Status, Message: n.Message, Restarts: n.Restarts, Created: n.Created}
	for _, child := range n.Children {
		r.Children = append(r.Children, recorded(child))
	}
	return r
}

// InventoryJSON prints the nodes as JSON with the fields of Flux 2.9.
func InventoryJSON(w io.Writer, root *Node) error { return printJSON(w, recorded(root)) }

// InventoryYAML prints the nodes as YAML with the fields of Flux 2.9 and a
// trailing blank line.
func InventoryYAML(w io.Writer, root *Node) error { return printYAML(w, recorded(root)) }

func printJSON(w io.Writer, root any) error {
	data, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the tree: %w", err)
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

func printYAML(w io.Writer, root any) error {
	data, err := output.YAML(root)
	if err != nil {
		return fmt.Errorf("encoding the tree: %w", err)
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

// Style is the format of Wide.
type Style struct {
	// Now is the reference time for ages.
	Now time.Time
	// Separator follows every cell.
	Separator string
	// Width is the line width to which messages are truncated, 0 for no limit.
	Width int
	// Fold wraps messages that exceed Width, and prints them below the object's line.
	Fold bool
	// Bare omits restarts and age.
	Bare bool
	// Marks prints the status mark before each object.
	Marks bool
	// Paint colors a padded cell by the status of its line, or is nil.
	Paint func(Status, string) string
}

// Wide prints the tree with status, restarts and age of every object, and a
// trailing blank line.
func Wide(w io.Writer, root *Node, style Style) error { return Table(w, []*Node{root}, style) }

// Table prints several trees with one header, in the format of Wide.
func Table(w io.Writer, roots []*Node, style Style) error {
	rows := [][]string{{"NAME", "STATUS", "RESTARTS", "AGE", "MESSAGE"}}
	statuses, under := []Status{""}, []string{""}
	for _, root := range roots {
		for _, l := range lines(root) {
			name := printable.Line(l.node.Object.String())
			if mark := l.node.Status.Mark(); style.Marks && mark != "" {
				name = mark + " " + name
			}
			rows = append(rows, append([]string{l.branch + name}, style.cells(l.node)...))
			statuses, under = append(statuses, l.node.Status), append(under, l.under)
		}
	}
	if style.Bare {
		for i, row := range rows {
			rows[i] = slices.Delete(row, 2, 4)
		}
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], fit.Width(cell))
		}
	}
	below := style.fold(rows, widths)
	out := bufio.NewWriter(w)
	for i, row := range rows {
		out.WriteString(style.line(row, widths, statuses[i]) + "\n")
		if below[i] != "" {
			out.WriteString(style.below(under[i], below[i]))
		}
	}
	out.WriteString("\n")
	return out.Flush()
}

// fold removes messages that do not fit from rows, and returns them by row. If no message remains
// in the column, it also removes the header of the column.
func (s Style) fold(rows [][]string, widths []int) []string {
	below := make([]string, len(rows))
	if !s.Fold || s.Width == 0 {
		return below
	}
	last, inColumn := len(rows[0])-1, false
	for i, row := range rows[1:] {
		if fit.Width(row[last]) > s.room(widths) {
			below[i+1], row[last] = row[last], ""
		}
		inColumn = inColumn || row[last] != ""
	}
	if !inColumn {
		rows[0][last] = ""
	}
	return below
}

// room returns the width that remains for messages.
func (s Style) room(widths []int) int {
	room := s.Width
	for _, width := range widths[:len(widths)-1] {
		room -= width + len(s.Separator)
	}
	return room
}

// below returns a wrapped message to print below the line of its object, with
// the branches of the tree.
func (s Style) below(under, message string) string {
	under += strings.Repeat(" ", 4)
	hang := fit.Width(under)
	var b strings.Builder
	for text := range strings.Lines(fit.Fold(strings.Repeat(" ", hang)+message, hang, s.Width)) {
		b.WriteString(under + strings.TrimSpace(text) + "\n")
	}
	return b.String()
}

func (s Style) cells(n *Node) []string {
	restarts, age := "", ""
	if n.Restarts != nil {
		restarts = strconv.Itoa(*n.Restarts)
	}
	if n.Created != nil {
		age = duration.HumanDuration(s.Now.Sub(*n.Created))
	}
	return []string{printable.Line(string(n.Status)), restarts, age, printable.Line(strings.Join(strings.Fields(n.Message), " "))}
}

// line pads cells before it paints them, because color codes would break the
// alignment.
func (s Style) line(row []string, widths []int, status Status) string {
	var b strings.Builder
	used := 0
	for i, cell := range row {
		if i == len(row)-1 && s.Width > 0 {
			if room := s.Width - used; room > 1 || fit.Width(cell) <= room {
				b.WriteString(fit.Cut(cell, room))
			}
			break
		}
		cell = fit.Fill(cell, widths[i])
		used += widths[i] + len(s.Separator)
		if i == 1 && s.Paint != nil && status != "" {
			cell = s.Paint(status, cell)
		}
		b.WriteString(cell + s.Separator)
	}
	if s.Width > 0 {
		return strings.TrimRight(b.String(), " ")
	}
	return b.String()
}

// line is a line of the tree: the branches before the object, and the branches in the lines below
// it.
type line struct {
	branch, under string
	node          *Node
}

// stem returns the branch below an object.
func stem(n *Node) string {
	if len(n.Children) == 0 {
		return " "
	}
	return "│"
}

// lines returns the lines of the tree from top to bottom.
func lines(root *Node) []line {
	all := []line{{"", stem(root), root}}
	var below func(indent string, n *Node)
	below = func(indent string, n *Node) {
		for i, child := range n.Children {
			branch, deeper := "├── ", "│   "
			if i == len(n.Children)-1 {
				branch, deeper = "└── ", "    "
			}
			all = append(all, line{indent + branch, indent + deeper + stem(child), child})
			below(indent+deeper, child)
		}
	}
	below("", root)
	return all
}
