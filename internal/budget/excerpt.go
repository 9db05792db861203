package budget

import (
	"fmt"
	"strings"
)

// ErrorText is the maximum length of the text of an error. Libraries put whole values of their input
// into errors, which come back in each report, comment and log.
const ErrorText = 4 << 10

// Excerpt returns a text of at most about most bytes: its beginning and its end, which often has the
// cause, with the number of bytes that are left out.
func Excerpt(text string, most int) string {
	if len(text) <= most {
		return text
	}
	begin, end := text[:most/4*3], text[len(text)-most/4:]
	return fmt.Sprintf("%s… (%d bytes) …%s", strings.ToValidUTF8(begin, ""), len(text)-len(begin)-len(end), strings.ToValidUTF8(end, ""))
}

// Short returns an error whose text is at most about ErrorText long.
func Short(err error) error {
	if err == nil || len(err.Error()) <= ErrorText {
		return err
	}
	return &shortError{Excerpt(err.Error(), ErrorText), err}
}

type shortError struct {
	text string
	err  error
}

func (e *shortError) Error() string { return e.text }

// Unwrap returns the whole error.
func (e *shortError) Unwrap() error { return e.err }
