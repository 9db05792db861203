package printable_test

import (
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/terminal/printable"
)

// TestCommands writes commands of CI systems, and text that looks like them, at once and byte by byte.
func TestCommands(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300) // the name of a command
	for text, want := range map[string]string{
		// GitHub, Gitea and Forgejo Actions trim the line.
		"::error::x\n":                         "\\x3a:error::x\n",
		"a\n  \t::set-output name=a::b":        "a\n  \t\\x3a:set-output name=a::b",
		"a\r::add-mask::b":                     "a\r\\x3a:add-mask::b",
		"\u00a0\u2003\u200b::stop-commands::x": "\u00a0\u2003\u200b\\x3a:stop-commands::x",
		"::0a1b::\n":                           "\\x3a:0a1b::\n", // resumes commands, if it is the token
		"::" + long:                            "\\x3a:" + long,
		// Older commands of GitHub, and those of Azure Pipelines and TeamCity, begin anywhere.
		"- x: ##[add-path]/x\n":                      "- x: \\x23#[add-path]/x\n",
		"✗ a ##vso[task.setvariable variable=a]b":    "✗ a \\x23#vso[task.setvariable variable=a]b",
		"####VSO[task.complete]":                     "##\\x23#VSO[task.complete]",
		"##teamcity[buildStatus status='SUCCESS']\n": "\\x23#teamcity[buildStatus status='SUCCESS']\n",
		"##[a]##[b]": "\\x23#[a]\\x23#[b]",
		// Similar text.
		"std::string a::b\n":              "std::string a::b\n",
		"key: ::1\n- ::error::x":          "key: ::1\n- ::error::x",
		"::1\n::ffff:10.0.0.1\n::1 is it": "::1\n::ffff:10.0.0.1\n::1 is it",
		"::\n:: x\n:error:x\n:::a::":      "::\n:: x\n:error:x\n:::a::",
		"::error\n:: ":                    "::error\n:: ",
		"## [x] ##\n#[x] ##vs[ ##vso x":   "## [x] ##\n#[x] ##vs[ ##vso x",
		"+ ::error::x\n--- a\n+++ b\n":    "+ ::error::x\n--- a\n+++ b\n",
		"a:":                              "a:",
		"##":                              "##",
		":":                               ":",
		"\xe2\x80":                        "\xe2\x80",
		"":                                "",
	} {
		for _, size := range []int{1, 3, len(text) + 1} {
			var b strings.Builder
			w := printable.NewCommandWriter(&b)
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				if written, err := w.Write([]byte(rest[:n])); written != n || err != nil {
					t.Fatalf("%d bytes, %v", written, err)
				}
				rest = rest[n:]
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			if b.String() != want {
				t.Errorf("%q in parts of %d: %q, want %q", text, size, b.String(), want)
			}
		}
	}
}
