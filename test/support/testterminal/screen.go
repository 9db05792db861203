package testterminal

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Screen emulates the screen of a terminal: text, line ends, and the escape sequences that move the
// cursor up and to a column, clear lines, and disable and enable line wrapping. Other sequences are
// shown as ⟦…⟧, so that tests detect them. Colors are ignored.
type Screen struct {
	columns, lines int
	cells          [][]rune
	row, column    int
	cutsLines      bool // lines are not wrapped
	above          []string
	rest           []byte // an incomplete character or sequence
}

// NewScreen returns an empty screen.
func NewScreen(columns, lines int) *Screen {
	return &Screen{columns: columns, lines: lines, cells: make([][]rune, lines)}
}

// Resize changes the size and truncates lines that are too long.
func (s *Screen) Resize(columns, lines int) {
	for s.row >= lines {
		s.scroll()
		s.row--
	}
	for i, line := range s.cells {
		s.cells[i] = line[:min(len(line), columns)]
	}
	for len(s.cells) < lines {
		s.cells = append(s.cells, nil)
	}
	s.cells = s.cells[:lines]
	s.columns, s.lines = columns, lines
	s.column = min(s.column, columns)
}

// Write implements io.Writer.
func (s *Screen) Write(data []byte) {
	s.rest = append(s.rest, data...)
	for len(s.rest) > 0 {
		n := s.next()
		if n == 0 {
			return // the rest follows
		}
		s.rest = s.rest[n:]
	}
}

// next processes one character or sequence and returns its length, or 0 if it is
// incomplete.
func (s *Screen) next() int {
	if s.rest[0] == 0x1b {
		return s.escape()
	}
	if !utf8.FullRune(s.rest) {
		return 0
	}
	r, n := utf8.DecodeRune(s.rest)
	switch r {
	case '\r':
		s.column = 0
	case '\n':
		s.down()
	case '\ufe0f': // no width
	default:
		s.put(r)
		if wide(r) {
			s.put(' ')
		}
	}
	return n
}

// wide reports whether a character takes two columns, like Chinese, Japanese and Korean characters.
func wide(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana)
}

func (s *Screen) put(r rune) {
	switch {
	case s.column < s.columns:
	case s.cutsLines:
		s.column = s.columns - 1
	default:
		s.column = 0
		s.down()
	}
	line := s.cells[s.row]
	for len(line) <= s.column {
		line = append(line, ' ')
	}
	line[s.column] = r
	s.cells[s.row] = line
	s.column++
}

func (s *Screen) down() {
	if s.row == s.lines-1 {
		s.scroll()
		return
	}
	s.row++
}

func (s *Screen) scroll() {
	s.above = append(s.above, trimmed(s.cells[0]))
	s.cells = append(s.cells[1:], nil)
}

// escape handles ESC [ NUMBER LETTER.
func (s *Screen) escape() int {
	end := 2
	for end < len(s.rest) && (s.rest[end] < '@' || s.rest[end] > '~') {
		end++
	}
	if end >= len(s.rest) {
		return 0
	}
	parameter := string(s.rest[2:end])
	number, err := strconv.Atoi(parameter)
	if err != nil {
		number = 1
	}
	switch letter := s.rest[end]; {
	case s.rest[1] != '[':
		s.foreign(s.rest[:2])
		return 2
	case letter == 'm':
	case parameter == "?7" && (letter == 'l' || letter == 'h'):
		s.cutsLines = letter == 'l'
	case letter == 'A':
		s.row = max(0, s.row-number)
	case letter == 'G':
		s.column = number - 1
	case letter == 'H' && parameter == "":
		s.row, s.column = 0, 0
	case letter == 'K' && parameter == "":
		s.clear(s.row, s.column)
	case letter == 'J' && parameter == "":
		s.clear(s.row, s.column)
		for row := s.row + 1; row < s.lines; row++ {
			s.clear(row, 0)
		}
	default:
		s.foreign(s.rest[:end+1])
	}
	return end + 1
}

func (s *Screen) foreign(sequence []byte) {
	for _, r := range fmt.Sprintf("⟦%q⟧", sequence) {
		s.put(r)
	}
}

func (s *Screen) clear(row, from int) {
	s.cells[row] = s.cells[row][:min(from, len(s.cells[row]))]
}

// String returns the content of the screen without trailing blanks.
func (s *Screen) String() string {
	var lines []string
	for _, line := range s.cells {
		lines = append(lines, trimmed(line))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

// Above returns the lines that were scrolled off the screen.
func (s *Screen) Above() string { return strings.Join(s.above, "\n") }

func trimmed(line []rune) string { return strings.TrimRight(string(line), " ") }
