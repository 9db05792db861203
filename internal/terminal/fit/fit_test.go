package fit_test

import (
	"testing"

	"github.com/fluxkit/flux/internal/terminal/fit"
)

func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text               string
		columns, most      int
		end, middle, fills string
	}{
		{"", 0, 5, "", "", "     "},
		{"abcdefgh", 8, 5, "abcd…", "ab…gh", "abcdefgh"},
		{"größer", 6, 6, "größer", "größer", "größer"},
		{"größer", 6, 5, "größ…", "gr…er", "größer"},
		{"日本語版", 8, 5, "日本…", "日…版", "日本語版"},
		{"日本", 4, 6, "日本", "日本", "日本  "},
		{"✔ ok …", 6, 6, "✔ ok …", "✔ ok …", "✔ ok …"},
		{"a b", 3, 0, "a b", "a b", "a b"},
	} {
		if got := fit.Width(c.text); got != c.columns {
			t.Errorf("%q has %d columns, want %d", c.text, got, c.columns)
		}
		for name, got := range map[string][2]string{
			"the end": {fit.Cut(c.text, c.most), c.end}, "the middle": {fit.CutMiddle(c.text, c.most), c.middle}, "spaces": {fit.Fill(c.text, c.most), c.fills},
		} {
			if got[0] != got[1] {
				t.Errorf("%q to %d, %s: got %q, want %q", c.text, c.most, name, got[0], got[1])
			}
		}
	}
}
