package git

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
)

// Restoration is a commit on top of Base in which a directory has the content that it has in the commit Good.
type Restoration struct {
	Base, Good string
	// Path is the directory, "." for the whole tree.
	Path string
}

// Files returns the files that a restoration changes, sorted.
func (r Restoration) Files(ctx context.Context, c *Clone) ([]string, error) {
	output, err := c.program().run(ctx, nil, "diff-tree", "-r", "-z", "--no-renames", "--name-only", r.Base, r.Good, "--", ":(literal,top)"+r.Path)
	if err != nil {
		return nil, err
	}
	files := strings.FieldsFunc(output, func(c rune) bool { return c == 0 })
	slices.Sort(files)
	return files, nil
}

// Commit creates the commit of a restoration, without changing the work tree, the index or a branch.
func (r Restoration) Commit(ctx context.Context, c *Clone, message string) (string, error) {
	with, err := c.program().run(ctx, nil, "rev-parse", "--verify", "--quiet", "--end-of-options", r.Good+":"+strings.TrimPrefix(r.Path, "."))
	if err != nil {
		return "", fmt.Errorf("commit %.8s has no directory %q", r.Good, r.Path)
	}
	root := with
	if r.Path != "." {
		if root, err = c.program().replaced(ctx, r.Base+"^{tree}", strings.Split(r.Path, "/"), with); err != nil {
			return "", err
		}
	}
	commit, err := c.program().run(ctx, strings.NewReader(message), "commit-tree", "-p", r.Base, "-F", "-", root)
	if err != nil {
		return "", hint.Errorf("check user.name and user.email in the configuration of git", "%w", err)
	}
	return commit, nil
}

// replaced returns the tree in which a directory is replaced by another tree.
func (p program) replaced(ctx context.Context, tree string, path []string, with string) (string, error) {
	var entries []string
	if tree != "" {
		output, err := p.run(ctx, nil, "ls-tree", "-z", tree)
		if err != nil {
			return "", err
		}
		entries = strings.FieldsFunc(output, func(c rune) bool { return c == 0 })
	}
	below := ""
	kept := slices.DeleteFunc(entries, func(entry string) bool {
		properties, name, _ := strings.Cut(entry, "\t")
		if name == path[0] {
			if fields := strings.Fields(properties); len(fields) == 3 && fields[1] == "tree" {
				below = fields[2]
			}
		}
		return name == path[0]
	})
	if len(path) > 1 {
		var err error
		if with, err = p.replaced(ctx, below, path[1:], with); err != nil {
			return "", err
		}
	}
	kept = append(kept, "040000 tree "+with+"\t"+path[0])
	return p.run(ctx, strings.NewReader(strings.Join(kept, "\x00")+"\x00"), "mktree", "-z")
}

// Push creates a branch of origin with a commit. It fails if the branch exists.
func (f Fetcher) Push(ctx context.Context, commit, branch string) error {
	ref := "refs/heads/" + branch
	found, err := f.c.program().run(ctx, nil, "ls-remote", Origin, ref)
	if err != nil {
		return err
	}
	if found != "" {
		return hint.Errorf(hint.Command("merge its pull request, or delete it: git push origin --delete %s", branch), "branch %q exists in %s", branch, Origin)
	}
	_, err = f.c.program().run(ctx, nil, "push", "--quiet", "--no-verify", Origin, commit+":"+ref)
	return err
}

// URL returns the URL of origin, without a substitution of the user's configuration.
func (f Fetcher) URL(ctx context.Context) (string, error) {
	url, err := f.c.program().run(ctx, nil, "config", "--get", "remote."+Origin+".url")
	if err != nil {
		return "", hint.Errorf("run the command in a clone of the source", "the clone has no remote %s", Origin)
	}
	return url, nil
}
