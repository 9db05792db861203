package diagram

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/graphviz"
	"github.com/fluxkit/flux/internal/graphviz/engine"
	"github.com/fluxkit/flux/pkg/controllers"
)

// compiled is the engine of all tests.
var compiled = sync.OnceValue(engine.New)

// drawn returns a diagram in a format.
func drawn(t *testing.T, d Diagram, format string) string {
	t.Helper()
	var b strings.Builder
	if err := d.Draw(t.Context(), &b, format, compiled()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// random returns a diagram with random statuses and arrows, also cycles, self-loops and equal names in several
// namespaces.
func random(seed uint64, boxes, arrows int) Diagram {
	r := rand.New(rand.NewPCG(seed, 7)) // deterministic
	d := Diagram{Title: "random"}
	for i := range boxes {
		name := strings.Repeat("x", 1+r.IntN(3))
		d.Boxes = append(d.Boxes, Box{ID: fmt.Sprint(i), Head: "Kind", Text: fmt.Sprintf("ns-%d/%s", i, name), Status: Status(r.IntN(4))})
	}
	for range arrows {
		from := r.IntN(boxes)
		to := r.IntN(boxes)
		if boxes > 100 { // dense random graphs of this size take too long
			to = min(boxes-1, from+1+r.IntN(3))
		}
		d.Arrows = append(d.Arrows, Arrow{From: fmt.Sprint(from), To: fmt.Sprint(to), Label: []string{"source", "dependency"}[r.IntN(2)]})
	}
	return d
}

// element is an element of an SVG file.
type element struct {
	XMLName  xml.Name
	ID       string    `xml:"id,attr"`
	Class    string    `xml:"class,attr"`
	From     string    `xml:"data-from,attr"`
	To       string    `xml:"data-to,attr"`
	Path     string    `xml:"d,attr"`
	Text     string    `xml:",chardata"`
	Elements []element `xml:",any"`
}

// each calls visit with the element and all elements in it.
func (e element) each(visit func(element)) {
	visit(e)
	for _, child := range e.Elements {
		child.each(visit)
	}
}

// TestPictures checks that a picture has each box and each arrow once.
func TestPictures(t *testing.T) {
	t.Parallel()
	pictures := map[string]Diagram{"empty": {Title: "empty"}, "large": random(1, 500, 900)}
	for seed := range uint64(10) {
		pictures[fmt.Sprint(seed)] = random(seed, 1+int(seed)*4, int(seed)*6)
	}
	curve := regexp.MustCompile(`^M-?[\d.]+ -?[\d.]+C(-?[\d.]+ -?[\d.]+ ){2}[-\d. ]+L-?[\d.]+ -?[\d.]+$`)
	for name, d := range pictures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			svg := drawn(t, d, "svg")
			var root element
			if err := xml.Unmarshal([]byte(svg), &root); err != nil {
				t.Fatal(err)
			}
			names, at, arrows := map[string]int{}, map[string]string{}, map[string]int{}
			root.each(func(e element) {
				if e.ID != "" && e.XMLName.Local == "g" {
					name := e.Elements[2].Elements[1].Text // after the title and the box
					names[name]++
					at[e.ID] = name
				}
			})
			root.each(func(e element) {
				if e.From != "" {
					arrows[at[e.From]+" "+at[e.To]]++
					if !curve.MatchString(e.Path) {
						t.Errorf("path %s", e.Path)
					}
				}
			})
			wantNames, wantArrows := map[string]int{}, map[string]int{}
			for _, b := range d.Boxes {
				wantNames[b.Text]++
			}
			for _, a := range d.Arrows {
				wantArrows[textOf(d, a.From)+" "+textOf(d, a.To)]++
			}
			if diff := cmp.Diff(wantNames, names); diff != "" {
				t.Errorf("boxes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(wantArrows, arrows); diff != "" {
				t.Errorf("arrows (-want +got):\n%s", diff)
			}
			page := drawn(t, d, "html")
			if got := strings.Count(page, ` id="n`); got != len(d.Boxes) {
				t.Errorf("the page has %d boxes, want %d", got, len(d.Boxes))
			}
		})
	}
}

func textOf(d Diagram, id string) string {
	return d.Boxes[slices.IndexFunc(d.Boxes, func(b Box) bool { return b.ID == id })].Text
}

