package render_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/render"
)

// TestReportsAreInert checks that names and messages of a repository change
// neither the structure of a report nor a terminal.
func TestReportsAreInert(t *testing.T) {
	t.Parallel()
	command := regexp.MustCompile(`^::(error|warning|notice) title=[a-z-]+::[^\r\n]*$`)
	for _, text := range append(hostileMarkup, "::error::x", "%0A::error::x", "a\n::error::x", "a\r\n::stop-commands::x", "]]>", "<failure/>") {
		results := hostileResults(text)
		results[0].Dangers = []diff.Danger{{Rule: "immutable", Detail: text}}
		results[0].NotCompared = &diff.Omission{Reason: text}
		reports := map[string]string{}
		for _, format := range []string{"brief", "annotations", "sarif", "junit"} {
			b, err := render.Text(format, results, render.Style{})
			if err != nil {
				t.Fatal(err)
			}
			reports[format] = b
			if format != "sarif" && strings.ContainsFunc(b, func(r rune) bool { return unicode.IsControl(r) && r != '\n' || unicode.Is(unicode.Bidi_Control, r) }) {
				t.Errorf("%s, %q: control characters in %q", format, text, b)
			}
		}
		lines := strings.Split(strings.TrimSuffix(reports["annotations"], "\n"), "\n")
		for _, line := range lines {
			if !command.MatchString(line) {
				t.Errorf("%q: not one command: %q", text, line)
			}
		}
		if brief := strings.Count(reports["brief"], "\n"); len(lines) != 4 || brief != 6 {
			t.Errorf("%q: %d annotations, %d lines in brief:\n%s", text, len(lines), brief, reports["brief"])
		}
		if n := sarifResults(t, reports["sarif"]); n != 4 {
			t.Errorf("%q: %d results in SARIF", text, n)
		}
		if elements := elementsOf(t, reports["junit"]); elements["testcase"] != 4 || elements["failure"] != 5 || elements["skipped"] != 1 || len(elements) != 5 {
			t.Errorf("%q: JUnit has %v", text, elements)
		}
	}
}

// TestOrder requires that failures come first, then dangers in the order of the rules, in all reports that list them, with
// the files and lines of the objects, and that only SARIF has the other changes.
func TestOrder(t *testing.T) {
	t.Parallel()
	results := created(4, 1)
	changes := results[0].Changes
	changes[0].Dangers, changes[0].File, changes[0].Line = []diff.Danger{{Rule: "privileged"}}, "apps/a.yaml", 7
	changes[1].Dangers, changes[1].File = []diff.Danger{{Rule: "namespace-removal"}}, "apps/b.yaml"
	changes[2].Action, changes[2].Reason = diff.Failed, "invalid"
	changes[3].Action, changes[3].Dangers = diff.Pruned, []diff.Danger{{Rule: "prune", Notice: true}}
	want := []string{"object-2 cannot be applied: invalid", "object-1 is deleted with everything in it", "object-0 runs privileged"}
	at := render.Comparison{Base: "main", Head: "topic", Paths: []string{"clusters/a"}, At: time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)}
	for format, said := range map[string]string{
		"annotations": "::warning file=apps/a.yaml,line=7,title=privileged::", "brief": "", "html": "clusters/a: topic compared with main, 2026-11-01 10:00 UTC",
		"github": "`clusters/a`: `topic` compared with `main`\n", "bitbucket": "`topic` compared with `main`",
		"sarif": `"uri": "apps/a.yaml"`, "junit": `file="apps/a.yaml" line="7"`, "json": `"file": "apps/a.yaml"`,
	} {
		text, err := render.Text(format, results, render.Style{Comparison: at})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text, said) {
			t.Errorf("%s lacks %q:\n%s", format, said, text)
		}
		if format == "junit" || format == "json" {
			continue // in the order of the objects
		}
		rest := strings.ReplaceAll(strings.ReplaceAll(text, "`", ""), "✗ ", "")
		for _, line := range want {
			_, after, found := strings.Cut(rest, line)
			if rest = after; !found {
				t.Errorf("%s: %q is missing or too early:\n%s", format, line, text)
			}
		}
		if found := strings.Contains(text, "object-3 is deleted"); found != (format == "sarif") {
			t.Errorf("%s has the change that is no problem: %t", format, found)
		}
	}
}

func sarifResults(t *testing.T, text string) int {
	t.Helper()
	var log struct {
		Runs []struct {
			Results []struct{ Message struct{ Text string } }
		}
	}
	if err := json.Unmarshal([]byte(text), &log); err != nil {
		t.Fatal(err)
	}
	return len(log.Runs[0].Results)
}

// elementsOf counts the elements of an XML document.
func elementsOf(t *testing.T, text string) map[string]int {
	t.Helper()
	found := map[string]int{}
	decoder := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if start, ok := token.(xml.StartElement); ok {
			found[start.Name.Local]++
		}
	}
}

// TestBriefOfClusters checks that the number of clusters counts those with changes, not those that were not compared.
func TestBriefOfClusters(t *testing.T) {
	t.Parallel()
	omitted := &diff.Result{Cluster: "clusters/a", NotCompared: &diff.Omission{Reason: "no network"}}
	changed := &diff.Result{Cluster: "clusters/b", Changes: []diff.Change{{Action: diff.Created, Object: controllers.VersionedID{ID: controllers.ID{Kind: "ConfigMap", Name: "b"}}}}}
	for _, c := range []struct {
		results []*diff.Result
		want    string
	}{
		{[]*diff.Result{omitted}, "\n1 not compared\n"},
		{[]*diff.Result{changed}, "\n1 created in 1 of 1 clusters\n"},
		{[]*diff.Result{omitted, changed}, "\n1 created in 1 of 2 clusters, 1 not compared\n"},
	} {
		if got := render.Brief(c.results, render.Style{}); !strings.HasSuffix("\n"+got, c.want) {
			t.Errorf("%q does not end with %q", got, c.want)
		}
	}
}
