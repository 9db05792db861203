package pullrequest

import (
	"context"
	"errors"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/ci"
	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/publish"
	"github.com/fluxkit/flux/pkg/diff/render"
)

// Gate publishes the result of a comparison on a pull request. A nil Gate does nothing.
type Gate struct {
	Options

	app     *app.App
	request ci.PullRequest
	host    githost.PullRequestHost
	// pull is nil for a pull request from a fork without a token.
	pull githost.PullRequest

	results    []*diff.Result
	base, head string
	commit     string
	problem    error
}

// Revisions records the names of the compared revisions and the head commit.
func (g *Gate) Revisions(base, head, commit string) {
	if g != nil {
		g.base, g.head, g.commit = base, head, commit
	}
}

// Results records the results and the error of the comparison.
func (g *Gate) Results(results []*diff.Result, problem error) {
	if g != nil {
		g.results, g.problem = results, problem
	}
}

// Post publishes the result on the pull request. It returns the error of the command: the result of
// the comparison, or the error of publishing it.
func (g *Gate) Post(ctx context.Context, result error) error {
	if g == nil || ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return result
	}
	ctx, cancel := g.app.WithTimeout(ctx)
	defer cancel()
	err := g.write(ctx, result)
	var denied *githost.DeniedError
	switch {
	case err == nil:
		return result
	case g.request.Fork && errors.As(err, &denied):
		g.app.UI.Warning("the pull request is from a fork, and its pipeline has no token with write access: %s", redact.Text(err.Error()))
		g.app.UI.Line("  write the report to a file with -o %s=FILE, and post it in a workflow of the target branch; see docs/ci.md", g.format())
		return result
	}
	if code := (*clierr.ExitCodeError)(nil); result == nil || errors.As(result, &code) {
		return err
	}
	message, remedy := clierr.Explain(err, nil)
	g.app.UI.Failure("%s", redact.Text(message))
	if remedy != "" {
		g.app.UI.Line("  %s", redact.Text(remedy))
	}
	return result
}

// format returns the output format for the host.
func (g *Gate) format() string {
	return map[string]string{ci.GitHub: "github", ci.GitLab: "gitlab", ci.Gitea: "gitea"}[g.request.Host]
}

// write writes the comment and the status.
func (g *Gate) write(ctx context.Context, result error) error {
	if g.pull == nil {
		return &githost.DeniedError{Err: errors.New("no token in " + g.host.TokenVariables[0])}
	}
	page := g.request.Run
	var failed error
	if g.comment {
		comment, err := g.writeComment(ctx, result)
		if failed = err; err == nil && comment.URL != "" {
			page = comment.URL
		}
	}
	if g.status == "" {
		return failed
	}
	commit := g.request.Head
	if commit == "" {
		commit = g.commit
	}
	if commit == "" {
		return errors.Join(failed, hint.Errorf("check out the branch of the pull request", "--status: cannot determine the head commit of the pull request"))
	}
	status := githost.Status{Name: g.status, State: state(result), Text: g.summary(result), URL: page}
	if err := g.pull.SetStatus(ctx, commit, status); err != nil {
		return errors.Join(failed, err)
	}
	g.app.UI.Success("status %s of commit %.8s set to %s", g.status, commit, status.State)
	return failed
}

func (g *Gate) writeComment(ctx context.Context, result error) (githost.Comment, error) {
	report := publish.Report{Key: g.key, Results: g.results, Problem: g.problemText(result), Base: g.base, Head: g.head, Run: g.request.Run}
	if g.request.Head != "" {
		report.Head = g.request.Head
	}
	comment, created, err := publish.Comment(ctx, g.pull, g.app.Secrets.Text(report.Markdown(g.host)))
	if err != nil {
		return comment, err
	}
	verb := map[bool]string{true: "created", false: "updated"}[created]
	g.app.UI.Success("comment %s on pull request %d of %s", verb, g.request.Number, g.request.Repository)
	return comment, nil
}

// problemText returns why the comparison failed or is incomplete, "" if it is complete.
func (g *Gate) problemText(result error) string {
	code := (*clierr.ExitCodeError)(nil)
	switch {
	case g.problem != nil:
		return g.problem.Error()
	case result == nil, errors.As(result, &code), errors.Is(result, clierr.ErrReported):
		return ""
	}
	message, remedy := clierr.Explain(result, nil)
	if remedy != "" {
		message += "\n" + remedy
	}
	return message
}

// state returns the commit state for a result.
func state(result error) githost.State {
	var code *clierr.ExitCodeError
	switch {
	case result == nil:
		return githost.Succeeded
	case errors.As(result, &code) && code.Code == clierr.ExitFailed:
		return githost.Failed
	}
	return githost.Errored
}

// summary returns the result on one line.
func (g *Gate) summary(result error) string {
	if g.results == nil || state(result) == githost.Errored && g.problem != nil {
		return "the comparison failed"
	}
	return render.Totals(g.results)
}
