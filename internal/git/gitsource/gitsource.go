// Package gitsource fetches a revision of a GitRepository from its server with
// its credentials, with the same content as the artifact of source-controller.
package gitsource

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/fluxkit/flux/internal/git/repo"
	"github.com/fluxkit/flux/internal/git/snapshot"
)

// Source is a Git repository with its credentials.
type Source struct {
	URL string
	// Secret and Proxy are the data of the Secrets of the GitRepository.
	Secret, Proxy map[string][]byte
	// Submodules also fetches submodules.
	Submodules bool
}

// Folder is the tree of the repository, or of a submodule.
type Folder struct {
	// At is the path of the submodule, "" for the repository.
	At   string
	Tree fs.FS
}

// Fetched is a fetched revision. It has to be closed after its folders have
// been read.
type Fetched struct {
	// Revision is the revision as Flux writes it: main@sha1:….
	Revision string
	// Folders are the trees of the repository and of its submodules.
	Folders []Folder

	checkouts    []*repo.Checkout
	repositories []*snapshot.Repository
	// links are the paths of submodules, fetched or not.
	links []string
}

// maxDepth bounds submodules of submodules, as in go-git.
const maxDepth = 10

// Close removes the temporary folders.
func (f *Fetched) Close() error {
	var failed error
	for _, r := range f.repositories {
		failed = errors.Join(failed, r.Close())
	}
	for _, c := range f.checkouts {
		failed = errors.Join(failed, c.Close())
	}
	return failed
}

// Has reports whether a file or folder exists.
func (f *Fetched) Has(name string) bool {
	name = path.Clean(name)
	if slices.Contains(f.links, name) {
		return true
	}
	return slices.ContainsFunc(f.Folders, func(folder Folder) bool {
		inside := name
		if folder.At != "" {
			below, ok := strings.CutPrefix(name+"/", folder.At+"/")
			if !ok {
				return false
			}
			inside = path.Clean(below)
		}
		_, err := fs.Stat(folder.Tree, inside)
		return err == nil
	})
}

// Resolve returns the revision that Fetch would fetch, as Flux writes it.
func Resolve(ctx context.Context, s Source, revision repo.Revision) (string, error) {
	remote, err := s.remote(ctx, s.URL)
	if err != nil {
		return "", err
	}
	name, commit, err := repo.ResolveRevision(ctx, remote, revision)
	return FormatRevision(name, commit), err
}

// Fetch fetches a revision.
func Fetch(ctx context.Context, s Source, revision repo.Revision) (*Fetched, error) {
	f := &Fetched{}
	c, err := f.add(ctx, s, s.URL, "", revision, 0)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	f.Revision = FormatRevision(c.Name, c.Commit)
	return f, nil
}

// FormatRevision returns a revision of Flux, NAME@sha1:COMMIT; name is the
// branch or tag, "" for none.
func FormatRevision(name string, commit plumbing.Hash) string {
	hash := "sha1:" + commit.String()
	if name == "" {
		return hash
	}
	return name + "@" + hash
}

// add fetches a repository and, with Submodules, its submodules.
func (f *Fetched) add(ctx context.Context, s Source, address, at string, revision repo.Revision, depth int) (*repo.Checkout, error) {
	remote, err := s.remote(ctx, address)
	if err != nil {
		return nil, err
	}
	c, err := repo.FetchRevision(ctx, remote, revision)
	if err != nil {
		return nil, err
	}
	f.checkouts = append(f.checkouts, c)
	repository, err := snapshot.OpenStore(c.Store)
	if err != nil {
		return nil, err
	}
	f.repositories = append(f.repositories, repository)
	tree, err := repository.At(c.Commit)
	if err != nil {
		return nil, err
	}
	f.Folders = append(f.Folders, Folder{at, tree})
	modules, err := submodules(tree, c.Store, c.Commit)
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		below := path.Join(at, m.path)
		f.links = append(f.links, below)
		if !s.Submodules || depth == maxDepth {
			continue
		}
		if _, err := f.add(ctx, s, resolveURL(address, m.url), below, repo.Revision{Name: m.commit.String()}, depth+1); err != nil {
			return nil, fmt.Errorf("fetching submodule %s: %w", below, err)
		}
	}
	return c, nil
}

type submodule struct {
	path, url string
	commit    plumbing.Hash
}

// submodules returns the submodules that both .gitmodules and the commit have.
func submodules(tree fs.FS, store *filesystem.Storage, commit plumbing.Hash) ([]submodule, error) {
	text, err := fs.ReadFile(tree, ".gitmodules")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	named := config.NewModules()
	if err := named.Unmarshal(text); err != nil {
		return nil, fmt.Errorf("invalid .gitmodules: %w", err)
	}
	c, err := object.GetCommit(store, commit)
	if err != nil {
		return nil, fmt.Errorf("reading commit %s: %w", commit, err)
	}
	root, err := c.Tree()
	if err != nil {
		return nil, fmt.Errorf("reading the tree of commit %s: %w", commit, err)
	}
	var found []submodule
	for _, m := range named.Submodules {
		entry, err := root.FindEntry(m.Path)
		if err == nil && entry.Mode == filemode.Submodule {
			found = append(found, submodule{m.Path, m.URL, entry.Hash})
		}
	}
	slices.SortFunc(found, func(a, b submodule) int { return strings.Compare(a.path, b.path) })
	return found, nil
}

// resolveURL returns the URL of a submodule, which may be relative to the URL
// of its repository.
func resolveURL(parent, address string) string {
	if !strings.HasPrefix(address, "./") && !strings.HasPrefix(address, "../") {
		if rest, ok := sshURL(address); ok {
			return rest
		}
		return address
	}
	u, err := url.Parse(parent)
	if err != nil {
		return address
	}
	u.Path = path.Join(u.Path, address)
	return u.String()
}

// sshURL returns the ssh:// URL of an scp-like address such as git@example.com:path.
func sshURL(address string) (string, bool) {
	host, rest, ok := strings.Cut(address, ":")
	if !ok || strings.Contains(host, "/") || strings.HasPrefix(rest, "//") || !strings.Contains(host, "@") {
		return "", false
	}
	return "ssh://" + host + "/" + strings.TrimPrefix(rest, "/"), true
}