// TestOrder checks that the bytes do not depend on the order of the boxes and arrows.
func TestOrder(t *testing.T) {
	t.Parallel()
	d := random(3, 30, 40)
	other := Diagram{Title: d.Title, Boxes: slices.Clone(d.Boxes), Arrows: slices.Clone(d.Arrows)}
	slices.Reverse(other.Boxes)
	slices.Reverse(other.Arrows)
	for _, format := range []string{"svg", "html"} {
		if diff := cmp.Diff(drawn(t, d, format), drawn(t, other, format)); diff != "" {
			t.Errorf("%s (-in order +reversed):\n%s", format, diff)
		}
	}
}

// hostile are texts that end the context in which they are written.
func hostile() []string {
	return []string{
		`<script>alert(1)</script>`, `</script><script>alert(1)</script>`, `"onload="alert(1)`, `'onload='alert(1)`, `]]>`, `-->`, `<!--`, `</style>`, `</title><script>`,
		`</text></g></svg><img src=x onerror=alert(1)>`, `&lt;script&gt;`, `&#x3c;script>`, `javascript:alert(1)`, `url(http://example.com)`, `{{.}}`, "`${alert(1)}`", `\`, `\N`, "\x00", "\xff", "\u202e",
	}
}

// labeled returns a diagram in which all texts are the same.
func labeled(text string) Diagram {
	box := Box{ID: text, Head: text, Text: text, Note: text, Status: Bad}
	return Diagram{Title: text, Caption: text, Boxes: []Box{box}, Arrows: []Arrow{{From: text, To: text, Label: text}}}
}

// TestHostileTexts checks that texts add no elements and attributes to a page.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"svg", "html"} {
		want := structure(t, drawn(t, labeled("harmless"), format))
		for _, text := range hostile() {
			page := drawn(t, labeled(text), format)
			if diff := cmp.Diff(want, structure(t, page)); diff != "" {
				t.Errorf("%q in %s (-harmless +hostile):\n%s", text, format, diff)
			}
			if format == "svg" {
				var root element
				if err := xml.Unmarshal([]byte(page), &root); err != nil {
					t.Errorf("%q: %v", text, err)
				}
			}
		}
	}
}

// structure returns the elements of a page with the names of their attributes, and the script and the styles.
func structure(t *testing.T, page string) []string {
	t.Helper()
	var all []string
	verbatim := false
	for tokens := html.NewTokenizer(strings.NewReader(page)); ; {
		switch kind := tokens.Next(); kind {
		case html.ErrorToken:
			if err := tokens.Err(); !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			return all
		case html.TextToken:
			if verbatim {
				all = append(all, tokens.Token().Data)
			}
		default:
			token := tokens.Token()
			verbatim = kind == html.StartTagToken && (token.Data == "script" || token.Data == "style")
			line := kind.String() + " " + token.Data
			for _, a := range token.Attr {
				line += " " + a.Key
			}
			all = append(all, line)
		}
	}
}

// TestPolicy checks that the policy of a page allows its own script and style only.
func TestPolicy(t *testing.T) {
	t.Parallel()
	page := drawn(t, random(2, 20, 20), "html")
	policy := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)
	if policy == nil {
		t.Fatal(page)
	}
	element := func(name string) string {
		parts := regexp.MustCompile(`(?s)<`+name+`>(.*?)</`+name+`>`).FindAllStringSubmatch(page, -1)
		if len(parts) != 1 || len(parts[0][1]) < 1000 {
			t.Fatalf("%d elements %s", len(parts), name)
		}
		return digest(parts[0][1])
	}
	want := "default-src 'none'; base-uri 'none'; form-action 'none'; style-src " + element("style") + "; script-src " + element("script")
	if got := html.UnescapeString(policy[1]); got != want {
		t.Errorf("policy %s, want %s", got, want)
	}
	for _, external := range []string{" src=", "@import", "url(http", " style=", "<link", "fetch("} {
		if strings.Contains(page, external) {
			t.Errorf("the page contains %s", external)
		}
	}
}

// TestFailures checks the order of the list: failures, failures that wait for others, and what is in progress.
func TestFailures(t *testing.T) {
	t.Parallel()
	d := Diagram{Boxes: []Box{
		{ID: "a", Head: "Kind", Text: "a", Status: Busy, Note: "applying"}, {ID: "b", Head: "Kind", Text: "b", Status: Bad, Blocked: true, Note: "blocked by d"},
		{ID: "c", Head: "Kind", Text: "c", Status: Good, Note: "applied"}, {ID: "d", Head: "Kind", Text: "d", Status: Bad, Note: "access denied"},
		{ID: "e", Head: "Kind", Text: "e"},
	}}
	page := drawn(t, d, "html")
	_, list, _ := strings.Cut(page, "<ol>")
	list, _, _ = strings.Cut(list, "</ol>")
	const want = `
<li class="bad"><a href="#n3"><small>✗ Kind</small><b>d</b>access denied</a></li>
<li class="bad"><a href="#n1"><small>✗ Kind</small><b>b</b>blocked by d</a></li>
<li class="busy"><a href="#n0"><small>◎ Kind</small><b>a</b>applying</a></li>
`
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, line := range []string{"Not ready: 3 of 5", "✗ failed: 2", "◎ in progress: 1", "✔ ready: 1", "? unknown: 1"} {
		if !strings.Contains(page, line) {
			t.Errorf("the page does not contain %q", line)
		}
	}
	for i := range d.Boxes {
		d.Boxes[i].Status = Neutral
	}
	if page := drawn(t, d, "html"); strings.Contains(page, "Not ready") || strings.Contains(page, "unknown") {
		t.Error("a page without statuses has a list of failures or a legend of statuses")
	}
}

// TestLongTexts checks that names and messages are truncated.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	d := Diagram{Boxes: []Box{{ID: "a", Head: "Kind", Text: strings.Repeat("a", 300) + "-end", Status: Bad, Note: strings.Repeat("message ", 10000)}}}
	page := drawn(t, d, "html")
	if !strings.Contains(page, "a-end</text>") || len(page) > 60_000 {
		t.Errorf("%d bytes", len(page))
	}
}

// TestRelations checks that each relation of the catalog has a line of its own.
func TestRelations(t *testing.T) {
	t.Parallel()
	relations := map[string]bool{"health": true, "source": false} // source is a solid line
	for _, k := range controllers.Kinds {
		for _, ref := range k.AllRefs() {
			if ref.Relation != "source" {
				relations[ref.Relation] = true
			}
		}
	}
	for relation, styled := range relations {
		if got := strings.Contains(graphStyle, ".edge."+relation+" { stroke-dasharray: "); got != styled {
			t.Errorf("%s: %t, want %t", relation, got, styled)
		}
	}
}

// TestColors checks that DOT and Mermaid have the colors of the style.
func TestColors(t *testing.T) {
	t.Parallel()
	for _, s := range statuses {
		if !strings.Contains(graphStyle, "--"+s.name+": "+s.fill+"; --"+s.name+"-edge: "+s.border+";") {
			t.Errorf("graph.css does not contain %s and %s of %s", s.fill, s.border, s.name)
		}
	}
}

// failing is an engine that returns an error.
type failing struct{ err error }

func (f failing) Layout(context.Context, graphviz.Graph) (graphviz.Layout, error) {
	return graphviz.Layout{}, f.err
}

func TestErrors(t *testing.T) {
	t.Parallel()
	slow := &budget.ExceededError{Name: "drawing 9 objects", Fact: "takes longer than 1m0s"}
	if err := random(1, 9, 9).Draw(t.Context(), io.Discard, "svg", failing{slow}); !errors.Is(err, slow) {
		t.Error(err)
	}
	if err := random(1, 9, 9).Draw(t.Context(), io.Discard, "dot", failing{slow}); err != nil {
		t.Error(err)
	}
	if err := random(1, 9, 9).Draw(t.Context(), io.Discard, "png", compiled()); err == nil || !strings.Contains(err.Error(), "svg") {
		t.Error(err)
	}
}

// TestEscaping checks that names cannot inject code into DOT and Mermaid.
func TestEscaping(t *testing.T) {
	t.Parallel()
	d := labeled(`"]<script>&\`)
	if dot := drawn(t, d, "dot"); !strings.Contains(dot, `"\"]<script>&\\" -> `) {
		t.Error(dot)
	}
	if mermaid := drawn(t, d, "mermaid"); strings.Contains(mermaid, "<script") || !strings.Contains(mermaid, `n0["&quot;]&lt;script&gt;&amp;\<br>`) {
		t.Error(mermaid)
	}
}
