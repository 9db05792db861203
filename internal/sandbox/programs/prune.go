package programs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Others returns the versions in the store except those in keep, oldest first. The sandbox
// of a version may be incomplete, because its removal was interrupted.
func (s Store) Others(keep ...string) ([]string, error) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the directory of downloaded sandboxes: %w", err)
	}
	var versions []*semver.Version
	for _, entry := range entries {
		v, err := semver.StrictNewVersion(entry.Name())
		if err == nil && entry.IsDir() && !slices.Contains(keep, entry.Name()) {
			versions = append(versions, v)
		}
	}
	slices.SortFunc(versions, (*semver.Version).Compare)
	names := make([]string, len(versions))
	for i, v := range versions {
		names[i] = v.Original()
	}
	return names, nil
}

// Prune removes the versions that are neither in keep nor running, and returns the removed and the
// running versions.
func (s Store) Prune(ctx context.Context, keep ...string) (removed, running []string, err error) {
	versions, err := s.Others(keep...)
	if err != nil || len(versions) == 0 {
		return nil, nil, err
	}
	commands, err := commandLines(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("listing the running programs: %w", err)
	}
	for _, version := range versions {
		if ctx.Err() != nil {
			return removed, running, context.Cause(ctx)
		}
		programs := s.At(version) + string(filepath.Separator)
		if slices.ContainsFunc(commands, func(line string) bool { return strings.Contains(line, programs) }) {
			running = append(running, version)
			continue
		}
		if err := os.RemoveAll(s.At(version)); err != nil {
			return removed, running, fmt.Errorf("removing the sandbox of flux %s: %w", version, err)
		}
		removed = append(removed, version)
	}
	return removed, running, nil
}
