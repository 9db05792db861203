package budget

import (
	"fmt"
	"reflect"
	"strings"
)

// ErrorText is the maximum length of an error text. Libraries put entire input values into
// errors, which then appear in reports, comments and logs.
const ErrorText = 4 << 10

// Excerpt shortens a text to the given number of bytes. It keeps the beginning and the end, which often
// contains the cause, and inserts the number of omitted bytes.
func Excerpt(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	kept := limit - len("… (9223372036854775807 bytes) …")
	begin, end := text[:kept/4*3], text[len(text)-kept/4:]
	return fmt.Sprintf("%s… (%d bytes) …%s", strings.ToValidUTF8(begin, ""), len(text)-len(begin)-len(end), strings.ToValidUTF8(end, ""))
}

// ShortenTexts replaces the texts in structures and lists of a report with excerpts of at most ErrorText
// bytes, in place. It skips maps, which contain objects. Credentials in the report are already masked, because
// truncated credentials would not be recognized.
func ShortenTexts(report any) { shortenTexts(reflect.ValueOf(report)) }

func shortenTexts(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		shortenTexts(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			shortenTexts(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				shortenTexts(v.Field(i))
			}
		}
	case reflect.String:
		if v.CanSet() {
			v.SetString(Excerpt(v.String(), ErrorText))
		}
	}
}

// Directories is the maximum number of directories that a message lists.
const Directories = 5

// List joins the first limit texts with commas and appends the number of the remaining texts.
func List(texts []string, limit int) string {
	if more := len(texts) - limit; more > 0 {
		return strings.Join(texts[:limit], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(texts, ", ")
}

// Short returns an error whose text is at most ErrorText long.
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

// Unwrap returns the original error.
func (e *shortError) Unwrap() error { return e.err }
