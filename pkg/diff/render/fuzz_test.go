package render_test

import (
	"html"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/fluxkit/flux/pkg/diff/render"
)

var element = regexp.MustCompile(`<[^>]*>`)

// FuzzMarkdown puts any text into every place of a comment: the structure of the comment is that of
// one about harmless names, and what is left of the text outside of code cannot act.
func FuzzMarkdown(f *testing.F) {
	for _, text := range hostileMarkup {
		f.Add(text, 0)
		f.Add(text, 700)
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		checkInert(t, text, render.Markdown(hostileResults(text), render.CommentMax))
		limit = 100 + max(limit, -limit)%2000
		if short := render.Markdown(hostileResults(text), limit); len(short) > limit {
			t.Errorf("%q: %d bytes, more than %d", text, len(short), limit)
		}
	})
}

// FuzzHTML puts any text into every place of a page: its elements are those of a page about
// harmless names.
func FuzzHTML(f *testing.F) {
	for _, text := range hostileMarkup {
		f.Add(text)
	}
	page := func(t *testing.T, text string) string {
		t.Helper()
		b := render.HTML(hostileResults(text), render.Comparison{Base: text, Head: text, Paths: []string{text}})
		return b
	}
	f.Fuzz(func(t *testing.T, text string) {
		known := map[string]bool{}
		for _, e := range element.FindAllString(page(t, "harmless\nlines"), -1) {
			known[e] = true
		}
		got := page(t, text)
		for _, e := range element.FindAllString(got, -1) {
			if !known[e] {
				t.Errorf("%q adds the element %s", text, e)
			}
		}
		if strings.ContainsFunc(html.UnescapeString(got), func(r rune) bool {
			return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
		}) {
			t.Errorf("%q: control characters", text)
		}
	})
}
