// Licenses collects the license texts of all modules that are linked into the
// given packages, for release archives.
//
// Usage:
//
//	go run ./tools/licenses DIRECTORY PACKAGE…
//
// It writes DIRECTORY/MODULE@VERSION/LICENSE and similar files, and fails for a module
// without a license, which must not be distributed.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
)

// module is a module as printed by `go list`.
type module struct {
	Path    string
	Version string
	Dir     string
	Main    bool
	Replace *module
}

// named matches the names of license files.
var named = regexp.MustCompile(`(?i)^((un)?licen[cs]e|copying|notice|patents)([.-].*)?$`)

// section matches the heading of the license section in a readme.
var section = regexp.MustCompile(`(?im)^#+\s*licen[cs]e\s*$`)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: licenses DIRECTORY PACKAGE…")
		os.Exit(1)
	}
	if err := collect(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "✗", err)
		os.Exit(1)
	}
}

// collect copies the license files of all modules that packages import into directory.
func collect(folder string, packages []string) error {
	modules, err := dependencies(packages)
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range modules {
		errs = append(errs, copyTerms(m, filepath.Join(folder, filepath.FromSlash(m.Path)+"@"+m.Version)))
	}
	return errors.Join(errs...)
}

// dependencies returns the modules of packages and of all their imports, except for
// the main module and the standard library.
func dependencies(packages []string) ([]module, error) {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-json=Module"}, packages...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var modules []module
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ Module *module }
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if p.Module != nil && !p.Module.Main {
			if p.Module.Replace != nil {
				p.Module.Dir = p.Module.Replace.Dir
			}
			modules = append(modules, *p.Module)
		}
	}
	slices.SortFunc(modules, func(a, b module) int { return cmp.Compare(a.Path, b.Path) })
	return slices.CompactFunc(modules, func(a, b module) bool { return a.Path == b.Path }), nil
}

// copyTerms copies the license files in the root of a module into directory.
func copyTerms(m module, folder string) error {
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return fmt.Errorf("%s@%s: %w", m.Path, m.Version, err)
	}
	terms := slices.DeleteFunc(slices.Clone(entries), func(e os.DirEntry) bool {
		return !e.Type().IsRegular() || !named.MatchString(e.Name()) || filepath.Ext(e.Name()) == ".go"
	})
	// If there is no license file, the license is a section of the readme.
	inReadme := len(terms) == 0
	if inReadme {
		terms = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return e.Name() != "README.md" })
	}
	found := false
	for _, e := range terms {
		text, err := os.ReadFile(filepath.Join(m.Dir, e.Name()))
		if err != nil {
			return err
		}
		if inReadme && !section.Match(text) {
			continue
		}
		found = true
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, e.Name()), text, 0o644); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("%s@%s: no license in its root", m.Path, m.Version)
	}
	return nil
}
