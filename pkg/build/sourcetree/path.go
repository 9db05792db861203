package sourcetree

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/hint"
)

// Clean returns a path in a tree for fs.FS, "." for the root.
func Clean(name string) string {
	if clean := strings.TrimPrefix(path.Clean("/"+filepath.ToSlash(name)), "/"); clean != "" {
		return clean
	}
	return "."
}

// Within reports whether a path is a directory or inside it.
func Within(folder, name string) bool {
	return folder == "." || name == folder || strings.HasPrefix(name, folder+"/")
}

// Domain returns the scope of the patterns of a directory.
func Domain(folder string) []string {
	if folder == "." {
		return nil
	}
	return strings.Split(folder, "/")
}

// ReadWithin reads a file of a tree, if it is within the limits.
func ReadWithin(limits *budget.Budget, tree fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(tree, name)
	if err != nil {
		return nil, err
	}
	if err := limits.File(name, info.Size()); err != nil {
		return nil, err
	}
	return fs.ReadFile(tree, name)
}

// CheckDirectory returns a PathError for a path that does not exist or is not a directory.
func CheckDirectory(tree fs.FS, name string) error {
	info, err := fs.Stat(tree, name)
	return DirectoryError(name, info, err)
}

// DirectoryError returns the error for the result of a stat call, or nil for a directory.
func DirectoryError(name string, info fs.FileInfo, err error) error {
	var excluded *excludedError
	switch {
	case errors.As(err, &excluded):
		return &PathError{name, excluded.problem()}
	case errors.Is(err, fs.ErrNotExist):
		return &PathError{name, "the directory does not exist"}
	case err != nil:
		return fmt.Errorf("reading %s: %w", name, err)
	case !info.IsDir():
		return &PathError{name, "not a directory"}
	}
	return nil
}

// PathError is returned if the directory to build does not exist or is not a directory.
type PathError struct {
	Path, Problem string
}

func (e *PathError) Error() string { return fmt.Sprintf("cannot build %q: %s", e.Path, e.Problem) }

// PathRemedy returns the remedy for a --path that is not a cluster directory, given the
// cluster directories.
func PathRemedy(clusters []string) string {
	if len(clusters) == 0 {
		return "use a cluster directory, e.g. --path clusters/production"
	}
	flags := make([]string, len(clusters))
	for i, cluster := range clusters {
		flags[i] = "--path " + hint.Quote(cluster)
	}
	return "use a cluster directory: " + budget.List(flags, budget.Directories)
}
