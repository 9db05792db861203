package budget_test

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fluxkit/flux/internal/budget"
)

// TestShortenTexts checks that the texts of a report are shortened once, and that its objects are not.
func TestShortenTexts(t *testing.T) {
	t.Parallel()
	type inner struct{ Text string }
	type report struct {
		Text    string
		Lines   []string
		Inner   []inner
		Pointer *inner
		None    *inner
		Time    time.Time
		Object  map[string]string
		private string
	}
	long := strings.Repeat("x", 1<<20)
	r := &report{Text: long, Lines: []string{"a", long}, Inner: []inner{{long}}, Pointer: &inner{long}, Object: map[string]string{"a": long}, private: long, Time: time.Unix(0, 0)}
	budget.ShortenTexts(r)
	once := *r
	budget.ShortenTexts(r)
	short := budget.Excerpt(long, budget.ErrorText)
	want := report{Text: short, Lines: []string{"a", short}, Inner: []inner{{short}}, Pointer: &inner{short}, Object: map[string]string{"a": long}, private: long, Time: time.Unix(0, 0)}
	if !reflect.DeepEqual(*r, want) || !reflect.DeepEqual(once, want) || len(short) > budget.ErrorText {
		t.Errorf("%.200v", *r)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	for want, texts := range map[string][]string{
		"": {}, "a": {"a"}, "a, b": {"a", "b"}, "a, b and 1 more": {"a", "b", "c"}, "a, b and 3 more": {"a", "b", "c", "d", "e"},
	} {
		if got := budget.List(texts, 2); got != want {
			t.Errorf("%q: %q, want %q", texts, got, want)
		}
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a", strings.Repeat("x", budget.ErrorText), "", strings.Repeat("ü", budget.ErrorText/2)} {
		if err := errors.New(text); budget.Short(err) != err { //nolint:errorlint // the same error, not an equal one
			t.Errorf("%.20q is shortened", text)
		}
	}
	if err := budget.Short(nil); err != nil {
		t.Error(err)
	}
	long := fmt.Errorf("chart app: %s: %w", strings.Repeat("ü", 1<<20), fs.ErrNotExist)
	short := budget.Short(long)
	text := short.Error()
	if !strings.HasPrefix(text, "chart app: ü") || !strings.HasSuffix(text, "ü: file does not exist") || len(text) > budget.ErrorText || !utf8.ValidString(text) {
		t.Errorf("%d bytes: %.50q", len(text), text)
	}
	if !errors.Is(short, fs.ErrNotExist) {
		t.Error("the cause is lost")
	}
	if !strings.Contains(text, "… (2093") {
		t.Error("the number of bytes that are left out is missing")
	}
}
