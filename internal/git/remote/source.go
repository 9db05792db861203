package remote

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/git/filetree"
)

// Source is a GitRepository with its credentials. Its files match the artifact of source-controller.
type Source struct {
	URL string
	// Secret and Proxy are the data of the Secrets that the GitRepository references.
	Secret, Proxy map[string][]byte
	// Submodules enables fetching of submodules.
	Submodules bool
}

// Fetched is a fetched revision. The caller must close it after reading its files.
type Fetched struct {
	// Revision is the revision as Flux writes it: main@sha1:….
	Revision string
	// Tree contains the files of the repository and its submodules.
	Tree   *filetree.Tree
	stores []*store
}

// Close removes the temporary directories.
func (f *Fetched) Close() error {
	var failed error
	for _, s := range f.stores {
		failed = errors.Join(failed, s.close())
	}
	return failed
}

// Resolve returns the revision that Fetch would fetch, as Flux writes it.
func (s Source) Resolve(ctx context.Context, revision git.Revision) (string, error) {
	r, err := s.repository(ctx, s.URL)
	if err != nil {
		return "", err
	}
	found, err := r.Resolve(ctx, revision)
	return found.Flux(), err
}

// Fetch fetches a revision.
func (s Source) Fetch(ctx context.Context, revision git.Revision) (*Fetched, error) {
	f := &Fetched{}
	files, found, err := f.add(ctx, s, s.URL, revision)
	if err == nil && s.Submodules {
		files, err = files.WithModules(ctx, f.opener(ctx, s, s.URL))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	f.Tree, f.Revision = files, found.Flux()
	return f, nil
}

// opener returns a function that fetches the submodules of the repository at an address.
func (f *Fetched) opener(ctx context.Context, s Source, parent string) filetree.Opener {
	return func(m filetree.Module) (*filetree.Tree, filetree.Opener, error) {
		address := resolveURL(parent, m.URL)
		files, _, err := f.add(ctx, s, address, git.Revision{Commit: m.Commit.String()})
		if err != nil {
			return nil, nil, fmt.Errorf("fetching submodule %s: %w", m.Path, err)
		}
		return files, f.opener(ctx, s, address), nil
	}
}

// add fetches the repository at an address.
func (f *Fetched) add(ctx context.Context, s Source, address string, revision git.Revision) (*filetree.Tree, git.Revision, error) {
	r, err := s.repository(ctx, address)
	if err != nil {
		return nil, git.Revision{}, err
	}
	into, err := newStore()
	if err != nil {
		return nil, git.Revision{}, err
	}
	f.stores = append(f.stores, into)
	found, err := r.fetchRevision(ctx, revision, into)
	if err != nil {
		return nil, git.Revision{}, err
	}
	files, err := into.objects.Tree(plumbing.NewHash(found.Commit))
	return files, found, err
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
