package testdocs_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/test/support/testdocs"
)

const document = "# The `flux` guide: Part 1, v2.9\n\n## Set up\n\nRun [the steps](steps.md#set-up), see ![a picture](a.svg), but not `[code](code.md)`.\n\n" +
	"```sh exit=1 skip=\"needs a token\"\nflux why [x](y)\n# Set up\n```\n\n```output\n```\n\n## Set up\n\nWrite `a.yaml`:\n\n```yaml title=a.yaml\na: 1\n```\n\n```\nno language\n```\n\n[reference][r]\n\n[r]: https://example.com\n"

func TestParse(t *testing.T) {
	t.Parallel()
	d, err := testdocs.Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"steps.md#set-up", "a.svg", "https://example.com"}, d.Links); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	anchors := slices.Sorted(maps.Keys(d.Anchors))
	if diff := cmp.Diff([]string{"set-up", "set-up-1", "the-flux-guide-part-1-v29"}, anchors); diff != "" {
		t.Errorf("anchors (-want +got):\n%s", diff)
	}
	want := []testdocs.Block{
		{Line: 7, Language: "sh", Attributes: map[string]string{"exit": "1", "skip": "needs a token"}, Text: "flux why [x](y)\n# Set up\n"},
		{Line: 12, Language: "output", Attributes: map[string]string{}},
		{Line: 19, Language: "yaml", Attributes: map[string]string{"title": "a.yaml"}, Text: "a: 1\n", Before: "Write `a.yaml`:"},
		{Attributes: map[string]string{}},
	}
	for i, b := range d.Blocks {
		if text := document[b.Start:b.End]; b.Language != "" && text != b.Text {
			t.Errorf("the offsets of block %d have %q, want %q", i, text, b.Text)
		}
		d.Blocks[i].Start, d.Blocks[i].End, d.Blocks[i].Before = 0, 0, strings.TrimSpace(b.Before)
	}
	want[0].Before = "Run [the steps](steps.md#set-up), see ![a picture](a.svg), but not `[code](code.md)`."
	want[3].Before = ""
	for i := range want {
		if i == 1 || i == 3 {
			want[i].Before = d.Blocks[i].Before // the text before code blocks is irrelevant
		}
	}
	if diff := cmp.Diff(want, d.Blocks); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
	if _, err := testdocs.Parse([]byte("```sh exit=1 skip\nls\n```\n")); err == nil || !strings.Contains(err.Error(), "line 1: invalid attributes") {
		t.Errorf("an invalid attribute: %v", err)
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		documented, output string
		want               bool
	}{
		"equal":                        {"a\nb\n", "a\nb\n", true},
		"another word":                 {"a b\n", "a c\n", false},
		"another line at the end":      {"a\n", "a\nb\n", false},
		"a line less":                  {"a\nb\n", "a\n", false},
		"width of a column":            {"NAME \tAGE\nweb  \t1s\n", "NAME\tAGE\nweb\t10s\n", true},
		"indentation":                  {"  a\n", "a\n", false},
		"pod":                          {"Pod/default/web-5fdd9fc4bd-7f8g8\n", "Pod/default/web-69fdd4c8b-xx2zz\n", true},
		"pod of another Deployment":    {"Pod/default/web-5fdd9fc4bd-7f8g8\n", "Pod/default/app-5fdd9fc4bd-7f8g8\n", false},
		"revision":                     {"main@sha1:3199b18e\n", "main@sha1:0123abcd\n", true},
		"another branch":               {"main@sha1:3199b18e\n", "next@sha1:3199b18e\n", false},
		"revision, not a word":         {"main@sha1:3199b18e\n", "main@sha1:unknown\n", false},
		"port":                         {"http://127.0.0.1:1/a\n", "http://127.0.0.1:20000/a\n", true},
		"another path":                 {"http://127.0.0.1:1/a\n", "http://127.0.0.1:1/b\n", false},
		"time":                         {"(2026-11-22 00:11:16 UTC (1s ago))\n", "(2027-01-02 03:04:05 UTC (1m2s ago))\n", true},
		"number, not a time":           {"3 changed\n", "4 changed\n", false},
		"lines left out":               {"a\n…\nz\n", "a\nb\nc\nz\n", true},
		"no lines left out":            {"a\n…\nz\n", "a\nz\n", true},
		"last line after those":        {"a\n…\nz\n", "a\nb\n", false},
		"text left out":                {"error: … failed\n", "error: x y failed\n", true},
		"text left out over two lines": {"error: … failed\n", "error: x\ny failed\n", false},
		"characters of expressions":    {"a.b*\n", "axbb\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := testdocs.Matches(c.documented, c.output); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestWithoutProgress(t *testing.T) {
	t.Parallel()
	if got := testdocs.WithoutProgress("► a ◎ b\n◎ waiting\n◎ still\n✔ c\n ◎ d\n"); got != "► a ◎ b\n✔ c\n ◎ d\n" {
		t.Errorf("got %q", got)
	}
}

func TestMatchesInAnyOrder(t *testing.T) {
	t.Parallel()
	const documented = "Ready\n   0.9s  a\n  13.1s  b (12.0s)\n"
	for output, want := range map[string]bool{
		"Ready\n   1.9s  a\n   2.1s  b (1.0s)\n": true, "Ready\n   1.1s  b (1.1s)\n  12.2s  a\n": true, "Ready\n1.1s  b (1.1s)\n  12.2s  a\n": false,
		"Ready\n   1.1s  b (1.0s)\n": false, "Ready\n   1.1s  a\n   2.2s  a\n": false, "Ready\n   1.1s  a\n   2.2s  b (1.0s)\n   2.3s  c\n": false,
	} {
		if got := testdocs.MatchesInAnyOrder(documented, output); got != want {
			t.Errorf("%q: %v", output, got)
		}
	}
}

// TestReportOfTests compares a report of flux test with one of a slower machine.
func TestReportOfTests(t *testing.T) {
	t.Parallel()
	const documented = `Ready, in this order
   0.9s  GitRepository/flux-system/flux-system (0.9s)
  15.4s  Kustomization/flux-system/web (12.0s)
  16.5s  Kustomization/flux-system/flux-system (16.5s)
✔ 3 of 3 Flux resources ready in 16.5s, 3 assertions passed
`
	const output = `Ready, in this order
   1.9s  GitRepository/flux-system/flux-system (1.9s)
   6.0s  Kustomization/flux-system/flux-system (6.0s)
  10.6s  Kustomization/flux-system/web (6.6s)
✔ 3 of 3 Flux resources ready in 10.6s, 3 assertions passed
`
	if !testdocs.MatchesInAnyOrder(documented, output) {
		t.Error("the reports differ")
	}
	if testdocs.MatchesInAnyOrder(documented, strings.Replace(output, "3 assertions", "2 assertions", 1)) {
		t.Error("reports with another number of assertions do not differ")
	}
}
