package diff

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/pkg/controllers"
)

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMaskByOrigin(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ref                   controllers.VersionedID
		before, built, after  string
		secret                [][]string
		wantBefore, wantAfter string
	}{
		"a Secret": {
			ref:        controllers.VersionedID{ID: controllers.ID{Kind: "Secret"}},
			before:     "data: {a: b2xk, b: c2FtZQ==, c: Z29uZQ==}\nmetadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: all, x: y}}",
			after:      "data: {a: bmV3, b: c2FtZQ==, d: bmV3}",
			wantBefore: "data: {a: '*** (before)', b: '***', c: '***'}\nmetadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: '***', x: y}}",
			wantAfter:  "data: {a: '*** (after)', b: '***', d: '***'}",
		},
		"data that is not a map": {ref: controllers.VersionedID{ID: controllers.ID{Kind: "Secret"}}, before: "data: text", after: "{}", wantBefore: "data: '***'", wantAfter: "{}"},
		"an element by its name": {
			built:      "l: [{name: y, v: new}]",
			before:     "l: [{name: x, v: plain}, {name: y, v: old}]",
			after:      "l: [{name: x, v: plain}, {name: y, v: new}]",
			secret:     [][]string{{"l", "0", "v"}},
			wantBefore: "l: [{name: x, v: plain}, {name: y, v: '*** (before)'}]",
			wantAfter:  "l: [{name: x, v: plain}, {name: y, v: '*** (after)'}]",
		},
		"an element without a name": {
			built: "l: [a, new]", before: "l: [old]", after: "l: [a, new]", secret: [][]string{{"l", "1"}},
			wantBefore: "l: '*** (before)'", wantAfter: "l: '*** (after)'",
		},
		"another kind of value live": {
			built: "a: {b: new}", before: "a: old", after: "a: {b: new}", secret: [][]string{{"a", "b"}},
			wantBefore: "a: '*** (before)'", wantAfter: "a: '*** (after)'",
		},
		"everything": {
			built: "kind: X\nspec: new", before: "kind: X\nspec: old\nmore: old", after: "kind: X\nspec: new", secret: [][]string{{}},
			wantBefore: "kind: X\nspec: '*** (before)'\nmore: '***'", wantAfter: "kind: X\nspec: '*** (after)'",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after := parse(t, c.before), parse(t, c.after)
			Mask(c.ref, parse(t, c.built), before, after, c.secret)
			if d := cmp.Diff(parse(t, c.wantBefore), before); d != "" {
				t.Errorf("before (-want +got):\n%s", d)
			}
			if d := cmp.Diff(parse(t, c.wantAfter), after); d != "" {
				t.Errorf("after (-want +got):\n%s", d)
			}
		})
	}
}

func TestMaskByValue(t *testing.T) {
	t.Parallel()
	before := parse(t, "a: 'say open-sesame'\nb: [x, open-sesame]\nc: {d: eu}\nsame: open-sesame\ngone: text\ntext: open-sesame\nmap: {a: x}\nmixed: [x]")
	after := parse(t, "a: plain\nb: [x]\nc: {d: eu, e: {f: [open-sesame]}}\nsame: open-sesame\ntext: {a: open-sesame}\nmap: open-sesame\nmixed: {\"-1\": x, \"7\": y}")
	secretTexts{[]string{"open-sesame", "eu"}, true}.mask(before, after)
	wantBefore := parse(t, "a: '*** (before)'\nb: [x, '*** (before)']\nc: {d: eu}\nsame: '***'\ngone: '*** (before)'\ntext: '*** (before)'\nmap: {a: '*** (before)'}\nmixed: ['*** (before)']")
	wantAfter := parse(t, "a: plain\nb: [x]\nc: {d: eu, e: {f: ['*** (after)']}}\nsame: '***'\ntext: {a: '*** (after)'}\nmap: '*** (after)'\nmixed: {\"-1\": x, \"7\": y}")
	if d := cmp.Diff(wantBefore, before); d != "" {
		t.Errorf("before (-want +got):\n%s", d)
	}
	if d := cmp.Diff(wantAfter, after); d != "" {
		t.Errorf("after (-want +got):\n%s", d)
	}
}
