// Language reports expressions in comments, strings and documents that words.txt
// rejects, with their replacements.
//
// Usage:
//
//	go run ./tools/language [DIRECTORY]
//
// It prints one line for each finding and exits 1 if there are findings.
package main

import (
	"fmt"
	"os"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	words, err := readWords(wordList)
	if err == nil {
		var found []finding
		if found, err = check(os.DirFS(root), words); err == nil {
			for _, f := range found {
				fmt.Println(f)
			}
			if len(found) > 0 {
				err = fmt.Errorf("%d findings: see docs/glossary.md and tools/language/words.txt", len(found))
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "✗", err)
		os.Exit(1)
	}
}
