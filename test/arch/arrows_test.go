package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fluxkit/flux/test/support/testcluster"
)

const (
	// backArrows is the maximum percentage of calls that point upwards.
	backArrows = 15
	// fewArrows is the number of upward calls that every package may have.
	fewArrows = 2
)

// TestArrowsPointDown checks that the files of a package can be read from top to bottom: in the best order of the files,
// few calls point from a file to one above it.
func TestArrowsPointDown(t *testing.T) {
	t.Parallel()
	for dir, calls := range callsOfPackages(t) {
		order := bestOrder(calls)
		back, all := count(calls, order)
		share := 0
		if all > 0 {
			share = (100*len(back) + all - 1) / all
		}
		t.Logf("%3d%% %4d/%4d %s", share, len(back), all, dir)
		if share > backArrows && len(back) > fewArrows {
			t.Errorf("%s: %d%% of the calls between its files point back up, at most %d%% are allowed, in the order %s:\n\t%s", dir, share, backArrows, strings.Join(order, " "), strings.Join(back, "\n\t"))
		}
	}
}

// call is a function or method that one file of a package uses and another one declares.
type call struct{ from, to, name string }

// callsOfPackages returns the calls between the files of each package of cmd, pkg and internal.
func callsOfPackages(t *testing.T) map[string][]call {
	t.Helper()
	files := map[string][]*ast.File{}
	positions := token.NewFileSet()
	eachFile(t, func(name string, _ *ast.File) {
		dir := path.Dir(name)
		floor, _, _ := strings.Cut(dir, "/")
		if strings.HasSuffix(name, "_test.go") || !slices.Contains([]string{"cmd", "pkg", "internal"}, floor) {
			return
		}
		file, err := parser.ParseFile(positions, filepath.Join(testcluster.Root(), name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[dir] = append(files[dir], file)
	})
	found := map[string][]call{}
	for dir, all := range files {
		found[dir] = callsBetween(positions, all)
	}
	return found
}

// callsBetween returns the calls between the files of a package, each name once for each pair of files.
func callsBetween(positions *token.FileSet, files []*ast.File) []call {
	// Imported packages are not loaded, so only declarations of the package itself are resolved.
	config := types.Config{Importer: unknown{}, Error: func(error) {}, FakeImportC: true}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	self, _ := config.Check("self", positions, files, info)
	calls := map[call]bool{}
	for use, object := range info.Uses {
		f, ok := object.(*types.Func)
		if !ok || f.Pkg() != self {
			continue
		}
		from, to := filepath.Base(positions.Position(use.Pos()).Filename), filepath.Base(positions.Position(f.Pos()).Filename)
		if from != to {
			calls[call{from, to, f.Name()}] = true
		}
	}
	return slices.SortedFunc(maps.Keys(calls), func(a, b call) int {
		return strings.Compare(a.from+" "+a.to+" "+a.name, b.from+" "+b.to+" "+b.name)
	})
}

// unknown is an importer of empty packages.
type unknown struct{}

func (unknown) Import(name string) (*types.Package, error) {
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}

// bestOrder returns an order of the files with few upward calls: it moves each file to its best position until nothing
// changes.
func bestOrder(calls []call) []string {
	weight := map[[2]string]int{}
	balance := map[string]int{}
	for _, c := range calls {
		weight[[2]string{c.from, c.to}]++
		balance[c.from]++
		balance[c.to]--
	}
	order := slices.SortedFunc(maps.Keys(balance), func(a, b string) int {
		if d := balance[b] - balance[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for changed := true; changed; {
		changed = false
		for _, file := range slices.Sorted(slices.Values(order)) {
			at := slices.Index(order, file)
			rest := slices.Delete(slices.Clone(order), at, at+1)
			// cost is the number of upward calls of the file at a position, compared with the first position.
			best, lowest, cost, own := 0, 0, 0, 0
			for i := range rest {
				cost += weight[[2]string{file, rest[i]}] - weight[[2]string{rest[i], file}]
				if cost < lowest {
					best, lowest = i+1, cost
				}
				if i+1 == at {
					own = cost
				}
			}
			if lowest < own {
				order, changed = slices.Insert(rest, best, file), true
			}
		}
	}
	return order
}

// count returns the number of upward calls in an order, and of all calls.
func count(calls []call, order []string) (back []string, all int) {
	for _, c := range calls {
		if slices.Index(order, c.from) > slices.Index(order, c.to) {
			back = append(back, c.from+" → "+c.to+": "+c.name)
		}
	}
	return back, len(calls)
}
