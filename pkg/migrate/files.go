package migrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/fluxkit/flux/internal/budget"
)

// sizeMax is the maximum size of a manifest.
const sizeMax = 32 << 20

// File is a file that contains outdated versions.
type File struct {
	Path string
	Text
	// Skipped is the reason why the file was not read, or "" if it was read.
	Skipped string
}

// Find returns the files with API versions that are older than the versions in a release, and the
// files that could not be read. It searches a single file, or the files with one of the extensions
// in a directory.
func Find(ctx context.Context, path string, extensions []string, r Release) ([]File, error) {
	var found []File
	patches := map[string][]patchFile{}
	err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == ".git":
			return filepath.SkipDir
		case entry.IsDir(), name != path && !(entry.Type().IsRegular() && slices.Contains(extensions, filepath.Ext(name))):
			return nil
		}
		file, err := read(ctx, name, r)
		if err == nil && file.reported() {
			found = append(found, file)
		}
		if len(file.patches) > 0 {
			patches[name] = file.patches
		}
		return err
	})
	if err == nil && len(patches) > 0 {
		found, err = addPatches(ctx, found, directoryOf(path), patches)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the manifests: %w", err)
	}
	return found, nil
}

// reported reports whether the file is listed.
func (f File) reported() bool {
	return len(f.Changes)+len(f.Unclear)+len(f.Fields) > 0 || f.Skipped != ""
}

// directoryOf returns a directory, or the directory of a file.
func directoryOf(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return path
	}
	return filepath.Dir(path)
}

func read(ctx context.Context, name string, r Release) (File, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return File{}, err
	case !info.Mode().IsRegular(): // opening a named pipe can block indefinitely
		return File{Path: name, Skipped: "not a regular file"}, nil
	case info.Size() > sizeMax:
		return File{Path: name, Skipped: "larger than " + budget.Size(sizeMax)}, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return File{}, err
	}
	if err := budget.YAML("", text); err != nil {
		return File{Path: name, Skipped: err.Error()}, nil
	}
	rewritten, err := Rewrite(ctx, string(text), r)
	return File{Path: name, Text: rewritten}, err
}

// Write replaces the file atomically. It keeps symbolic links.
func (f File) Write() (err error) {
	name, err := filepath.EvalSymlinks(f.Path)
	if err != nil {
		return fmt.Errorf("writing %s: %w", f.Path, err)
	}
	info, err := os.Stat(name)
	if err != nil {
		return fmt.Errorf("writing %s: %w", f.Path, err)
	}
	beside, err := os.CreateTemp(filepath.Dir(name), ".migrate-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", f.Path, err)
	}
	_, err = beside.WriteString(f.Content)
	err = errors.Join(err, beside.Chmod(info.Mode().Perm()), beside.Close())
	if err == nil {
		err = os.Rename(beside.Name(), name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", f.Path, err), os.Remove(beside.Name()))
	}
	return nil
}

// addPatches adds the removed fields in the files with patches to which the files of a directory refer,
// and the patches that could not be read. A patch outside of the directory is not read.
func addPatches(ctx context.Context, found []File, folder string, referring map[string][]patchFile) (all []File, err error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, name := range slices.Sorted(maps.Keys(referring)) {
		for _, patch := range referring[name] {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			path := filepath.Join(filepath.Dir(name), filepath.FromSlash(patch.path))
			i := slices.IndexFunc(found, func(f File) bool { return f.Path == path })
			if i < 0 {
				i, found = len(found), append(found, File{Path: path})
			}
			text, err := readPatch(root, folder, path)
			if err != nil {
				found[i].Skipped = err.Error()
				continue
			}
			for _, f := range textFields(text, patch.removed) {
				if !slices.Contains(found[i].Fields, f) {
					found[i].Fields = append(found[i].Fields, f)
				}
			}
		}
	}
	return slices.DeleteFunc(found, func(f File) bool { return !f.reported() }), nil
}

func readPatch(root *os.Root, folder, path string) (string, error) {
	relative, err := filepath.Rel(folder, path)
	if err != nil || !filepath.IsLocal(relative) {
		return "", fmt.Errorf("outside of %s", folder)
	}
	info, err := root.Stat(relative)
	var located *os.PathError
	switch {
	case errors.As(err, &located):
		return "", located.Err
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", errors.New("not a regular file")
	case info.Size() > sizeMax:
		return "", errors.New("larger than " + budget.Size(sizeMax))
	}
	text, err := root.ReadFile(relative)
	if err == nil {
		err = budget.YAML("", text)
	}
	return string(text), err
}
