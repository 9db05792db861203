package diff

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/buildflags"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/diff/changes"
	"github.com/fluxkit/flux/cmd/flux/internal/diff/pullrequest"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/render"
	"github.com/fluxkit/flux/pkg/diff/revision"
	"github.com/fluxkit/flux/pkg/repository/clone"
	"github.com/fluxkit/flux/pkg/repository/desired"
)

// baseOptions are the flags of the diff command without a subcommand.
type baseOptions struct {
	options
	base, head string
	paths      []string
	mergeBase  bool
	complete   bool
	fetch      bool
	pull       pullrequest.Options
}

// addBase makes diff runnable: with --base, it compares two revisions of the
// repository; without --base, it prints its help.
func addBase(a *app.App, cmd *cobra.Command) *cobra.Command {
	o := &baseOptions{}
	cmd.Long = `Preview changes before they are applied. With --base, flux diff compares two
revisions of the Git repository in the current directory without cluster access;
the subcommands compare the desired state with a cluster.

Comparison:
  --path selects the cluster directory; repeat it or quote a pattern to compare
  several clusters. By default, all detected cluster directories are compared.
  --base auto selects the merge base with the target branch of the pull request.
  The other revision is the work tree unless --head is set.
  Sources that cannot be rendered are listed as not compared.
  See "flux help pull-requests".

Output:
  Secret values are masked. --comment and --status publish the result on the
  pull request. --timeline lists the changes in the expected order: see
  "flux help timeline".`
	cmd.Annotations = command.Exits{
		clierr.ExitSuccess: "there are no changes, or --fail-on accepts them",
		clierr.ExitFailed:  "there are changes (with --fail-on=danger: dangers), or an image does not exist (--verify-images)",
		clierr.ExitUndetermined: "undetermined: the comparison failed, the controller would fail, the command line is invalid, --comment or --status failed, " +
			"or an object that the change may affect (with --strict: any object) was not compared",
	}.Annotations()
	cmd.Example = `  # Show the changes of this branch on production
  flux diff --base main --path clusters/production

  # Show only the changes since the branch was created from main
  flux diff --base main --merge-base --path clusters/production

  # Show the changes of a pull request in a CI system
  flux diff --base auto --path clusters/production

  # Show the expected order of the changes
  flux diff --base main --path clusters/production --timeline

  # Show the changes on all clusters
  flux diff --base main --path 'clusters/*'

  # Fail only for dangers, and write a comment and a code scanning report
  flux diff --base auto --path clusters/production --fail-on=danger -o github=comment.md -o sarif=flux.sarif

  # Comment on the pull request of a CI system, and set the status of its commit
  flux diff --base auto --path clusters/production --comment --status flux/production

  # Write a pull request comment to a file without failing the pipeline
  flux diff --base origin/main --head HEAD --path clusters/production -o github=comment.md --exit-code=false`
	fs := cmd.Flags()
	fs.StringVar(&o.base, "base", "", "branch, tag or commit to compare with, or auto for the merge base with the target branch of the pull request")
	fs.StringVar(&o.head, "head", "", "revision to compare (default: the work tree)")
	fs.BoolVar(&o.mergeBase, "merge-base", false, "compare with the merge base of --head and --base")
	fs.BoolVar(&o.fetch, "fetch", false, "fetch missing commits and files of a shallow or partial clone from origin")
	fs.StringArrayVar(&o.paths, "path", nil, "directory of the cluster, e.g. clusters/production; for several clusters, repeat it or quote a pattern, e.g. 'clusters/*' (default: detected cluster directories)")
	fs.StringToStringVar(&o.Sources, "local-sources", nil, "local directories to use for sources with other URLs, e.g. OCIRepository/flux-system/apps=./apps")
	o.AddLocal(cmd)
	o.AddVariables(fs)
	fs.BoolVar(&o.withHelm, "with-helm", true, "also render the charts of HelmReleases")
	fs.BoolVar(&o.changes.Timeline, "timeline", false, "report only the expected order of the changes, with -o human or json")
	fs.BoolVar(&o.complete, "strict", false, "exit with 2 if anything is not compared")
	fs.StringVar(&o.helm.KubeVersion, "kube-version", desired.AssumedKubernetes, "Kubernetes version for chart capabilities")
	fs.StringSliceVar(&o.helm.APIVersions, "api-versions", nil, "additional API versions for chart capabilities, e.g. monitoring.coreos.com/v1")
	o.pull.Add(fs)
	o.AddRemote(fs)
	buildflags.AddUntrusted(a, fs, &o.Untrusted)
	o.add(cmd)
	o.changes.AddVerification(cmd)
	o.changes.IgnoreFields(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !cmd.Flags().Changed("base") {
			if cmd.Flags().NFlag() > 0 && cmd.LocalNonPersistentFlags().Changed("path") {
				return hint.Errorf("flux diff --base main --path "+hint.Quote(o.paths[0]), "--base is required")
			}
			return clierr.Usage(cmd, "a command or --base is required")
		}
		return a.Interruptible(cmd, func() error { return runBase(a, cmd, o) })
	}
	return cmd
}

