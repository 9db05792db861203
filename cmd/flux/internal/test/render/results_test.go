package render

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/pkg/testrun/assert"
	"github.com/fluxkit/flux/pkg/testrun/examine"
	"github.com/fluxkit/flux/pkg/testrun/settle"
)

// results has a test that passes, one that fails, and an outcome that is not known.
func results() *examine.Report {
	failed := assert.Result{
		Test: "drift", Step: "change", File: "a.fluxtest.yaml", Line: 7, Outcome: assert.Failed, Expected: "ConfigMap/a/b exists",
		Actual: "it was deleted", Since: time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC), Seconds: 1.5,
	}
	unknown := assert.Result{Test: "drift", Step: "next", File: "a.fluxtest.yaml", Line: 9, Outcome: assert.Undetermined, Expected: "ConfigMap/a/b exists", Actual: `the step "change" has failed`}
	passed := assert.Result{Test: "rollout", Step: "rollout", File: "a.fluxtest.yaml", Line: 3, Outcome: assert.Passed, Expected: "Namespace/a exists"}
	r := &examine.Report{Objects: []settle.Status{{Status: settle.Ready}}}
	r.AddTests([]assert.Result{passed, failed, unknown})
	return r
}

func TestResults(t *testing.T) {
	t.Parallel()
	r := results()
	want := []string{
		"rollout: 1 assertion passed", "drift: 0 of 2 assertions passed",
		"  failed: a.fluxtest.yaml:7: drift: change: expected ConfigMap/a/b exists, but it was deleted (since 10:00:00)",
		`  undetermined: a.fluxtest.yaml:9: drift: next: expected ConfigMap/a/b exists, but the step "change" has failed`,
	}
	if diff := cmp.Diff(want, testLines(r)); diff != "" {
		t.Error(diff)
	}
	annotations := testAnnotations(r)
	if strings.Count(annotations, "::") != 4 || !strings.Contains(annotations, "::error file=a.fluxtest.yaml,title=assertion::") || !strings.Contains(annotations, "::warning ") {
		t.Error(annotations)
	}
	var junit bytes.Buffer
	if err := suites(r).Write(&junit); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`tests="4" failures="1" skipped="1"`, `<testsuite name="drift" tests="2" failures="1" skipped="1">`, `name="change: ConfigMap/a/b exists" time="1.5"`} {
		if !strings.Contains(junit.String(), part) {
			t.Errorf("%s is missing in\n%s", part, junit.String())
		}
	}
}

// TestConclusion checks that an assertion that fails counts more than one that is not known.
func TestConclusion(t *testing.T) {
	t.Parallel()
	r := results()
	for want, tests := range map[string][]assert.Result{
		settle.NotReady: r.Tests, settle.Ready: r.Tests[:1], examine.Undetermined: {r.Tests[0], r.Tests[2]},
	} {
		if r.AddTests(tests); r.Result != want {
			t.Errorf("%s for %v, want %s", r.Result, tests, want)
		}
	}
}

// TestOutputs checks that each report is written to its file or to standard output, and that a part of a
// report is never left.
func TestOutputs(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := app.New(strings.NewReader(""), &out, io.Discard, func(string) string { return "" }, time.Now)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	outputs := []command.Output{{Format: "human"}, {Format: "json", File: at("a.json")}, {Format: "junit", File: at("a.xml")}, {Format: "html", File: at("a.html")}}
	r := results()
	r.Unknown = []string{"control \x1b[31m"}
	if err := Write(a, outputs, r); err != nil {
		t.Fatal(err)
	}
	a.Flush()
	if got := out.String(); got != text(r) {
		t.Errorf("standard output is\n%s", got)
	}
	for name, want := range map[string]string{"a.json": `"control \u001b[31m"`, "a.xml": "<testsuite", "a.html": "<!DOCTYPE html>"} {
		if content, err := os.ReadFile(at(name)); err != nil || !strings.Contains(string(content), want) {
			t.Errorf("%s: %v\n%s", name, err, content)
		}
	}
	if err := Write(a, []command.Output{{Format: "junit", File: filepath.Join(dir, "none", "a.xml")}}, r); err == nil || !strings.Contains(err.Error(), "writing the junit report") {
		t.Errorf("a directory that does not exist: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 {
		t.Errorf("left: %v %v", entries, err)
	}
}
