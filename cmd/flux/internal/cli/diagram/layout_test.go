package diagram

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

// random returns a diagram with up to 40 boxes and random arrows.
func random(seed uint64) Diagram {
	r := rand.New(rand.NewPCG(seed, 7)) // deterministic
	d := Diagram{Title: "random"}
	for i := range 1 + r.IntN(40) {
		d.Boxes = append(d.Boxes, Box{ID: fmt.Sprint(i), Head: "Kind", Text: strings.Repeat("x", r.IntN(70))})
	}
	for range r.IntN(80) {
		d.Arrows = append(d.Arrows, Arrow{From: fmt.Sprint(r.IntN(len(d.Boxes))), To: fmt.Sprint(r.IntN(len(d.Boxes)))})
	}
	return d
}

// TestLayout checks that boxes do not overlap for any arrows.
func TestLayout(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		d := random(seed)
		at := d.layout()
		if len(at) != len(d.Boxes) {
			t.Fatalf("seed %d: %d places for %d boxes", seed, len(at), len(d.Boxes))
		}
		for i, a := range d.Boxes {
			p := at[a.ID]
			if p.x < margin || p.y < headline {
				t.Errorf("seed %d: box %s lies outside: %+v", seed, a.ID, p)
			}
			for _, b := range d.Boxes[i+1:] {
				q := at[b.ID]
				if p.x < q.x+q.width && q.x < p.x+p.width && p.y < q.y+boxHeight && q.y < p.y+boxHeight {
					t.Errorf("seed %d: boxes %s %+v and %s %+v overlap", seed, a.ID, p, b.ID, q)
				}
			}
		}
	}
}

// TestLayoutOfATree checks that children are to the right of their parent, which is centered
// beside them.
func TestLayoutOfATree(t *testing.T) {
	t.Parallel()
	d := Diagram{
		Boxes:  []Box{{ID: "root"}, {ID: "a"}, {ID: "b"}, {ID: "deep"}},
		Arrows: []Arrow{{From: "root", To: "a"}, {From: "root", To: "b"}, {From: "a", To: "deep"}, {From: "root", To: "deep"}},
	}
	at := d.layout()
	if at["root"].y != (at["a"].y+at["b"].y)/2 || at["a"].y != at["deep"].y || at["deep"].x <= at["a"].x || at["a"].x != at["b"].x {
		t.Errorf("%+v", at)
	}
}

// TestEscaping checks that names cannot inject markup.
func TestEscaping(t *testing.T) {
	t.Parallel()
	const evil = `"]<script>&\`
	d := Diagram{Title: evil, Boxes: []Box{{ID: evil, Head: evil, Text: evil, Note: evil}}, Arrows: []Arrow{{From: evil, To: evil, Label: evil}}}
	for _, format := range Formats() {
		var b strings.Builder
		if err := d.Draw(&b, format); err != nil {
			t.Fatal(err)
		}
		if format != "dot" && strings.Contains(b.String(), "<script") {
			t.Errorf("%s:\n%s", format, b.String())
		}
	}
	for decoder := xml.NewDecoder(strings.NewReader(d.svg())); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(d.dot(), `"\"]<script>&\\" -> `) {
		t.Error(d.dot())
	}
	if err := d.Draw(io.Discard, "png"); err == nil || !strings.Contains(err.Error(), "svg") {
		t.Error(err)
	}
}