func runBase(a *app.App, cmd *cobra.Command, o *baseOptions) error {
	if slices.Contains(o.paths, "") {
		return hint.Errorf("flux diff --base "+hint.Quote(o.base)+" --path clusters/production", "--path is empty: it must be the directory of a cluster")
	}
	if err := errors.Join(o.changes.CheckVerification(), o.changes.Check(cmd)); err != nil {
		return err
	}
	gate, err := o.pull.Open(a, o.paths)
	if err != nil {
		return err
	}
	return gate.Post(cmd.Context(), compareRevisions(a, cmd, o, gate))
}

// compareRevisions compares the revisions, prints the result and passes it to gate.
func compareRevisions(a *app.App, cmd *cobra.Command, o *baseOptions, gate *pullrequest.Gate) (err error) {
	namespace, err := a.Namespace(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	checkout, err := buildflags.OpenRepository(a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, checkout.Close()) }()
	if err := o.ReadLocal(ctx, a); err != nil {
		return err
	}
	graph, err := o.Graph(ctx, a, checkout, namespace, o.helm)
	if err != nil {
		return err
	}
	announce := o.announce(a)
	selected := revision.Selection{
		Checkout: checkout, Base: o.base, Head: o.head, MergeBase: o.mergeBase, Fetch: o.fetch, Env: a.Env, Warn: a.UI.Warning, Announce: announce,
	}
	against, err := selected.Target(ctx)
	if err != nil {
		return err
	}
	base, head, err := selected.Find(ctx, against)
	if err != nil {
		return err
	}
	if graph.Branches = clone.Branches(checkout, against.Revision); against.Branch != "" {
		graph.Branches = []string{against.Branch}
	}
	if o.withHelm {
		if graph.Charts.Renderer, err = o.Charts(a); err != nil {
			return err
		}
	}
	gate.Revisions(base.Name, head.Name, clone.Proposed(ctx, checkout, o.head, against))
	clusters, err := clone.Paths(ctx, checkout, o.paths, base, head)
	if err != nil {
		return err
	}
	if clusters.Detected {
		announce("detected cluster directories: %s", clusters)
	}
	clusters.Warn(a.UI.Warning)
	options := revision.Options{
		Options: graph, Timeline: o.changes.Timeline, Ignore: o.changes.Ignore,
		Warn: func(text string) { a.UI.Warning("%s", text) }, Note: func(text string) { announce("%s", text) },
	}
	if o.changes.Locates() {
		options.Locate = checkout.Optional
	}
	results, timelines, failures := revision.All(ctx, base, head, clusters.Paths, clusters.Several, announce, options)
	if n := checkout.Lacking(); n > 0 {
		return hint.Errorf("use --fetch to fetch the files of both revisions with git", "this partial clone is missing %d of the files to compare", n)
	}
	if results == nil {
		return failures
	}
	o.changes.Timelines = timelines
	o.changes.Comparison = render.Comparison{Base: base.Name, Head: head.Name, Paths: clusters.Paths, At: a.Now()}
	if err := o.changes.Verify(ctx, a, graph.Charts.Hosts, results); err != nil {
		return err
	}
	return o.report(a, gate, results, errors.Join(failures, clusters.Err(o.complete)))
}

// report prints the results, passes them to gate, and returns the error that sets the exit code.
func (o *baseOptions) report(a *app.App, gate *pullrequest.Gate, results []*diff.Result, failures error) error {
	if err := o.changes.Print(a, results); err != nil {
		return err
	}
	gate.Results(results, failures)
	failed := buildflags.ReportChildren(a, failures)
	if n := render.Sum(results).NotCompared; n > 0 && o.complete && failed == nil {
		failed = &clierr.ExitCodeError{Code: clierr.ExitUndetermined}
		a.UI.Failure("not compared: %d; exiting with 2 because of --strict", n)
	}
	if err := changes.ReportImages(a, results); err != nil && failed == nil {
		failed = err
	}
	return o.changes.Conclude(a, results, failed)
}
