package migrate

import (
	"context"
	"fmt"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/migrate"
)

// migratedFile is a file in JSON output.
type migratedFile struct {
	File    string           `json:"file"`
	Changes []migrate.Change `json:"changes"`
	// Fields are the fields that the newer versions do not have.
	Fields []migrate.Field `json:"fields,omitempty"`
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
	report, failed := []migratedFile{}, false
	var due []migrate.File
	for _, file := range files {
		show(a, file)
		if file.Skipped != "" || file.Blocked() {
			failed = true
		} else if len(file.Changes) > 0 {
			due = append(due, file)
		}
		report = append(report, migratedFile{file.Path, append([]migrate.Change{}, file.Changes...), file.Fields, file.Unclear, file.Skipped})
	}
	if o.version == "" {
		warnOfNewest(a, release, due)
	}
	if len(due) > 0 {
		if err := writeMigrated(ctx, a, o, due); err != nil {
			return err
		}
	} else if !failed {
		a.UI.Success("no outdated API versions found in %s", o.path)
	}
	if o.format != "" {
		if err := a.Encode(o.format, report); err != nil {
			return err
		}
	}
	if failed {
		return clierr.ErrReported
	}
	return nil
}

// show prints the changes to a file, or the reasons why it is not changed.
func show(a *app.App, file migrate.File) {
	if file.Skipped != "" {
		a.UI.Failure("%s was not read: %s", file.Path, file.Skipped)
	}
	for _, c := range file.Changes {
		if file.Blocked() {
			break
		}
		a.UI.Action("%s:%d: %s %s → %s", file.Path, c.Line, c.Kind, c.From, c.To)
	}
	for _, f := range file.Fields {
		report := a.UI.Action
		if f.Blocked {
			report = a.UI.Failure
		}
		report("%s:%d: %s: %s", file.Path, f.Line, f.Kind, f.Outcome)
	}
	for _, line := range file.Unclear {
		a.UI.Warning("%s:%d: apiVersion left unchanged: cannot determine the kind", file.Path, line)
	}
	if file.Blocked() {
		a.UI.Failure("%s is not changed: convert the fields above, then run the command again", file.Path)
	}
}

// warnOfNewest lists the API versions that only the release serves: a cluster with an older Flux
// rejects the migrated manifests.
func warnOfNewest(a *app.App, release migrate.Release, files []migrate.File) {
	listed := map[migrate.Change]bool{}
	for _, file := range files {
		for _, c := range file.Changes {
			id := migrate.Change{Kind: c.Kind, To: c.To}
			if release.Introduced(c.Kind, c.To) && !listed[id] {
				listed[id] = true
				a.UI.Warning("%s %s requires Flux %s: upgrade the clusters first, or set --version to their version", c.Kind, c.To, release)
			}
		}
	}
}

// writeMigrated writes the files with changes.
func writeMigrated(ctx context.Context, a *app.App, o *options, files []migrate.File) error {
	changes := 0
	for _, file := range files {
		changes += len(file.Changes) + len(file.Fields)
	}
	what := fmt.Sprintf("%s in %s", output.Amount(changes, "change"), output.Amount(len(files), "file"))
	if o.dryRun {
		a.UI.Success("would make %s", what)
		return nil
	}
	if !o.yes {
		yes, err := a.Confirm(ctx, "Make "+what+"?")
		if err != nil {
			return &hint.Error{Err: err, Hint: "skip the prompt with --yes, or preview the changes with --dry-run"}
		}
		if !yes {
			return fmt.Errorf("nothing was changed")
		}
	}
	for _, file := range files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := file.Write(); err != nil {
			return err
		}
	}
	a.UI.Success("made %s", what)
	return nil
}
