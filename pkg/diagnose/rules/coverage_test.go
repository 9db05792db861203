package rules

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// failuresFile lists what the controllers can report. `go run ./tools/failures` generates it from their sources.
const failuresFile = "testdata/failures.txt"

var update = flag.Bool("update", false, "write the marks of "+failuresFile+" that follow from the rules")

// handMarks are the marks of entries for which no rule and no field is expected.
var handMarks = map[string]string{
	"detail":      "a part of another text, which a rule quotes",
	"internal":    "a failure of the controller itself, such as of its disk: its message and the command for its logs",
	"progress":    "of an object that is not failed",
	"unreachable": "in a function that a controller does not call, although another one has its name",
	"waiting":     "waits for another object, which has the root cause",
}

// listed is an entry of the list.
type listed struct{ mark, pkg, controllers, text string }

// TestCoverage checks that each entry has the mark that follows from the rules, or, if no rule matches, one of the hand
// marks.
func TestCoverage(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(failuresFile)
	if err != nil {
		t.Fatal(err)
	}
	count, unmarked := map[string]int{}, 0
	lines := strings.Split(string(content), "\n")
	for i, line := range lines {
		columns := strings.Split(line, "\t")
		if len(columns) != 4 {
			continue
		}
		e := listed{columns[0], columns[1], columns[2], columns[3]}
		want := e.follows(t)
		if handMarks[e.mark] != "" && !strings.HasPrefix(want, "rule ") {
			want = e.mark
		}
		kind, _, _ := strings.Cut(want, " ")
		count[kind]++
		switch {
		case *update:
			lines[i] = strings.Join([]string{want, e.pkg, e.controllers, e.text}, "\t")
		case want == "":
			unmarked++
			t.Errorf("%s: %s: no rule, no field and no mark", e.pkg, e.text)
		case e.mark != want:
			t.Errorf("%s: %s: the mark is %q, not %q", e.pkg, e.text, e.mark, want)
		}
	}
	if len(lines) < 1000 {
		t.Errorf("only %d entries", len(lines))
	}
	t.Logf("%v", count)
	if *update {
		if err := os.WriteFile(failuresFile, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// wrappers are what the controllers add before the texts of packages.
var wrappers = []struct{ pkg, reason, prefix string }{
	{"kustomize-controller/internal/decryptor", "BuildFailed", "error decrypting sources: "},
	{"kustomize-controller/internal/sops", "BuildFailed", "error decrypting sources: "},
	{"pkg/kustomize", "BuildFailed", "kustomize build failed: "},
	{"pkg/envsubst", "BuildFailed", "post build failed for 'x': envsubst error: variable substitution failed: "},
	{"pkg/git", "GitOperationFailed", "failed to checkout and determine revision: "},
	{"pkg/oci", "OCIPullFailed", "failed to pull artifact from 'x': "},
	{"helm/chart", "ChartPullError", "chart pull error: "},
	{"pkg/chart", "InstallFailed", "Helm install failed for release apps/x with chart x@1.0.0: "},
	{"helm/v4/pkg/", "InstallFailed", "Helm install failed for release apps/x with chart x@1.0.0: "},
	{"image-reflector-controller/internal/registry", "ReadOperationFailed", "scan failed: "},
}

// follows returns the mark that follows from the rules: "rule CODE", "field NAME", "step" for a prefix whose
// cause has an entry of its own, or "".
func (e listed) follows(t *testing.T) string {
	t.Helper()
	if reason, ok := strings.CutPrefix(e.text, "reason "); ok {
		return e.reasonFollows(t, reason)
	}
	text, err := strconv.Unquote(e.text)
	if err != nil {
		t.Fatal(e.text, err)
	}
	var codes, names []string
	step := false
	for _, message := range synthesized(text) {
		step = step || len(failure.Parse(message).Steps) > 0
		for _, k := range kindsOfControllers(e.controllers) {
			found := Subject{}
			for _, w := range append(wrappers[:len(wrappers):len(wrappers)], struct{ pkg, reason, prefix string }{"", "Other", ""}) {
				if !strings.Contains(e.pkg, w.pkg) {
					continue
				}
				found = failing(t, k.Kind, w.reason, w.prefix+message, "")
				if f, ok := classify(found); ok {
					codes = append(codes, f.Code)
				}
			}
			if name := found.field(message); name != "" {
				names = append(names, name)
			}
		}
	}
	switch {
	case len(codes) > 0:
		return "rule " + joined(codes)
	case len(names) > 0:
		return "field " + joined(names)
	case step:
		return "step"
	}
	return ""
}

func joined(list []string) string {
	slices.Sort(list)
	return strings.Join(slices.Compact(list), " | ")
}

// reasonFollows returns the mark of the reason of a condition.
func (e listed) reasonFollows(t *testing.T, reason string) string {
	t.Helper()
	var codes []string
	for _, k := range kindsOfControllers(e.controllers) {
		if f, ok := classify(failing(t, k.Kind, reason, "unknown cause", "")); ok {
			codes = append(codes, f.Code)
		}
	}
	switch {
	case len(codes) > 0:
		return "rule " + joined(codes)
	case slices.Contains(upstreamReasons, reason):
		return "waiting"
	}
	return ""
}

func kindsOfControllers(names string) []controllers.Kind {
	var all []controllers.Kind
	for _, k := range controllers.Kinds {
		if slices.Contains(strings.Split(names, ","), k.Controller) {
			all = append(all, k)
		}
	}
	return all
}

// verb matches a verb of a format.
var verb = regexp.MustCompile(`%[+#]?[-0-9.]*(\[\d\])?[a-zA-Z]`)

// synthesized returns messages with a format, with values of the forms that occur in messages.
func synthesized(format string) []string {
	var all []string
	for _, value := range []string{"x", "apps/x", "https://x.example.com/y", "Secret/apps/x", "1.0.0", "5"} {
		all = append(all, verb.ReplaceAllStringFunc(format, func(v string) string {
			switch v[len(v)-1] {
			case 'w':
				return "unknown cause"
			case 'q':
				return strconv.Quote(value)
			case 'd':
				return "5"
			default:
				return value
			}
		}))
	}
	return all
}
