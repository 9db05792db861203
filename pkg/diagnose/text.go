package diagnose

import (
	"strings"
)

// longest is the maximum length of a message in one line.
const longest = 400

// oneLine joins the lines of a message and truncates it.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return s
}

// join returns a reason and a message in one line.
func join(reason, message string) string {
	message = oneLine(message)
	switch {
	case reason == "":
		return message
	case message == "":
		return reason
	}
	return reason + ": " + message
}
