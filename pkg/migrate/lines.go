package migrate

import "strings"

// siblings returns the plain values of the other keys in the mapping that contains the line.
func siblings(lines []string, at, column int) map[string]string {
	found := map[string]string{}
	look := func(i int) (end bool) {
		indent, first, skip := position(lines[i])
		switch {
		case skip || indent > column:
			return false
		case indent < column || strings.HasPrefix(lines[i], "---"):
			return true
		}
		if m := entry().FindStringSubmatch(strings.TrimSuffix(lines[i], "\n")); m != nil && found[m[2]] == "" {
			found[m[2]] = m[3]
		}
		return first
	}
	_, first, _ := position(lines[at])
	for i := at - 1; i >= 0 && !first; i-- {
		if look(i) {
			break
		}
	}
	for i := at + 1; i < len(lines); i++ {
		// Stop at the first line of the next item.
		if indent, next, _ := position(lines[i]); next && indent <= column || look(i) {
			break
		}
	}
	return found
}

// lead returns the indentation of a line with the markers of list items.
func lead(line string) string {
	rest := strings.TrimLeft(line, " ")
	for strings.HasPrefix(rest, "- ") {
		rest = strings.TrimLeft(rest[1:], " ")
	}
	return line[:len(line)-len(rest)]
}

// position returns the column of the key in a line, and whether the line is the first of a list
// item. skip is true for empty lines, comments and template directives, which may be at any
// column.
func position(line string) (column int, first, skip bool) {
	before := lead(line)
	rest := strings.TrimSpace(line[len(before):])
	skip = rest == "" || strings.HasPrefix(rest, "#") || strings.HasPrefix(rest, "{{")
	return len(before), strings.Contains(before, "-"), skip
}
