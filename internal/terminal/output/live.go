package output

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fatih/color"

	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/internal/terminal/fit"
	"github.com/fluxkit/flux/internal/terminal/printable"
)

// Live is a table on a terminal whose rows are updated in place. If there are more rows than lines, it shows the rows
// that are not ready, the most recently changed rows, and the number of other rows.
type Live struct {
	w       io.Writer
	headers []string
	header  bool
	screen  func() Screen

	rows  []liveRow
	place map[string]int
	turn  int
	// drawn is the number of lines of the table above the cursor.
	drawn int
}

type liveRow struct {
	cells []string
	// gone is set if the object no longer belongs to the table.
	gone    bool
	changed int
}

// NewLive returns a table that is drawn to w. It calls screen each time to get the size.
func NewLive(w io.Writer, headers []string, header bool, screen func() Screen) *Live {
	return &Live{w: w, headers: headers, header: header, screen: screen, place: map[string]int{}}
}

// Put adds or replaces the row of a key. Draw shows it.
func (l *Live) Put(key string, cells []string, gone bool) {
	l.turn++
	row := liveRow{printable.Lines(cells), gone, l.turn}
	if i, ok := l.place[key]; ok {
		l.rows[i] = row
		return
	}
	l.place[key] = len(l.rows)
	l.rows = append(l.rows, row)
}

const (
	lineUp    = "\x1b[%dA"
	toLineEnd = "\x1b[K"
	toEnd     = "\x1b[J"
	home      = "\x1b[H"
	// Wrapping is disabled because lines with wide characters may exceed the width and would
	// then take more lines than expected.
	wrapOff = "\x1b[?7l"
	wrapOn  = "\x1b[?7h"
)

// Draw draws the table in place of the previous one.
func (l *Live) Draw() error {
	screen := l.screen()
	lines := l.frame(screen)
	var b strings.Builder
	l.up(&b)
	b.WriteString(wrapOff)
	for _, line := range lines {
		b.WriteString(toLineEnd + cutLine(line, screen.Width) + "\n")
	}
	b.WriteString(wrapOn + toEnd)
	l.drawn = len(lines)
	_, err := io.WriteString(l.w, b.String())
	return err
}

// Erase removes the table from the screen until the next Draw.
func (l *Live) Erase() error {
	var b strings.Builder
	l.up(&b)
	b.WriteString(toEnd)
	l.drawn = 0
	_, err := io.WriteString(l.w, b.String())
	return err
}

// Redraw clears the whole screen and draws the table: after a resize, it is unknown which lines are wrapped.
func (l *Live) Redraw() error {
	l.drawn = 0
	if _, err := io.WriteString(l.w, home+toEnd); err != nil {
		return err
	}
	return l.Draw()
}

func (l *Live) up(b *strings.Builder) {
	if l.drawn > 0 {
		fmt.Fprintf(b, lineUp, l.drawn)
	}
	b.WriteString("\r")
}

// frame returns the lines of the table that fit on the screen.
func (l *Live) frame(screen Screen) []string {
	var all [][]string
	for _, row := range l.rows {
		all = append(all, row.cells)
	}
	columns := screen.fit(l.headers, measured(l.headers, all, l.header))
	var b strings.Builder
	if l.header {
		screen.head(&b, l.headers, columns)
	}
	shown := l.chosen(screen)
	for _, i := range shown {
		screen.write(&b, l.headers, l.rows[i].cells, columns)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(l.rows) > len(shown) {
		lines = append(lines, l.others(shown, screen))
	}
	return lines
}

// escape matches an escape sequence that selects a color.
var escape = lazy.Regexp("\x1b\\[[0-9;]*m")

// cutLine truncates a colored line to a number of columns; 0 means no limit. This is necessary because
// tables do not truncate the columns that identify objects.
func cutLine(line string, columns int) string {
	if columns == 0 || fit.Width(escape().ReplaceAllString(line, "")) <= columns {
		return line
	}
	var b strings.Builder
	left, colors := columns-1, escape().FindAllString(line, -1)
	for i, text := range escape().Split(line, -1) {
		if wide := fit.Width(text); left >= 0 && wide > left {
			text, left = fit.Cut(text, left+1), -1
		} else if left >= 0 {
			left -= wide
		} else {
			text = ""
		}
		b.WriteString(text)
		if i < len(colors) {
			b.WriteString(colors[i])
		}
	}
	return b.String()
}

// chosen returns the indexes of the rows that fit on the screen, in order.
func (l *Live) chosen(screen Screen) []int {
	places := make([]int, len(l.rows))
	for i := range places {
		places[i] = i
	}
	room := screen.Height - 1 // excludes the cursor's line
	if l.header {
		room--
	}
	if screen.Height == 0 || len(places) <= room {
		return places
	}
	slices.SortStableFunc(places, func(a, b int) int {
		if x, y := l.rank(a), l.rank(b); x != y {
			return x - y
		}
		return l.rows[b].changed - l.rows[a].changed
	})
	places = places[:max(1, room-1)]
	slices.Sort(places)
	return places
}

// rank returns the importance of a row, 0 for the most important ones.
func (l *Live) rank(i int) int {
	switch {
	case l.rows[i].gone:
		return 2
	case l.ready(i):
		return 1
	default:
		return 0
	}
}

func (l *Live) ready(i int) bool {
	ready := slices.Index(l.headers, "READY")
	return ready >= 0 && l.rows[i].cells[ready] == "True"
}

// others returns the line with the number of rows that are not shown.
func (l *Live) others(shown []int, screen Screen) string {
	ready, rest := 0, 0
	for i := range l.rows {
		switch {
		case slices.Contains(shown, i):
		case l.ready(i):
			ready++
		default:
			rest++
		}
	}
	text := fmt.Sprintf("… %d more: %d ready, %d not ready", ready+rest, ready, rest)
	if screen.Width > 0 {
		text = fit.Cut(text, screen.Width)
	}
	if !screen.Color {
		return text
	}
	c := color.New(color.Faint)
	c.EnableColor()
	return c.Sprint(text)
}
