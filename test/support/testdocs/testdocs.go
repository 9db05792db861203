// Package testdocs reads the Markdown documents of the repository for tests: their code blocks, links
// and headings.
package testdocs

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// Document is a parsed Markdown document.
type Document struct {
	Source []byte
	Blocks []Block
	// Links lists the targets of links and images in their order.
	Links []string
	// Anchors lists the fragments that links can refer to.
	Anchors map[string]bool
}

// Block is a fenced code block.
type Block struct {
	// Line is the line of the opening fence.
	Line int
	// Language is the first word of the info string, and Attributes are the others: key=value or
	// key="some words".
	Language   string
	Attributes map[string]string
	Text       string
	// Before is the source before the block.
	Before string
	// Start and End are the offsets of Text in the source.
	Start, End int
}

// Files returns the paths of all Markdown documents below root, relative to it, without build output.
func Files(root string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			name := entry.Name()
			hidden := path != root && strings.HasPrefix(name, ".") && name != ".github" && name != ".gitlab"
			if hidden || name == "bin" || name == "dist" || name == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) == ".md" {
			relative, err := filepath.Rel(root, path)
			files = append(files, relative)
			return err
		}
		return nil
	})
	return files, err
}

// Read reads and parses a document.
func Read(t testing.TB, path string) Document {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Parse(source)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return d
}

// Parse parses a document as GitHub does.
func Parse(source []byte) (Document, error) {
	d := Document{Source: source, Anchors: map[string]bool{}}
	root := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	err := ast.Walk(root, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := node.(type) {
		case *ast.FencedCodeBlock:
			b, err := block(n, source)
			if err != nil {
				return ast.WalkStop, err
			}
			d.Blocks = append(d.Blocks, b)
		case *ast.Heading:
			d.addAnchor(plain(n, source))
		case *ast.Link:
			d.Links = append(d.Links, string(n.Destination))
		case *ast.Image:
			d.Links = append(d.Links, string(n.Destination))
		}
		return ast.WalkContinue, nil
	})
	return d, err
}

var attribute = regexp.MustCompile(`^([a-z]+)=("[^"]*"|[^\s"]+)(?:\s+|$)`)

func block(n *ast.FencedCodeBlock, source []byte) (Block, error) {
	b := Block{Attributes: map[string]string{}}
	if n.Info == nil {
		return b, nil // without a language: an illustration
	}
	info := n.Info.Segment
	b.Line = 1 + bytes.Count(source[:info.Start], []byte("\n"))
	b.Language, _, _ = strings.Cut(string(info.Value(source)), " ")
	rest := strings.TrimSpace(strings.TrimPrefix(string(info.Value(source)), b.Language))
	for rest != "" {
		m := attribute.FindStringSubmatch(rest)
		if m == nil {
			return b, fmt.Errorf("line %d: invalid attributes %q: must be key=value or key=\"some words\"", b.Line, rest)
		}
		b.Attributes[m[1]] = strings.Trim(m[2], `"`)
		rest = rest[len(m[0]):]
	}
	b.Start = info.Stop + bytes.IndexByte(source[info.Stop:], '\n') + 1
	b.End = b.Start
	if lines := n.Lines(); lines.Len() > 0 {
		b.Start, b.End = lines.At(0).Start, lines.At(lines.Len()-1).Stop
		b.Text = string(lines.Value(source))
	}
	if before := n.PreviousSibling(); before != nil && before.Type() == ast.TypeBlock && before.Lines() != nil {
		b.Before = string(before.Lines().Value(source))
	}
	return b, nil
}

// plain returns the text of a heading without markup.
func plain(n ast.Node, source []byte) string {
	var words strings.Builder
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		if t, ok := child.(*ast.Text); ok {
			words.Write(t.Segment.Value(source))
		} else {
			words.WriteString(plain(child, source))
		}
	}
	return words.String()
}

// addAnchor adds the fragment of a heading, with a number if the fragment already exists.
func (d Document) addAnchor(heading string) {
	fragment := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, heading)
	unique := fragment
	for n := 1; d.Anchors[unique]; n++ {
		unique = fmt.Sprintf("%s-%d", fragment, n)
	}
	d.Anchors[unique] = true
}
