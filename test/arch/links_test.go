package arch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testdocs"
)

// TestLinks checks that the relative links of all documents lead to files and headings of the repository.
func TestLinks(t *testing.T) {
	t.Parallel()
	root := testcluster.Root()
	files, err := testdocs.Files(root)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, file := range files {
		links, broken := brokenLinks(t, root, file)
		checked += links
		for _, problem := range broken {
			t.Errorf("%s: %s", file, problem)
		}
	}
	if len(files) < 100 || checked < 200 {
		t.Errorf("only %d links of %d documents were found", checked, len(files))
	}
}

// TestBrokenLinks checks links that do not lead anywhere, and similar ones that do.
func TestBrokenLinks(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, content := range map[string]string{
		"docs/other.md": "# Exit codes\n", "docs/picture.svg": "<svg/>", "README.md": "",
		"docs/page.md": "# A page\n[1](other.md) [2](other.md#exit-codes) [3](#a-page) [4](../README.md) ![5](picture.svg) [6](https://example.com/no.md) [7](../docs)\n",
		"docs/bad.md":  "# A page\n[1](others.md) [2](other.md#exit-code) [3](#page) [4](README.md) ![5](pictures.svg) [6](/README.md) [7](../../outside.md)\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if links, broken := brokenLinks(t, root, filepath.Join("docs", "page.md")); links != 6 || len(broken) > 0 {
		t.Errorf("%d links, broken %q", links, broken)
	}
	if links, broken := brokenLinks(t, root, filepath.Join("docs", "bad.md")); links != 7 || len(broken) != 7 {
		t.Errorf("%d links, broken %q", links, broken)
	}
}

// brokenLinks returns the number of relative links of a document, and what is wrong with them.
func brokenLinks(t *testing.T, root, file string) (links int, broken []string) {
	t.Helper()
	for _, link := range testdocs.Read(t, filepath.Join(root, file)).Links {
		if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
			continue
		}
		links++
		path, fragment, _ := strings.Cut(link, "#")
		target := file
		if path != "" {
			target = filepath.Join(filepath.Dir(file), path)
		}
		_, err := os.Stat(filepath.Join(root, target))
		switch {
		case strings.HasPrefix(path, "/") || !filepath.IsLocal(target):
			broken = append(broken, fmt.Sprintf("the link %s leads outside the repository", link))
		case err != nil:
			broken = append(broken, fmt.Sprintf("the link %s leads to a file that does not exist", link))
		case fragment != "" && (filepath.Ext(target) != ".md" || !testdocs.Read(t, filepath.Join(root, target)).Anchors[fragment]):
			broken = append(broken, fmt.Sprintf("the link %s leads to a heading that does not exist", link))
		}
	}
	return links, broken
}
