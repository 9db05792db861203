package snapshot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// Location locates a repository on disk.
type Location struct {
	// Folder is a folder in the work tree, or a bare repository.
	Folder string
	// GitDir and WorkTree are the variables GIT_DIR and GIT_WORK_TREE. They are optional.
	GitDir, WorkTree string
}

// resolve returns the folder with the Git data, and the work tree or "".
func (l Location) resolve() (gitDir, root string, err error) {
	folder, err := filepath.Abs(l.Folder)
	if err != nil {
		return "", "", fmt.Errorf("finding %s: %w", l.Folder, err)
	}
	inside := func(name string) string {
		if filepath.IsAbs(name) {
			return filepath.Clean(name)
		}
		return filepath.Join(folder, name)
	}
	if l.GitDir != "" {
		gitDir, err = gitFolder(inside(l.GitDir))
		if root = folder; l.WorkTree != "" {
			root = inside(l.WorkTree)
		}
		return gitDir, root, err
	}
	for at := folder; ; at = filepath.Dir(at) {
		gitDir, err = gitFolder(filepath.Join(at, ".git"))
		if err == nil {
			if root = at; l.WorkTree != "" {
				root = inside(l.WorkTree)
			}
			return gitDir, root, nil
		}
		if !errors.Is(err, ErrNoRepository) {
			return "", "", err
		}
		if gitDir, err = gitFolder(at); err == nil {
			return gitDir, "", nil
		}
		if at == filepath.Dir(at) {
			return "", "", ErrNoRepository
		}
	}
}

// gitFolder returns a folder with Git data: name, or the one that the file name refers to, as in
// linked work trees and submodules.
func gitFolder(name string) (string, error) {
	const maxLength = 4096
	info, err := os.Stat(name)
	if err != nil {
		return "", ErrNoRepository
	}
	if info.Mode().IsRegular() && info.Size() <= maxLength {
		text, err := os.ReadFile(name)
		target, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), "gitdir: ")
		if err != nil || !ok {
			return "", fmt.Errorf("opening the Git repository: %s is not a reference to a Git directory", name)
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(name), target)
		}
		name = target
	}
	if head, err := os.Stat(filepath.Join(name, "HEAD")); err != nil || head.IsDir() {
		return "", ErrNoRepository
	}
	if _, err := os.Stat(filepath.Join(commonFolder(name), "objects")); err != nil {
		return "", ErrNoRepository
	}
	return name, nil
}

// commonFolder returns the folder that a linked work tree shares with its repository.
func commonFolder(gitDir string) string {
	text, err := os.ReadFile(filepath.Join(gitDir, "commondir"))
	common := strings.TrimSpace(string(text))
	switch {
	case err != nil || common == "":
		return gitDir
	case filepath.IsAbs(common):
		return common
	}
	return filepath.Join(gitDir, common)
}

// storage is the storage of a repository, which refuses objects that are too large to be read.
type storage struct {
	*filesystem.Storage
	// sizes is opened for the first object. known caches the sizes of objects that can be read.
	sizes *sizes
	known map[plumbing.Hash]int64
}

// openStorage opens the storage in a Git directory. Packs stay open, since thousands of objects are
// read from them, and large objects are read as streams.
func openStorage(gitDir string) *storage {
	data := osfs.New(gitDir)
	if common := commonFolder(gitDir); common != gitDir {
		data = dotgit.NewRepositoryFilesystem(data, osfs.New(common))
	}
	return newStorage(filesystem.NewStorageWithOptions(data, cache.NewObjectLRUDefault(), filesystem.Options{
		KeepDescriptors: true, AlternatesFS: osfs.New("/"), LargeObjectThreshold: cacheMax,
	}))
}

func newStorage(store *filesystem.Storage) *storage {
	return &storage{Storage: store, known: map[plumbing.Hash]int64{}}
}

// size returns the size of an object, see sizes.of.
func (s *storage) size(hash plumbing.Hash) (size int64, err error) {
	if size, ok := s.known[hash]; ok {
		return size, nil
	}
	if s.sizes == nil {
		if s.sizes, err = openSizes(s.Filesystem()); err != nil {
			return 0, err
		}
	}
	if size, err = s.sizes.of(hash); err == nil {
		s.known[hash] = size
	}
	return size, err
}

// EncodedObject returns an object, unless it is too large to be read.
func (s *storage) EncodedObject(t plumbing.ObjectType, hash plumbing.Hash) (plumbing.EncodedObject, error) {
	if _, err := s.size(hash); err != nil && !errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, err
	}
	return s.Storage.EncodedObject(t, hash)
}

// release closes the packs that sizes are read from.
func (s *storage) release() error {
	if s.sizes == nil {
		return nil
	}
	defer func() { s.sizes = nil }()
	return s.sizes.close()
}

// Config returns the configuration without the extensions that do not change how objects and
// references are read, which go-git refuses.
func (s *storage) Config() (*config.Config, error) {
	c, err := s.Storage.Config()
	if err != nil || c.Raw == nil || !c.Raw.HasSection("extensions") {
		return c, err
	}
	extensions := c.Raw.Section("extensions")
	for _, option := range extensions.Options {
		switch strings.ToLower(option.Key) {
		case "partialclone", "worktreeconfig", "preciousobjects", "relativeworktrees":
			extensions.RemoveOption(option.Key)
		}
	}
	return c, nil
}
