package arch_test

import (
	"bytes"
	"go/ast"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/fluxkit/flux/test/support/testcluster"
)

// size is the size of a package without its tests: lines, files, and imported packages of this module.
type size struct{ lines, files, imports int }

// largest is the maximum size of a package.
var largest = size{lines: 3000, files: 25, imports: 16}

// larger lists the packages that exceed the limits, with their maximum sizes, which may only decrease.
var larger = map[string]size{
	"cmd/flux/internal/diff": {imports: 19},
	"cmd/flux/internal/root": {imports: 57}, // one for each verb
}

// TestPackageSizes limits the size of each package.
func TestPackageSizes(t *testing.T) {
	t.Parallel()
	sizes, imports := map[string]size{}, map[[2]string]bool{}
	eachFile(t, func(name string, file *ast.File) {
		floor, _, _ := strings.Cut(name, "/")
		if strings.HasSuffix(name, "_test.go") || floor != "cmd" && floor != "pkg" && floor != "internal" {
			return
		}
		dir := path.Dir(name)
		s := sizes[dir]
		s.files++
		s.lines += linesOf(t, filepath.Join(testcluster.Root(), name))
		for _, spec := range file.Imports {
			if key := [2]string{dir, spec.Path.Value}; strings.HasPrefix(spec.Path.Value, `"`+module) && !imports[key] {
				imports[key] = true
				s.imports++
			}
		}
		sizes[dir] = s
	})
	for dir, s := range sizes {
		most := larger[dir]
		for what, figures := range map[string][3]int{
			"lines": {s.lines, largest.lines, most.lines}, "files": {s.files, largest.files, most.files}, "imports of own packages": {s.imports, largest.imports, most.imports},
		} {
			if figures[0] > max(figures[1], figures[2]) {
				t.Errorf("%s has %d %s, at most %d are allowed: split it", dir, figures[0], what, max(figures[1], figures[2]))
			}
			if figures[2] > 0 && figures[0] <= figures[1] {
				t.Errorf("%s has %d %s: remove its exception", dir, figures[0], what)
			}
		}
	}
	for dir := range larger {
		if sizes[dir].files == 0 {
			t.Errorf("%s does not exist: remove its exception", dir)
		}
	}
}

// slack is the number of lines by which the number in testdata/lines may be too high.
const slack = 300

// TestProductLines limits the number of product lines, excluding tests and test support, to the number in
// testdata/lines. The message of a commit that increases it contains the reason.
func TestProductLines(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "lines"))
	if err != nil {
		t.Fatal(err)
	}
	most, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, top := range []string{"cmd", "internal", "pkg", "manifests", "sandbox", "tools"} {
		err := filepath.WalkDir(filepath.Join(testcluster.Root(), top), func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "bin"):
				return filepath.SkipDir
			case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
				lines += linesOf(t, name)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if lines > most {
		t.Errorf("the product has %d lines, %d are allowed: delete what is dead, or raise testdata/lines and say why in the commit", lines, most)
	}
	if lines < most-slack {
		t.Errorf("the product has only %d lines: lower the figure %d in testdata/lines", lines, most)
	}
}

func linesOf(t *testing.T, name string) int {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(text, []byte("\n"))
}
