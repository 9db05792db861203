package testdocs

import (
	"regexp"
	"slices"
	"strings"
)

// masks replace text that differs between runs.
var masks = []struct {
	pattern     *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| UTC)?`), "TIME"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:PORT"},
	{regexp.MustCompile(`\b[0-9a-f]{7,64}\b`), "HASH"},
	{regexp.MustCompile(`\bage1[0-9a-z]{58}\b`), "AGE-KEY"},
	// The hash of a ReplicaSet and the suffix of a pod.
	{regexp.MustCompile(`-([bcdfghjklmnpqrstvwxz2456789]{8,10}|HASH)-[bcdfghjklmnpqrstvwxz2456789]{5}\b`), "-HASH-SUFFIX"},
	{regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{8,10}\b`), "-HASH"},
	{regexp.MustCompile(`\b(\d+(\.\d+)?(d|h|m|s|ms|µs))+\b`), "TIME"},
	// Columns are as wide as their longest value.
	{regexp.MustCompile(`(?m)^[ \t]+TIME\b`), " TIME"},
	{regexp.MustCompile(`(\S)[ \t]+`), "$1 "},
	{regexp.MustCompile(`(?m)[ \t]+$`), ""},
}

func masked(output string) string {
	for _, m := range masks {
		output = m.pattern.ReplaceAllString(output, m.replacement)
	}
	return output
}

var progress = regexp.MustCompile(`(?m)^◎ .*\n`)

// WithoutProgress returns an output without progress lines, which depend on the speed of the machine.
func WithoutProgress(output string) string { return progress.ReplaceAllString(output, "") }

// MatchesInAnyOrder is Matches for lines whose order differs between runs, such as the order in which
// resources become ready. It does not support ….
func MatchesInAnyOrder(documented, output string) bool {
	sorted := func(text string) []string { return slices.Sorted(strings.Lines(masked(text))) }
	return slices.Equal(sorted(documented), sorted(output))
}

// Matches reports whether the output of a command is as documented, except for times, ports, hashes and
// widths of columns. A line that consists of … stands for any lines, another … for any text in its line.
func Matches(documented, output string) bool {
	var pattern strings.Builder
	pattern.WriteString(`\A`)
	for line := range strings.Lines(masked(documented)) {
		if line == "…\n" {
			pattern.WriteString(`(?:.*\n)*`)
			continue
		}
		pattern.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*"))
	}
	pattern.WriteString(`\z`)
	return regexp.MustCompile(pattern.String()).MatchString(masked(output))
}
