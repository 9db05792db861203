package render

import (
	"io"

	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/diff"
)

// gitlabMax is the maximum number of characters in a GitLab comment.
const gitlabMax = 1_000_000

// Formats are the names of the formats, in the order of help.
func Formats() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.name
	}
	return names
}

// ImageFormats are the formats of a report of images.
func ImageFormats() []string { return []string{"human", "json"} }

// WriteImages writes the images that change in one of ImageFormats.
func WriteImages(w io.Writer, format string, results []*diff.Result) error {
	if format == "json" {
		return ImagesJSON(w, results)
	}
	return Images(w, results)
}

// Write writes results in a format.
func Write(w io.Writer, format string, results []*diff.Result, s Style) error {
	for _, f := range formats {
		if f.name == format {
			return f.write(w, results, s)
		}
	}
	return output.UnknownFormat(format, Formats()...)
}

var formats = []struct {
	name  string
	write func(io.Writer, []*diff.Result, Style) error
}{
	{"human", Human},
	{"brief", Brief},
	{"unified", Unified},
	{"json", plain(JSON)},
	{"html", plain(HTML)},
	{"github", comment(CommentMax)},
	{"gitlab", comment(gitlabMax)},
	{"gitea", comment(CommentMax)},
	{"bitbucket", func(w io.Writer, results []*diff.Result, _ Style) error { return Plain(w, results, bitbucketMax) }},
	{"annotations", plain(Annotations)},
	{"sarif", plain(SARIF)},
	{"junit", plain(JUnit)},
}

func plain(write func(io.Writer, []*diff.Result) error) func(io.Writer, []*diff.Result, Style) error {
	return func(w io.Writer, results []*diff.Result, _ Style) error { return write(w, results) }
}

func comment(limit int) func(io.Writer, []*diff.Result, Style) error {
	return func(w io.Writer, results []*diff.Result, _ Style) error { return Markdown(w, results, limit) }
}
