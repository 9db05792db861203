package migrate

import (
	"context"
	"fmt"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/migrate"
)

// migratedFile is a file in JSON output.
type migratedFile struct {
	File    string           `json:"file"`
	Changes []migrate.Change `json:"changes"`
	// Unclear are the lines that require a manual review.
	Unclear []int `json:"unclear,omitempty"`
	// Skipped is the reason why the file was not read.
	Skipped string `json:"skipped,omitempty"`
}

func migrateFiles(ctx context.Context, a *app.App, o *options) error {
	release, err := migrate.ParseRelease(o.version)
	if err != nil {
		return err
	}
	files, err := migrate.Find(ctx, o.path, o.extensions, release)
	if err != nil {
		return err
	}
	report, changes, skipped := []migratedFile{}, 0, 0
	for _, file := range files {
		if file.Skipped != "" {
			a.UI.Failure("%s was not read: %s", file.Path, file.Skipped)
			skipped++
		}
		for _, c := range file.Changes {
			a.UI.Action("%s:%d: %s %s → %s", file.Path, c.Line, c.Kind, c.From, c.To)
		}
		for _, line := range file.Unclear {
			a.UI.Warning("%s:%d: apiVersion left unchanged: cannot determine the kind", file.Path, line)
		}
		changes += len(file.Changes)
		report = append(report, migratedFile{file.Path, append([]migrate.Change{}, file.Changes...), file.Unclear, file.Skipped})
	}
	if changes > 0 {
		if err := writeMigrated(ctx, a, o, files, changes); err != nil {
			return err
		}
	} else if skipped == 0 {
		a.UI.Success("no older versions found in %s", o.path)
	}
	if o.format != "" {
		if err := a.Encode(o.format, report); err != nil {
			return err
		}
	}
	if skipped > 0 {
		return clierr.ErrReported
	}
	return nil
}

func writeMigrated(ctx context.Context, a *app.App, o *options, files []migrate.File, changes int) error {
	where := fmt.Sprintf("%s in %s", inWords(changes, "line"), inWords(changed(files), "file"))
	if o.dryRun {
		a.UI.Success("%s would be changed", where)
		return nil
	}
	if !o.yes {
		yes, err := a.Confirm(ctx, "Change "+where+"?")
		if err != nil {
			return &hint.Error{Err: err, Hint: "answer beforehand with --yes, or see what would change with --dry-run"}
		}
		if !yes {
			return fmt.Errorf("nothing was changed")
		}
	}
	for _, file := range files {
		if len(file.Changes) == 0 {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := file.Write(); err != nil {
			return err
		}
	}
	a.UI.Success("%s changed", where)
	return nil
}

func changed(files []migrate.File) int {
	n := 0
	for _, file := range files {
		if len(file.Changes) > 0 {
			n++
		}
	}
	return n
}
