package render

import (
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/diff"
)

// gitlabMax is the maximum number of characters in a GitLab comment.
const gitlabMax = 1_000_000

// Formats lists the names of the formats, in the order of the help text.
func Formats() []string {
	return []string{"human", "brief", "unified", "json", "html", "github", "gitlab", "gitea", "bitbucket", "annotations", "sarif", "junit"}
}

// ListFormats lists the formats of Images and Timelines.
func ListFormats() []string { return []string{"human", "json"} }

// Text returns results in one of Formats.
func Text(format string, results []*diff.Result, s Style) (string, error) {
	switch format {
	case "human":
		return Human(results, s), nil
	case "brief":
		return Brief(results, s), nil
	case "unified":
		return Unified(results, s), nil
	case "json":
		return encode(report(results))
	case "html":
		return HTML(results, s.Comparison), nil
	case "github", "gitea", "gitlab", "bitbucket":
		foot := s.Comparison.footer()
		switch format {
		case "gitlab":
			return Markdown(results, gitlabMax-len(foot)) + foot, nil
		case "bitbucket":
			return Plain(results, bitbucketMax-len(foot)) + foot, nil
		}
		return Markdown(results, CommentMax-len(foot)) + foot, nil
	case "annotations":
		return Annotations(results), nil
	case "sarif":
		return encode(sarif(results))
	case "junit":
		return junit(results)
	}
	return "", output.UnknownFormat(format, Formats()...)
}
