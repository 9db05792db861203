package main

import (
	"bufio"
	_ "embed"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

//go:embed words.txt
var wordList string

// word is an expression that is not used in this project.
type word struct {
	pattern *regexp.Regexp
	// parts lists strings in lower case. Each match contains one of them, and it takes less time to find them than to match
	// the pattern. If parts is nil, the pattern is matched with every text.
	parts   []string
	instead string
}

// in reports whether a text in lower case may match.
func (w word) in(lower string) bool {
	return w.parts == nil || slices.ContainsFunc(w.parts, func(part string) bool { return strings.Contains(lower, part) })
}

// partsOf returns the parts of a word for an expression.
func partsOf(re *syntax.Regexp) []string {
	var best []string
	switch re.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(re.Rune))}
	case syntax.OpCapture, syntax.OpPlus:
		return partsOf(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if parts := partsOf(sub); best == nil || parts != nil && shortest(parts) > shortest(best) {
				best = parts
			}
		}
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			parts := partsOf(sub)
			if parts == nil {
				return nil
			}
			best = append(best, parts...)
		}
	}
	return best
}

func shortest(parts []string) int {
	return len(slices.MinFunc(parts, func(a, b string) int { return len(a) - len(b) }))
}

// finding is an occurrence of a word in a file.
type finding struct {
	file    string
	line    int
	text    string
	instead string
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %q: write %s", f.file, f.line, f.text, f.instead)
}

// readWords parses a list of words: each line consists of a pattern, a tab and the replacement. Empty lines and lines that
// begin with # are ignored.
func readWords(list string) ([]word, error) {
	var words []word
	lines := bufio.NewScanner(strings.NewReader(list))
	for n := 1; lines.Scan(); n++ {
		if line := lines.Text(); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern, instead, ok := strings.Cut(lines.Text(), "\t")
		if !ok {
			return nil, fmt.Errorf("words.txt:%d: no tab between the pattern and the replacement", n)
		}
		compiled, err := regexp.Compile(`(?i)\b(?:` + strings.ReplaceAll(pattern, " ", `\s+`) + `)\b`)
		if err != nil {
			return nil, fmt.Errorf("words.txt:%d: %w", n, err)
		}
		parsed, err := syntax.Parse(compiled.String(), syntax.Perl)
		if err != nil {
			return nil, fmt.Errorf("words.txt:%d: %w", n, err)
		}
		words = append(words, word{compiled, partsOf(parsed), instead})
	}
	return words, lines.Err()
}

// check searches the Go files, Markdown documents and test scripts in root, except for generated files, recorded files, and
// files that list the words themselves.
func check(root fs.FS, words []word) ([]finding, error) {
	var found []finding
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if base := path.Base(name); name != "." && (strings.HasPrefix(base, ".") || skipped[base]) || skipped[name] {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() || skipped[name] {
			return nil
		}
		var split func(string) []passage
		switch path.Ext(name) {
		case ".go":
			split = goPassages
		case ".md":
			split = wholePassage
		case ".txtar":
			split = scriptPassages
		default:
			return nil
		}
		if strings.Contains("/"+name, "/testdata/") && path.Ext(name) != ".txtar" {
			return nil
		}
		content, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		if !generated.Match(content) {
			for _, p := range split(string(content)) {
				found = append(found, search(name, p, words)...)
			}
		}
		return nil
	})
	return found, err
}

// skipped lists the directories and files that are not searched: build output, the generated command reference, and the two
// documents that list the words.
var skipped = map[string]bool{
	"bin": true, "dist": true, "tools/language": true, "docs/cmd": true, "docs/glossary.md": true,
}

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// passage is a section of a file: a string, or comments on consecutive lines.
type passage struct {
	line int
	text string
}

func wholePassage(content string) []passage { return []passage{{1, content}} }

// scriptPassages returns the comments of a test script, except for comments in its embedded files. Comments on consecutive
// lines are one passage.
func scriptPassages(source string) []passage {
	var passages []passage
	last := -1
	for n, line := range strings.Split(source, "\n") {
		if strings.HasPrefix(line, "-- ") && strings.HasSuffix(line, " --") {
			break
		}
		text, comment := strings.CutPrefix(line, "#")
		switch {
		case comment && n == last+1 && n > 0:
			passages[len(passages)-1].text += "\n" + text
		case comment:
			passages = append(passages, passage{n + 1, text})
		default:
			continue
		}
		last = n
	}
	return passages
}

// goPassages returns the strings and comments of a Go file. Comments on consecutive lines are one passage, because a
// sentence can span several lines.
func goPassages(source string) []passage {
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, []byte(source), nil, scanner.ScanComments)
	var passages []passage
	last := -1 // the line of the last comment
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return passages
		}
		line := file.Line(pos)
		switch tok {
		case token.COMMENT:
			text = strings.TrimPrefix(text, "//")
			if line == last+1 {
				passages[len(passages)-1].text += "\n" + text
			} else {
				passages = append(passages, passage{line, text})
			}
			last = line
		case token.STRING:
			passages = append(passages, passage{line, text})
			last = -1
		case token.SEMICOLON: // inserted by the scanner at the end of a line
		default:
			last = -1
		}
	}
}

func search(name string, p passage, words []word) []finding {
	var found []finding
	lower := strings.ToLower(p.text)
	for _, w := range words {
		if !w.in(lower) {
			continue
		}
		for _, at := range w.pattern.FindAllStringIndex(p.text, -1) {
			line := p.line + strings.Count(p.text[:at[0]], "\n")
			text := strings.Join(strings.Fields(p.text[at[0]:at[1]]), " ")
			found = append(found, finding{name, line, text, w.instead})
		}
	}
	slices.SortStableFunc(found, func(a, b finding) int { return a.line - b.line })
	return found
}
