// Package gitsource fetches what a GitRepository of Flux would have at another
// revision, from its server and with its credentials, as source-controller does.
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

	"github.com/fluxkit/flux/internal/gitrepo"
	"github.com/fluxkit/flux/internal/snapshot"
)

// Source is a repository and how it is opened.
type Source struct {
	URL string
	// Secret and Proxy are what the Secrets hold that the GitRepository names.
	Secret, Proxy map[string][]byte
	// Submodules tells to fetch those, too.
	Submodules bool
}

// Folder is a tree at a place in another one.
type Folder struct {
	At   string
	Tree fs.FS
}

// Fetched is what a repository has. It has to be closed after its folders have
// been read.
type Fetched struct {
	// Revision is how Flux writes it: main@sha1:….
	Revision string
	// Folders are its own tree and those of its submodules.
	Folders []Folder

	checkouts []*gitrepo.Checkout
	// links are where submodules are, fetched or not.
	links []string
}

// deepest is how far submodules of submodules are followed, as by Git's library.
const deepest = 10

// Close removes what lies in temporary folders.
func (f *Fetched) Close() error {
	var failed error
	for _, c := range f.checkouts {
		failed = errors.Join(failed, c.Close())
	}
	return failed
}

// Has tells whether there is such a file or folder.
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

// Fetch fetches a revision.
func Fetch(ctx context.Context, s Source, revision gitrepo.Revision) (*Fetched, error) {
	f := &Fetched{}
	c, err := f.add(ctx, s, s.URL, "", revision, 0)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	f.Revision = Named(c.Name, c.Commit)
	return f, nil
}

// Named is a commit with the name that it was found by, as Flux writes it.
func Named(name string, commit plumbing.Hash) string {
	hash := "sha1:" + commit.String()
	if name == "" {
		return hash
	}
	return name + "@" + hash
}

// add fetches one repository, and its submodules where these are wanted.
func (f *Fetched) add(ctx context.Context, s Source, address, at string, revision gitrepo.Revision, depth int) (*gitrepo.Checkout, error) {
	remote, err := s.remote(ctx, address)
	if err != nil {
		return nil, err
	}
	c, err := gitrepo.At(ctx, remote, revision)
	if err != nil {
		return nil, err
	}
	f.checkouts = append(f.checkouts, c)
	repository, err := snapshot.OpenStore(c.Store)
	if err != nil {
		return nil, err
	}
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
		if !s.Submodules || depth == deepest {
			continue
		}
		if _, err := f.add(ctx, s, resolved(address, m.url), below, gitrepo.Revision{Name: m.commit.String()}, depth+1); err != nil {
			return nil, fmt.Errorf("fetching the submodule %s: %w", below, err)
		}
	}
	return c, nil
}

type submodule struct {
	path, url string
	commit    plumbing.Hash
}

// submodules are those that .gitmodules names and the commit has.
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
		return nil, fmt.Errorf("reading .gitmodules: %w", err)
	}
	made, err := object.GetCommit(store, commit)
	if err != nil {
		return nil, fmt.Errorf("reading commit %s: %w", commit, err)
	}
	root, err := made.Tree()
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

// resolved is the address of a submodule, which may be relative to that of
// the repository that has it.
func resolved(parent, address string) string {
	if !strings.HasPrefix(address, "./") && !strings.HasPrefix(address, "../") {
		if rest, ok := scp(address); ok {
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

// scp makes an address of git@example.com:path.
func scp(address string) (string, bool) {
	host, rest, ok := strings.Cut(address, ":")
	if !ok || strings.Contains(host, "/") || strings.HasPrefix(rest, "//") || !strings.Contains(host, "@") {
		return "", false
	}
	return "ssh://" + host + "/" + strings.TrimPrefix(rest, "/"), true
}
