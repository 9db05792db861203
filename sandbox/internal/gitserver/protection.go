package gitserver

import (
	"context"
	_ "embed" // for the hook
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fluxkit/flux/sandbox/internal/file"
)

// The update hook can reject one branch of a push and accept the others.
//
//go:embed update.sh
var updateHook []byte

const protectedFile = "protected-branches"

// Protect rejects pushes to these branches, which do not have to exist; a * matches any text. It returns the
// branches that were not protected before.
func (r Repositories) Protect(ctx context.Context, written string, branches ...string) ([]string, error) {
	return r.changeProtected(ctx, written, branches, func(listed []string, branch string) ([]string, bool) {
		if slices.Contains(listed, branch) {
			return listed, false
		}
		return append(listed, branch), true
	})
}

// Unprotect allows pushes to these branches again and returns the previously protected branches.
func (r Repositories) Unprotect(ctx context.Context, written string, branches ...string) ([]string, error) {
	return r.changeProtected(ctx, written, branches, func(listed []string, branch string) ([]string, bool) {
		at := slices.Index(listed, branch)
		if at < 0 {
			return listed, false
		}
		return slices.Delete(listed, at, at+1), true
	})
}

func (r Repositories) changeProtected(ctx context.Context, written string, branches []string,
	apply func(listed []string, branch string) ([]string, bool),
) (changed []string, err error) {
	_, folder, err := r.Find(written)
	if err != nil {
		return nil, err
	}
	for _, branch := range branches {
		if err := checkBranch(ctx, branch, true); err != nil {
			return nil, err
		}
	}
	err = changing(r.root, func() error {
		listed, err := readProtected(folder)
		if err != nil {
			return err
		}
		for _, branch := range branches {
			var did bool
			if listed, did = apply(listed, branch); did {
				changed = append(changed, branch)
			}
		}
		if err := installHook(folder); err != nil {
			return err
		}
		text := strings.Join(append(listed, ""), "\n")
		return file.Replace(filepath.Join(folder, protectedFile), []byte(text), 0o600)
	})
	return changed, err
}

func readProtected(folder string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(folder, protectedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading protected branches: %w", err)
	}
	return strings.Fields(string(data)), nil
}

// checkBranch validates a branch name with Git; a pattern may contain one *.
func checkBranch(ctx context.Context, branch string, pattern bool) error {
	args := []string{"check-ref-format"}
	if pattern {
		args = append(args, "--refspec-pattern")
	}
	if _, err := git(ctx, os.TempDir(), append(args, "refs/heads/"+branch)...); err != nil || strings.HasPrefix(branch, "-") {
		return fmt.Errorf("invalid branch name %q: must be a name such as main or release/1.x", branch)
	}
	return nil
}

func installHook(folder string) error {
	hooks := filepath.Join(folder, "hooks")
	if err := os.MkdirAll(hooks, 0o700); err != nil {
		return fmt.Errorf("installing the branch protection: %w", err)
	}
	return file.Replace(filepath.Join(hooks, "update"), updateHook, 0o700)
}
