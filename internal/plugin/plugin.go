// Package plugin finds, installs, updates and runs plugins of the flux command:
// programs named flux-NAME that run as "flux NAME".
package plugin

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/lazy"
)

// The environment variables of Flux 2.9 for the plugin directory and the plugin catalog.
const (
	FolderVariable  = "FLUXCD_PLUGINS"
	CatalogVariable = "FLUXCD_PLUGIN_CATALOG"
)

// prefix is the prefix of plugin file names.
const prefix = "flux-"

// nameMax is the maximum length of a plugin name. File systems allow names of 255 bytes,
// and the names of temporary files are longer than the plugin name.
const nameMax = 100

var (
	// installable matches the names that a catalog may use.
	installable = lazy.Regexp(`^[a-z][a-z0-9-]*$`)
	// runnable matches the names that programs not installed by flux may use.
	runnable = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

// Plugin is a program that flux runs as a command.
type Plugin struct {
	Name string
	Path string
	// Receipt is nil if the program was not installed by flux.
	Receipt *Receipt
}

// Ignored is a program that is named like a plugin but cannot run as one.
type Ignored struct{ Path, Reason string }

// Finder searches the plugin directory and then the directories in PATH for plugins.
type Finder struct {
	// Directory is the plugin directory, or "" if there is none.
	Directory string
	// Path is the value of the environment variable PATH.
	Path string
	// Reserved reports whether a name is the name of a built-in command.
	Reserved func(name string) bool
}

// Find returns a plugin by name.
func (f Finder) Find(name string) (Plugin, bool) {
	if !validName(runnable(), name) || f.Reserved(name) {
		return Plugin{}, false
	}
	for _, folder := range f.directories() {
		if path := filepath.Join(folder, fileName(name)); executable(path) {
			return f.plugin(folder, name), true
		}
	}
	return Plugin{}, false
}

// All returns the plugins sorted by name, and the programs that cannot run as plugins
// because another program with the same name takes precedence or the name is the name of a
// built-in command. Directories that cannot be read before ctx is done are omitted.
func (f Finder) All(ctx context.Context) ([]Plugin, []Ignored) {
	found := map[string]Plugin{}
	var ignored []Ignored
	for _, folder := range f.directories() {
		if ctx.Err() != nil {
			break
		}
		for _, name := range namesIn(folder) {
			path := filepath.Join(folder, fileName(name))
			first, taken := found[name]
			switch {
			case !executable(path):
			case f.Reserved(name):
				// PATH may contain flux's own programs.
				if folder == f.Directory {
					ignored = append(ignored, Ignored{path, name + " is a built-in command"})
				}
			case taken:
				if !sameFile(first.Path, path) {
					ignored = append(ignored, Ignored{path, first.Path + " takes precedence"})
				}
			default:
				found[name] = f.plugin(folder, name)
			}
		}
	}
	list := make([]Plugin, 0, len(found))
	for _, p := range found {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b Plugin) int { return strings.Compare(a.Name, b.Name) })
	return list, ignored
}

// directories returns the plugin directory and the absolute directories in PATH. Relative directories are
// excluded, because a program in the current directory must not become a command by its name alone.
func (f Finder) directories() []string {
	var directories []string
	if f.Directory != "" {
		directories = append(directories, f.Directory)
	}
	for _, folder := range filepath.SplitList(f.Path) {
		if filepath.IsAbs(folder) && !slices.Contains(directories, filepath.Clean(folder)) {
			directories = append(directories, filepath.Clean(folder))
		}
	}
	return directories
}

func (f Finder) plugin(folder, name string) Plugin {
	p := Plugin{Name: name, Path: filepath.Join(folder, fileName(name))}
	if folder == f.Directory {
		p.Receipt = readReceipt(folder, name)
	}
	return p
}

// namesIn returns the names of possible plugins in a directory.
func namesIn(folder string) []string {
	// Ignore directories that cannot be read: PATH often contains directories that do not exist.
	entries, _ := os.ReadDir(folder)
	var names []string
	for _, entry := range entries {
		name, ok := strings.CutPrefix(entry.Name(), prefix)
		if ok && runtime.GOOS == "windows" {
			name, ok = strings.CutSuffix(name, windowsSuffix)
		}
		if ok && !entry.IsDir() && validName(runnable(), name) {
			names = append(names, name)
		}
	}
	return names
}

const windowsSuffix = ".exe"

// fileName returns the file name of a plugin's program.
func fileName(name string) string { return prefix + programName(name) }

// programName returns the file name of a program on this system.
func programName(name string) string {
	if runtime.GOOS == "windows" {
		return name + windowsSuffix
	}
	return name
}

func validName(pattern *regexp.Regexp, name string) bool {
	return len(name) <= nameMax && pattern.MatchString(name)
}

// executable reports whether a path is an executable regular file or a symbolic link to one.
func executable(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	return runtime.GOOS == "windows" || info.Mode()&0o111 != 0
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// exists reports whether a path exists, even as a broken symbolic link.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil || !isMissing(err)
}

func isMissing(err error) bool { return err != nil && os.IsNotExist(err) }
