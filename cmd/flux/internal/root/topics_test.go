package root

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/config"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testcluster"
)

// topic returns the text of 'flux help NAME'.
func topic(t *testing.T, name string) string {
	t.Helper()
	code, out, errs := runApp(t, "help", name)
	if code != clierr.ExitSuccess || errs != "" || strings.Contains(out, "Usage:") {
		t.Fatalf("flux help %s: exit %d, stderr %q:\n%s", name, code, errs, out)
	}
	for _, line := range strings.Split(out, "\n") {
		if len([]rune(line)) > helpWidth && !strings.HasPrefix(line, "  flux ") {
			t.Errorf("flux help %s: wider than %d columns: %s", name, helpWidth, line)
		}
	}
	return out
}

// readVariable matches the names of variables in source code: those of flux, and
// those that a function reads from the environment.
var readVariable = regexp.MustCompile(`"((?:FLUX|FLUXCD)_[A-Z_]+[A-Z])"|(?:[eE]nv|Getenv|LookupEnv)\("([A-Z_]+)"\)|(?:tokenEnv: +|actions\w+ += |vaultAllowlist += )"([A-Z_]+)"`)

// TestEnvironmentTopic checks that the topic has each variable that the source code
// reads, and no other variable of flux.
func TestEnvironmentTopic(t *testing.T) {
	t.Parallel()
	text := topic(t, "environment")
	read := map[string]bool{"KUBECONFIG": true} // by client-go
	for _, name := range config.Variables() {
		read[name] = true
	}
	for _, dir := range []string{"cmd", "internal", "pkg", "manifests"} {
		for name := range variablesIn(t, filepath.Join(testcluster.Root(), dir)) {
			read[name] = true
		}
	}
	for _, known := range []string{"FLUX_TIMEOUT", "FLUX_SYSTEM_NAMESPACE", "FLUXCD_PLUGINS", "NO_COLOR", "GITHUB_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_URL"} {
		if !read[known] {
			t.Errorf("the source code was not searched for %s", known)
		}
	}
	shown := regexp.MustCompile(`[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*`).FindAllString(text, -1)
	for name := range read {
		if !slices.Contains(shown, name) {
			t.Errorf("flux reads %s, which the topic does not have", name)
		}
	}
	for _, name := range shown {
		if strings.HasPrefix(name, "FLUX") && !read[name] {
			t.Errorf("the topic has %s, which flux does not read", name)
		}
	}
}

// variablesIn returns the variables that the Go files in a directory read, except
// tests and packages for tests.
func variablesIn(t *testing.T, dir string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), "test"):
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		for _, m := range readVariable.FindAllStringSubmatch(string(source), -1) {
			found[m[1]+m[2]+m[3]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestExitCodesTopic compares the topic with docs/exit-codes.md.
func TestExitCodesTopic(t *testing.T) {
	t.Parallel()
	text := topic(t, "exit-codes")
	doc, err := os.ReadFile(filepath.Join(testcluster.Root(), "docs", "exit-codes.md"))
	if err != nil {
		t.Fatal(err)
	}
	unique := func(pattern, s string) []string {
		var found []string
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(s, -1) {
			found = append(found, m[1])
		}
		slices.Sort(found)
		return slices.Compact(found)
	}
	codes := unique(`(?m)^\| (\d+) \|`, string(doc))
	if len(codes) != 4 || !slices.Equal(codes, unique(`(?m)^  (\d+)  `, text)) {
		t.Errorf("docs/exit-codes.md lists the codes %v, the topic %v", codes, unique(`(?m)^  (\d+)  `, text))
	}
	for _, command := range unique("(?m)^`flux ([a-z]+)", string(doc)) {
		if !strings.Contains(text, "\n  flux "+command) {
			t.Errorf("docs/exit-codes.md describes flux %s, the topic does not", command)
		}
	}
	for _, command := range unique(`(?m)^  flux ([a-zA-Z]+)`, text) {
		if !strings.Contains(string(doc), "`flux "+command) {
			t.Errorf("the topic describes flux %s, docs/exit-codes.md does not", command)
		}
	}
}

// TestFormattingTopic checks that the topic has all formats, and that flux accepts
// those that it has.
func TestFormattingTopic(t *testing.T) {
	t.Parallel()
	text := topic(t, "formatting")
	for _, format := range strings.Split(output.Formats, ", ") {
		if name, _, _ := strings.Cut(format, "…"); !regexp.MustCompile(`(?m)^  (.*, )?` + regexp.QuoteMeta(name)).MatchString(text) {
			t.Errorf("no format %s", name)
		}
	}
	_, formats, _ := strings.Cut(text, "such as get and events:")
	formats, _, _ = strings.Cut(formats, "With more than one object")
	template := filepath.Join(t.TempDir(), "template")
	if err := os.WriteFile(template, []byte("{.kind}"), 0o600); err != nil {
		t.Fatal(err)
	}
	values := strings.NewReplacer("TEMPLATE", "{.kind}", "FILE", template, "HEADER:PATH,…", "A:.kind")
	for _, line := range regexp.MustCompile(`(?m)^  (\S.*)$`).FindAllStringSubmatch(formats, -1) {
		for _, format := range strings.Split(line[1], ", ") {
			if format == "wide" {
				continue // a table
			}
			if _, err := output.ObjectPrinter(values.Replace(format)); err != nil {
				t.Errorf("the topic has %s: %v", format, err)
			}
		}
	}
}

// TestSelectorsTopic checks the names of kinds in the topic, and that its flags
// exist.
func TestSelectorsTopic(t *testing.T) {
	t.Parallel()
	text := strings.ReplaceAll(topic(t, "selectors"), "\n      ", " ")
	for _, k := range controllers.Kinds {
		m := regexp.MustCompile(`(?m)^  ` + k.Kind + `: (.*)$`).FindStringSubmatch(text)
		if m == nil {
			t.Errorf("no names of %s", k.Kind)
			continue
		}
		for _, word := range strings.Split(m[1], ", ") {
			if !slices.ContainsFunc(controllers.KindsNamed(word), func(named controllers.Kind) bool { return named.Kind == k.Kind }) {
				t.Errorf("%q does not name %s", word, k.Kind)
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^  (?:-\w, )?(--[a-z-]+)`).FindAllStringSubmatch(text, -1) {
		_, help, _ := runApp(t, "get", "--help")
		_, more, _ := runApp(t, "reconcile", "--help")
		if !strings.Contains(help+more, m[1]+" ") {
			t.Errorf("neither get nor reconcile has %s", m[1])
		}
	}
}
