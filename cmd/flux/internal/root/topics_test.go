package root

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clusters"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
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

// TestTopics checks the width of all topics, and that they are sorted by name.
func TestTopics(t *testing.T) {
	t.Parallel()
	var names []string
	for _, c := range commands() {
		if c.group == groupTopics && c.name != "help" {
			names = append(names, c.name)
			topic(t, c.name)
		}
	}
	if len(names) < 6 || !slices.IsSorted(names) {
		t.Errorf("topics %v", names)
	}
}

// readVariable matches the names of variables in source code: those of flux, and
// those that a function reads from the environment.
var readVariable = regexp.MustCompile(`"((?:FLUX|FLUXCD)_[A-Z_]+[A-Z])"|(?:[eE]nv|Getenv|LookupEnv)\("([A-Z_]+)"\)|(?:tokenEnv: +|[aA]ctions\w+ += |gitlabToken += |vaultAllowlist += )"([A-Z_]+)"`)

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

// TestExitCodesTopic checks that the topic and docs/exit-codes.md have the codes of all commands that
// declare some, and that the help of each command has them.
func TestExitCodesTopic(t *testing.T) {
	t.Parallel()
	text := topic(t, "exit-codes")
	doc, err := os.ReadFile(filepath.Join(testcluster.Root(), "docs", "exit-codes.md"))
	if err != nil {
		t.Fatal(err)
	}
	root := NewRoot(app.New(nil, nil, nil, func(string) string { return "" }, time.Now), nil)
	if string(doc) != command.ExitDocument(root, 0) {
		t.Error("docs/exit-codes.md is outdated: run make docs")
	}
	for _, path := range []string{"flux diff", "flux test vendor", "flux sandbox", "flux wait"} {
		if !strings.Contains(text, "\n  "+path+"\n") || !strings.Contains(string(doc), "\n## "+path+"\n") {
			t.Errorf("the exit codes of %s are missing:\n%s", path, text)
		}
	}
	for line, codes := range map[string][]string{"diff ks": {"0", "1", "2"}, "why": {"0", "1", "2"}, "trace": {"1"}, "replay": {"130", "other"}, "get ks": nil} {
		_, help, _ := runApp(t, append(strings.Fields(line), "--help")...)
		_, section, _ := strings.Cut(help, "\nExit codes:\n")
		section, _, _ = strings.Cut(section, "\n\n")
		var shown []string
		for _, m := range regexp.MustCompile(`(?m)^  (\w+) `).FindAllStringSubmatch(section, -1) {
			shown = append(shown, m[1])
		}
		if !slices.Equal(shown, codes) {
			t.Errorf("the help of flux %s has the exit codes %q, want %q:\n%s", line, shown, codes, help)
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

// TestClustersTopic checks that the commands for several clusters exist and have no flag whose output cannot be merged.
func TestClustersTopic(t *testing.T) {
	t.Parallel()
	root := NewRoot(app.New(nil, nil, nil, func(string) string { return "" }, time.Now), nil)
	for _, name := range clusters.Commands() {
		cmd, rest, err := root.Find(strings.Fields(name))
		if err != nil || len(rest) > 0 || cmd.CommandPath() != "flux "+name {
			t.Errorf("%s: %v, %v", name, rest, err)
			continue
		}
		if output := cmd.Flags().Lookup("output"); output != nil && !slices.Contains([]string{"", app.People, "yaml"}, output.DefValue) {
			t.Errorf("flux %s prints %s by default, which several clusters do not support", name, output.DefValue)
		}
	}
}
