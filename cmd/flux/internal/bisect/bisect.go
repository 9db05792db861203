// Package bisect implements the bisect command.
package bisect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/sandbox/programs"
	"github.com/fluxkit/flux/internal/terminal/output"
)

type options struct{ good, bad, format string }

// NewCommand returns the bisect command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "bisect --good REVISION [-- FLAG...]",
		Short: "Find the first commit whose Flux resources do not become ready",
		Long: `Find the first commit whose Flux resources do not become ready, with a binary
search in the first-parent history between a good and a bad commit. Each commit
is tested with "flux test" in a temporary sandbox; the flags after -- are passed
to it. --timeout limits each test.

Search:
  The good and the bad commit are tested first. Commits whose result could not
  be determined (exit code 2 of "flux test") are skipped; if the first bad
  commit is among them, all candidates are reported.

Output:
  JSON and YAML have the fields first (the first bad commit), files (changed by
  it), good (the last good commit), causes (root causes), candidates (skipped
  commits that may be the first bad one instead) and tested (number of tests).`,
		Annotations: command.Exits{
			clierr.ExitSuccess: "the first bad commit was found",
			clierr.ExitFailed:  "the first bad commit was not found: the good commit is bad, the bad one is good, skipped commits leave several candidates, or bisect failed",
		}.Annotations(),
		Example: `  # Find the commit that broke the cluster since the last release
  flux bisect --good v1.4.0

  # Pass flags to each test
  flux bisect --good v1.4.0 --bad main -- --path clusters/production --fake-secrets`,
		RunE: func(cmd *cobra.Command, args []string) error { return run(a, cmd, o, args) },
	}
	fs := cmd.Flags()
	fs.StringVar(&o.good, "good", "", "branch, tag or commit whose resources become ready")
	fs.StringVar(&o.bad, "bad", "HEAD", "branch, tag or commit whose resources do not become ready")
	complete.Revisions(cmd, "good", "bad")
	command.AddOutput(fs, &o.format, "format of the result", "json", "yaml")
	return cmd
}

func run(a *app.App, cmd *cobra.Command, o *options, args []string) (err error) {
	if err := check(cmd, o, args); err != nil {
		return err
	}
	ctx := cmd.Context()
	clone, err := git.Open(".")
	if err != nil {
		return hint.Errorf("run the command in a clone of the repository", "opening the repository: %w", err)
	}
	defer func() { err = errors.Join(err, clone.Close()) }()
	commits, err := o.history(ctx, clone)
	if err != nil {
		return err
	}
	t := tester{app: a, clone: clone, args: args, outcomes: map[plumbing.Hash]outcome{}}
	if t.program, err = helper.Self(); err != nil {
		return err
	}
	if _, err := programs.Find(a.Build.Version); err != nil {
		return err
	}
	a.UI.Action("bisecting %s, about %s", output.Amount(len(commits)-1, "commit"), output.Amount(steps(len(commits)-2)+2, "test"))
	last := commits[len(commits)-1]
	for _, end := range []struct {
		flag, name string
		commit     plumbing.Hash
		want       commitState
	}{{"--good", o.good, commits[0], commitGood}, {"--bad", o.bad, last, commitBad}} {
		if err := t.confirm(ctx, end.flag, end.name, end.commit, end.want); err != nil {
			return err
		}
	}
	found, err := search(len(commits), func(i, _ int) (commitState, error) { return t.test(ctx, commits[i]) })
	if err != nil {
		return err
	}
	r, err := t.result(ctx, commits, found)
	if err != nil {
		return err
	}
	return write(a, o.format, r)
}

// reserved lists the flags of flux test that bisect sets itself.
var reserved = []string{"revision", "output", "o"}

// check returns an error for an invalid command line.
func check(cmd *cobra.Command, o *options, args []string) error {
	if dash := cmd.ArgsLenAtDash(); len(args) > 0 && dash != 0 {
		return hint.Errorf("write -- before the flags of flux test", "unexpected argument %q", args[0])
	}
	if o.good == "" {
		return hint.Errorf("set --good to a revision whose resources became ready, e.g. v1.0.0", "--good is required")
	}
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		for _, flag := range reserved {
			if strings.HasPrefix(arg, "-") && name == flag {
				return fmt.Errorf("%s is set by flux bisect for each test", arg)
			}
		}
	}
	return nil
}

// history returns the commits from the good to the bad commit.
func (o *options) history(ctx context.Context, clone *git.Clone) ([]plumbing.Hash, error) {
	var ends []plumbing.Hash
	for _, name := range []string{o.good, o.bad} {
		commit, err := clone.Resolve(ctx, name)
		if err != nil {
			return nil, err
		}
		ends = append(ends, commit)
	}
	if ends[0] == ends[1] {
		return nil, fmt.Errorf("--good %s and --bad %s are the same commit %s", o.good, o.bad, short(ends[0].String()))
	}
	commits, err := clone.History().Lineage(ctx, ends[0], ends[1])
	switch {
	case errors.Is(err, git.ErrNoLineage):
		return nil, hint.Errorf("choose an ancestor of "+o.bad+" from git log --first-parent "+o.bad, "--good %s is %w of --bad %s", o.good, err, o.bad)
	case errors.Is(err, git.ErrIncomplete):
		return nil, hint.Errorf("fetch the history: git fetch --unshallow", "%w", err)
	}
	return commits, err
}

// confirm tests the commit of --good or --bad.
func (t *tester) confirm(ctx context.Context, flag, name string, commit plumbing.Hash, want commitState) error {
	verdict, err := t.test(ctx, commit)
	found := t.outcomes[commit]
	switch {
	case err != nil:
		return err
	case verdict == commitSkipped:
		return fmt.Errorf("%s %s could not be tested: %s", flag, name, found.reason)
	case verdict == want:
		return nil
	case want == commitBad:
		return hint.Errorf("choose a commit that fails with 'flux test --revision'", "%s %s is not bad: all resources become ready", flag, name)
	}
	cause := ""
	if len(found.report.Causes) > 0 {
		first := found.report.Causes[0]
		cause = ": " + first.Object.String() + ": " + first.Message
	}
	return hint.Errorf("choose an older commit, or pass the flags that the test requires after --", "%s %s is not good%s", flag, name, cause)
}

func short(hash string) string { return hash[:min(len(hash), 8)] }

// write prints the result. With several candidates, it returns a failure.
func write(a *app.App, format string, r result) error {
	var err error
	if format != "" {
		err = a.Encode(format, r)
	} else {
		err = app.WriteText(a, r.text())
	}
	if err == nil && len(r.Candidates) > 0 {
		a.UI.Failure("the first bad commit is one of %s: the others could not be tested", output.Amount(len(r.Candidates)+1, "commit"))
		return &clierr.ExitCodeError{Code: clierr.ExitFailed}
	}
	return err
}
