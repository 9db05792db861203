package render_test

import (
	"crypto/sha256"
	"encoding/base64"
	"html"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/render"
)

// hostileMarkup is what a repository or a cluster may put into names and values
// to act in a pull request or on a page.
var hostileMarkup = []string{
	`<script>alert(1)</script>`, `<img src=x onerror=alert(1)>`, `</code></summary></details><h1>ok</h1>`, `<!-- `, `"><svg onload=alert(1)>`, `</pre></style><script>`,
	"[click](https://evil.example)", "![x](https://evil.example/x.png)", "[x]: https://evil.example", "<https://evil.example>", "https://evil.example/x", "www.evil.example",
	"@everyone", "org/repo#123", "#123", "GH-123 #1", "a`b @someone `c", "``` @someone", "```\n@someone\n```", "~~~\n# head", "\n\n# head", "\n| a | b |\n|---|---|", "x | @someone |",
	"**bold** _it_ ~~x~~", "$\\sqrt{x}$", "&lt;b&gt;", "\\`@someone\\`", "> [!WARNING]", "- [ ] task", "closes #1", "\x1b[2J\u202e@someone\u2066", "{{ 7*7 }}", ":shipit:",
}

var (
	fenced = regexp.MustCompile("(?ms)^(`{3,})diff\n.*?^`{3,}$")
	coded  = regexp.MustCompile("<code>(?:[^<`*_\\[\\]@#|\\\\]|&#\\d+;)*</code>|`[^`\n|]+`")
	// own is all markup that the program writes.
	own = regexp.MustCompile(`</?details>|</?summary>|<br>|(?m)^### |^> \[!WARNING\]$|^> `)
)

func hostileResults(text string) []*diff.Result {
	object := func(value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap", "data": map[string]any{"a": value}}}
	}
	name := controllers.VersionedID{ID: controllers.ID{Kind: "ConfigMap", Namespace: "default", Name: text}, Version: "v1"}
	return []*diff.Result{{
		Owner: controllers.VersionedID{ID: controllers.ID{Kind: "Kustomization", Namespace: "flux-system", Name: text}}, Revision: text, Warnings: []string{text},
		Changes: []diff.Change{
			{Object: name, Action: diff.Changed, Notes: []string{text}, Before: object("a"), After: object(text), Dangers: []diff.Danger{{Rule: "prune", Detail: text, Allowed: text}}, Images: []diff.Image{{Container: text, Before: text, After: text, Registry: &diff.ImageCheck{State: diff.ImageMissing, Reason: text}}}},
			{Object: name, Action: diff.Failed, Reason: text, Before: object("a")},
		},
	}}
}

// TestMarkdownIsInert takes away code and the program's own markup: nothing that
// could act is left.
func TestMarkdownIsInert(t *testing.T) {
	t.Parallel()
	for _, text := range hostileMarkup {
		b := render.Markdown(hostileResults(text), render.CommentMax)
		checkInert(t, text, b, "evil", "someone", "alert")
	}
}

// TestPlainIsInert takes away code and what the program writes itself.
func TestPlainIsInert(t *testing.T) {
	t.Parallel()
	plainOwn := regexp.MustCompile(`(?m)^#{3,4} |^\* |\*\*(?:Warnings|Not compared|Images)\*\*`)
	spans := regexp.MustCompile("`[^`\n]+`")
	for _, text := range hostileMarkup {
		results := hostileResults(text)
		results[0].NotCompared = &diff.Omission{Reason: text}
		b := render.Plain(results, 0)
		rest := plainOwn.ReplaceAllString(spans.ReplaceAllString(fenced.ReplaceAllString(b, ""), ""), "")
		if strings.ContainsAny(rest, "<>[]@#`~$*|\\_") || strings.Contains(rest, "://") || strings.Contains(rest, "www.") || strings.ContainsFunc(rest, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }) {
			t.Errorf("%q leaves %q in:\n%s", text, rest, b)
		}
	}
}

// checkInert fails if something of a text is left in a comment that could act, or one of the words.
func checkInert(t *testing.T, text, comment string, words ...string) {
	t.Helper()
	rest := coded.ReplaceAllString(fenced.ReplaceAllString(comment, ""), "")
	if strings.Count(rest, "<details>") != 2 || strings.Count(rest, "</details>") != 2 {
		t.Errorf("%q changes the structure:\n%s", text, comment)
	}
	rest = own.ReplaceAllString(rest, "")
	for _, acts := range append(words, "<", "](", "![", "@", "#", "`", "~~~", "$", "**", "://", "www.") {
		if strings.Contains(rest, acts) {
			t.Errorf("%q leaves %q in:\n%s\nof\n%s", text, acts, rest, comment)
		}
	}
	if strings.ContainsFunc(comment, func(r rune) bool { return unicode.IsControl(r) && r != '\n' || unicode.Is(unicode.Bidi_Control, r) }) {
		t.Errorf("%q: control characters in %q", text, comment)
	}
}

// TestHTMLPage requires that the page has no address to load, that it is complete without its
// script, and that its policy allows exactly this script.
func TestHTMLPage(t *testing.T) {
	t.Parallel()
	b := render.HTML(hostileResults("harmless"), render.Comparison{Base: "harmless", Head: "harmless", Paths: []string{"harmless"}})
	page := b
	for _, loads := range []string{"http:", "https:", "//", " src=", "href=", "url(", "@import", "fetch(", "innerHTML", "eval(", "onclick"} {
		if strings.Contains(page, loads) {
			t.Errorf("the page has %q", loads)
		}
	}
	before, rest, _ := strings.Cut(page, "<script>")
	code, after, _ := strings.Cut(rest, "</script>")
	if strings.TrimSpace(after) != "</body>\n</html>" || !strings.Contains(before, "<form hidden>") || strings.Count(before, "<details") != 2 || !strings.Contains(before, "harmless") {
		t.Error("the page is not complete before the script, or its form is shown without one")
	}
	sum := sha256.Sum256([]byte(code))
	if want := "script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(html.UnescapeString(before), want) || strings.Contains(before, "unsafe-eval") {
		t.Errorf("the policy does not have %s", want)
	}
}

// TestHTMLIsInert compares the elements of a page with those of a page about
// harmless names.
func TestHTMLIsInert(t *testing.T) {
	t.Parallel()
	tag := regexp.MustCompile(`<[^>]*>`)
	page := func(text string) string {
		b := render.HTML(hostileResults(text), render.Comparison{Base: text, Head: text, Paths: []string{text}})
		return b
	}
	elements := func(text string) map[string]bool {
		found := map[string]bool{}
		for _, element := range tag.FindAllString(page(text), -1) {
			found[element] = true
		}
		return found
	}
	harmless := elements("harmless\nlines")
	for _, text := range hostileMarkup {
		for element := range elements(text) {
			if !harmless[element] {
				t.Errorf("%q adds the element %s", text, element)
			}
		}
		got := page(text)
		if strings.ContainsFunc(got, func(r rune) bool { return unicode.IsControl(r) && r != '\n' || unicode.Is(unicode.Bidi_Control, r) }) {
			t.Errorf("%q: control characters", text)
		}
		if first, _, _ := strings.Cut(strings.TrimSpace(text), "\n"); !strings.ContainsAny(text, "\x1b") && !strings.Contains(html.UnescapeString(got), first) {
			t.Errorf("%q is not shown", text)
		}
	}
}
