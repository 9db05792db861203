package diagnose

import (
	"fmt"
	"strings"
)

// longest is how much of somebody else's message is shown in a line.
const longest = 400

// oneLine makes a line of a message that may have several.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return s
}

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

func times(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
