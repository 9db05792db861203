// Package publish writes the result of a comparison to a pull request: as one
// comment, which later runs replace, and as the status of a commit.
package publish

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/render"
)

// Report is the content of a comment.
type Report struct {
	// Key identifies the comment on the pull request.
	Key string
	// Results lists the results of the comparison, or is nil if it failed.
	Results []*diff.Result
	// Problem is the reason why the comparison failed or is incomplete, or "".
	Problem string
	// Base and Head are the compared revisions. Run is the web page of the CI run, or "" if it is unknown.
	Base, Head, Run string
}

// Markdown returns the comment for a host, with its marker and at most the size that the host accepts.
func (r Report) Markdown(host githost.PullRequestHost) string {
	head, foot := Marker(r.Key, host.HTML)+"\n\n"+r.problem(), "\n"+r.footer()
	if r.Results == nil {
		return head + foot
	}
	write := render.Plain
	if host.HTML {
		write = render.Markdown
	}
	return head + write(r.Results, host.MaxComment-len(head)-len(foot)) + foot
}

// problem returns the part about an error. Its text is untrusted.
func (r Report) problem() string {
	if r.Problem == "" {
		return ""
	}
	const most = 4000
	text := printable.Text(r.Problem)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	title := "### Flux: the comparison failed"
	if r.Results != nil {
		title = "### Flux: the comparison is incomplete"
	}
	return title + "\n\n" + render.Fenced("", text+"\n") + "\n\n"
}

// footer returns the line with the compared revisions.
func (r Report) footer() string {
	text := render.Span(r.Key)
	if r.Head != "" && r.Base != "" {
		text += ": " + render.Span(r.Head) + " compared with " + render.Span(r.Base)
	}
	if u, err := url.Parse(r.Run); err == nil && (u.Scheme == "https" || u.Scheme == "http") && !strings.ContainsAny(r.Run, " ()<>\\\"") {
		text += " ([run](" + r.Run + "))"
	}
	return text + "\n"
}

// Marker returns the first line of a comment, by which later runs find it. It is not
// displayed: it is an HTML comment or an unused link definition.
func Marker(key string, html bool) string {
	name := "flux diff: " + url.PathEscape(key)
	if html {
		return "<!-- " + name + " -->"
	}
	return "[//]: # (" + name + ")"
}

// attempts is the maximum number of attempts to replace a comment that others change concurrently.
const attempts = 3

// Comment creates or replaces the comment with the same first line as text, and reports whether it is new. It replaces only
// comments of the token's own account, because anybody can write a comment with that first line. If several runs have created
// one, the oldest is kept.
func Comment(ctx context.Context, pull githost.PullRequest, text string) (c githost.Comment, created bool, err error) {
	for range attempts {
		c, created, err = replace(ctx, pull, text)
		if !errors.Is(err, githost.ErrCommentChanged) && !errors.Is(err, githost.ErrCommentDeleted) {
			return c, created, err
		}
	}
	return c, false, fmt.Errorf("updating the comment: %w", err)
}

func replace(ctx context.Context, pull githost.PullRequest, text string) (c githost.Comment, created bool, err error) {
	first, _, _ := strings.Cut(text, "\n")
	found, err := pull.Comments(ctx, first)
	if err != nil {
		return c, false, err
	}
	if len(found) > 0 {
		own, err := pull.Account(ctx)
		if err != nil {
			return c, false, err
		}
		found = slices.DeleteFunc(found, func(c githost.Comment) bool { return !own.Wrote(c) })
	}
	if len(found) > 0 {
		c, err = keep(ctx, pull, found, text)
		return c, false, err
	}
	added, err := pull.AddComment(ctx, text)
	if err != nil {
		return added, false, err
	}
	// Another run may have created a comment at the same time. Both runs find both
	// comments, because each lists the comments after it has created its own.
	if found, err = pull.Comments(ctx, first); err != nil {
		return added, true, err
	}
	found = slices.DeleteFunc(found, func(c githost.Comment) bool { return !added.Author.Wrote(c) })
	if len(found) > 0 && found[0].ID != added.ID {
		c, err = keep(ctx, pull, []githost.Comment{found[0], added}, text)
		return c, false, err
	}
	return added, true, nil
}

// keep replaces the text of the first comment and deletes the others.
func keep(ctx context.Context, pull githost.PullRequest, found []githost.Comment, text string) (githost.Comment, error) {
	kept := found[0]
	if !same(kept.Text, text) {
		var err error
		if kept, err = pull.EditComment(ctx, kept, text); err != nil {
			return kept, err
		}
	}
	for _, other := range found[1:] {
		if err := pull.DeleteComment(ctx, other); err != nil && !errors.Is(err, githost.ErrCommentDeleted) {
			return kept, err
		}
	}
	return kept, nil
}

// same compares a comment with what its host has stored.
func same(stored, text string) bool {
	return strings.TrimSpace(strings.ReplaceAll(stored, "\r\n", "\n")) == strings.TrimSpace(text)
}
