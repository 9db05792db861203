package inputs_test

import (
	"bytes"
	"math/rand/v2"
	"path"
	"strings"
	"testing"

	"github.com/fluxkit/flux/pkg/repository/inputs"
)

// TestMentions compares the index with a search for each path.
func TestMentions(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	word := func(letters string, most int) string {
		var b strings.Builder
		for range 1 + random.IntN(most) {
			b.WriteByte(letters[random.IntN(len(letters))])
		}
		return b.String()
	}
	var found, missed int
	for range 20_000 {
		file := path.Join(word("ab- @", 2), word("ab./", 4), word("ab.", 2))
		if strings.HasPrefix(file, ".") || file == "" {
			continue
		}
		text := word("ab/.- @", 12)
		if random.IntN(2) == 0 {
			text = word("./ a", 3) + path.Dir(file) + word("ab/ ", 3)
		}
		m := inputs.NewMentions([][]byte{[]byte(text)}, nil)
		if got, want := m.Name(file), strings.Contains(text, file); got != want {
			t.Fatalf("Name(%q) in %q is %t", file, text, got)
		}
		want := above(text, file)
		if got := m.Above(file); got != want {
			t.Fatalf("Above(%q) in %q is %t", file, text, got)
		}
		if want {
			found++
		} else {
			missed++
		}
	}
	if found < 100 || missed < 100 {
		t.Errorf("%d paths were found and %d were not: the test compares too few", found, missed)
	}
}

func above(text, file string) bool {
	for folder := path.Dir(file); folder != "."; folder = path.Dir(folder) {
		if containsPath(text, "./"+folder) || strings.Contains(folder, "/") && containsPath(text, folder) {
			return true
		}
	}
	return false
}

// containsPath reports whether a text contains a path that is not the beginning of a longer one.
func containsPath(text, name string) bool {
	for at := range text {
		rest, ok := strings.CutPrefix(text[at:], name)
		rest = strings.TrimPrefix(rest, "/")
		if ok && (rest == "" || strings.Trim(rest[:1], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") != "") {
			return true
		}
	}
	return false
}

// TestMentionsAll has texts that mention all files: an address of the repository, and more than can be searched.
func TestMentionsAll(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		text string
		want bool
	}{
		"an address":       {"url: https://example.com/fleet", true},
		"another address":  {"url: https://example.com/other", false},
		"too long":         {strings.Repeat("x", 8<<20+1), true},
		"at the limit":     {strings.Repeat("x", 8<<20), false},
		"no text":          {"", false},
		"a longer address": {"url: https://example.com/fleet/apps", true},
	} {
		m := inputs.NewMentions([][]byte{[]byte(row.text)}, []string{"https://example.com/fleet"})
		if m.Name("apps/a.yaml") != row.want || m.Above("apps/a.yaml") != row.want {
			t.Errorf("%s: want %t", name, row.want)
		}
	}
	// Paths do not extend from one text to the next.
	if m := inputs.NewMentions(bytes.SplitAfter([]byte("apps/|team"), []byte("|")), nil); m.Above("apps/|team/a.yaml") {
		t.Error("a path in two texts is found")
	}
}
