package arch_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testdocs"
)

const (
	// maxPage is the maximum number of lines of a page of the guide, without outputs.
	maxPage = 150
	// maxTroubleshooting is the limit for the page with one section per symptom, of which readers need only
	// one.
	maxTroubleshooting = 310
	// notRun is the number of blocks of the guide that cannot be run in a test.
	notRun = 6
)

// TestGuidePages checks the form of the guide: which blocks the test in test/e2e runs, compares and
// writes to files, and that the table of contents has all pages.
func TestGuidePages(t *testing.T) {
	t.Parallel()
	root := testcluster.Root()
	pages, err := filepath.Glob(filepath.Join(root, "docs", "guide", "[0-9]*.md"))
	if err != nil {
		t.Fatal(err)
	}
	contents := testdocs.Read(t, filepath.Join(root, "docs", "guide", "README.md")).Links
	skipped := 0
	for _, path := range pages {
		name := filepath.Base(path)
		d := testdocs.Read(t, path)
		if !slices.Contains(contents, name) {
			t.Errorf("%s is not in the table of contents", name)
		}
		lines := strings.Count(string(d.Source), "\n")
		for i, b := range d.Blocks {
			if problem := misformed(d.Blocks, i); problem != "" {
				t.Errorf("%s:%d: %s", name, b.Line, problem)
			}
			if b.Attributes["skip"] != "" {
				skipped++
			}
			if b.Language == "output" {
				lines -= strings.Count(b.Text, "\n") + 2 // the fences
			}
		}
		limit := maxPage
		if name == "07-troubleshooting.md" {
			limit = maxTroubleshooting
		}
		if lines > limit {
			t.Errorf("%s has %d lines, more than %d", name, lines, limit)
		}
	}
	if len(pages) == 0 || skipped != notRun {
		t.Errorf("%d pages with %d blocks that are not run, want %d", len(pages), skipped, notRun)
	}
}

// misformed returns an error about a block of the guide, or "".
func misformed(blocks []testdocs.Block, i int) string {
	b := blocks[i]
	title, reason := b.Attributes["title"], b.Attributes["skip"]
	known := map[string][]string{"sh": {"exit", "skip"}, "yaml": {"title", "skip"}, "text": {"title"}, "output": {"order"}}
	keys, ok := known[b.Language]
	switch {
	case !ok:
		return fmt.Sprintf("the language %q is none of sh, output, yaml and text", b.Language)
	case reason != "" && len(strings.Fields(reason)) < 3:
		return "skip needs a reason"
	case b.Language == "output" && (i == 0 || blocks[i-1].Language != "sh"):
		return "an output follows no commands"
	case b.Attributes["order"] != "" && b.Attributes["order"] != "any":
		return "order has one value: any"
	case b.Language == "output" && strings.Trim(b.Text, "…\n") == "":
		return "the output is empty"
	case (b.Language == "yaml" || b.Language == "text") && title == "" && reason == "":
		return "a file needs a title"
	case title != "" && !strings.Contains(b.Before, "`"+title+"`"):
		return "the text before the file does not name it"
	}
	for key := range b.Attributes {
		if !slices.Contains(keys, key) {
			return fmt.Sprintf("unknown attribute %s of a block of %s", key, b.Language)
		}
	}
	return ""
}

// TestMisformed checks blocks of a page that a test would not run or compare, and similar ones.
func TestMisformed(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"```sh\nls\n```\n```output\na\n```\n":               "",
		"```console\n$ ls\n```\n":                           `language "console"`,
		"```\nls\n```\n":                                    `language ""`,
		"```sh skip=later\nls\n```\n":                       "needs a reason",
		"```sh skip=\"needs a token of GitHub\"\nls\n```\n": "",
		"```sh exits=1\nls\n```\n":                          "unknown attribute exits",
		"```output\na\n```\n":                               "follows no commands",
		"```sh\nls\n```\n```output\n…\n```\n":               "output is empty",
		"```sh\nls\n```\n```output order=any\na\n```\n":     "",
		"```sh\nls\n```\n```output order=no\na\n```\n":      "order has one value: any",
		"```yaml\na: 1\n```\n":                              "needs a title",
		"In `b.yaml`:\n```yaml title=a.yaml\na: 1\n```\n":   "does not name it",
		"In `a.yaml`:\n\n```yaml title=a.yaml\na: 1\n```\n": "",
	} {
		d, err := testdocs.Parse([]byte(source))
		if err != nil {
			t.Fatal(err)
		}
		got := misformed(d.Blocks, len(d.Blocks)-1)
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", source, got, want)
		}
	}
}
