package root

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/pkg/controllers"
)

// TestExamples checks that each example is a command line of flux with flags that
// exist and have valid values, and that it shows the command that it is about.
func TestExamples(t *testing.T) {
	t.Parallel()
	shown := 0
	everyCommand(func(cmd *cobra.Command) {
		about := false
		for _, words := range exampleLines(cmd.Example) {
			found, err := parsedExample(words)
			if err != nil {
				t.Errorf("%s: example %q: %v", cmd.CommandPath(), strings.Join(words, " "), err)
			}
			shown++
			about = about || found == cmd.CommandPath() || strings.HasPrefix(found, cmd.CommandPath()+" ")
		}
		if cmd.Example != "" && !about {
			t.Errorf("%s: no example of it in:\n%s", cmd.CommandPath(), cmd.Example)
		}
	})
	if shown < 500 {
		t.Errorf("only %d examples were found", shown)
	}
}

// TestRequiredFlags checks that the rows of the catalog have the flags that create requires, which are
// part of remedies, for each kind to which others refer.
func TestRequiredFlags(t *testing.T) {
	t.Parallel()
	var referred []string
	for _, k := range controllers.Kinds {
		for _, r := range append(slices.Clone(k.Refs), orEmpty(k.Source), orEmpty(k.Results)) {
			referred = append(referred, r.Kinds...)
		}
	}
	for _, k := range controllers.Kinds {
		want := k.Has(controllers.Create) && slices.Contains(referred, k.Kind)
		if got := k.Required != ""; got != want {
			t.Errorf("%s has required flags: %v, want %v", k.Kind, got, want)
		}
		if k.Required == "" {
			continue
		}
		scheme := "https"
		if k.Kind == "OCIRepository" {
			scheme = "oci"
		}
		values := strings.NewReplacer("<source>", "GitRepository/app", "<url>", scheme+"://example.com/app", "<range>", "1.x", "<type>", "slack", "<", "", ">", "")
		args := append(strings.Fields("create "+k.Noun()), strings.Fields("gone -n apps --export "+values.Replace(k.Required))...)
		code, out, errs := runApp(t, args...)
		if code != 0 || !strings.Contains(out, "\nkind: "+k.Kind+"\n") {
			t.Errorf("%v: exit code %d\n%s%s", args, code, out, errs)
		}
	}
}

func orEmpty(r *controllers.Ref) controllers.Ref {
	if r == nil {
		return controllers.Ref{}
	}
	return *r
}

// TestExamplesOfKinds checks that the commands on a kind have examples with objects
// of the kind.
func TestExamplesOfKinds(t *testing.T) {
	t.Parallel()
	verbs := map[string]controllers.Verb{
		"get": controllers.Get, "wait": controllers.Get, "export": controllers.Export, "suspend": controllers.Suspend, "resume": controllers.Resume,
		"reconcile": controllers.Reconcile, "delete": controllers.Delete, "tree": controllers.Tree, "history": controllers.History,
	}
	checked, want := 0, 0
	for _, applies := range verbs {
		for _, k := range controllers.Kinds {
			if k.Has(applies) {
				want++
			}
		}
	}
	everyCommand(func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())[1:]
		i := slices.IndexFunc(controllers.Kinds, func(k controllers.Kind) bool {
			words := path[1:]
			return strings.Join(words, " ") == k.Noun() || strings.Join(words, " ") == strings.TrimSpace(plural(k.Family)+" "+k.Plural)
		})
		if verbs[path[0]] == 0 || i < 0 {
			return
		}
		checked++
		k := controllers.Kinds[i]
		if k.Examples.Names[0] == "" || !strings.Contains(cmd.Example, " "+k.Examples.Names[0]) {
			t.Errorf("%s: no example with an object of %s:\n%s", cmd.CommandPath(), k.Kind, cmd.Example)
		}
		if !k.HasConditions() && strings.Contains(cmd.Example, "ready") {
			t.Errorf("%s: %s has no Ready condition:\n%s", cmd.CommandPath(), k.Kind, cmd.Example)
		}
		if len(k.Secrets) == 0 && strings.Contains(cmd.Example, "--with-credentials") || !k.Applies() && strings.Contains(cmd.Example, "prune") {
			t.Errorf("%s: an example does not apply to %s:\n%s", cmd.CommandPath(), k.Kind, cmd.Example)
		}
	})
	if checked != want {
		t.Errorf("%d commands were checked, want %d", checked, want)
	}
}

func plural(family string) string {
	if family == "" {
		return ""
	}
	return family + "s"
}

// exampleLines returns the words of each command line of flux in examples.
func exampleLines(text string) [][]string {
	var lines [][]string
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if i := strings.Index(line, "| flux "); i >= 0 {
			line = line[i+2:]
		}
		if i := strings.Index(line, "(flux "); i >= 0 {
			line = line[i+1:]
		}
		if strings.HasPrefix(line, "flux ") {
			lines = append(lines, shellWords(line)[1:])
		}
	}
	return lines
}

// shellWords splits a command line at spaces outside of quotes, up to a pipe or a
// redirection.
func shellWords(line string) []string {
	var words []string
	var word strings.Builder
	quote, in, depth := rune(0), false, 0
	for _, r := range line + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, in = r, true
		case r == '(':
			depth++
			word.WriteRune(r)
		case r == ')' && depth > 0:
			depth--
			word.WriteRune(r)
		case depth == 0 && (r == '|' || r == '>' || r == '<' || r == ';' || r == ')'):
			if word.Len() > 0 {
				words = append(words, word.String())
			}
			return words
		case r == ' ' && depth == 0:
			if in || word.Len() > 0 {
				words = append(words, word.String())
			}
			word.Reset()
			in = false
		default:
			word.WriteRune(r)
		}
	}
	return words
}

// parsedExample returns the path of the command that words run, or an error if
// their flags are invalid.
func parsedExample(words []string) (path string, err error) {
	a := app.New(strings.NewReader(""), io.Discard, io.Discard, func(string) string { return "" }, time.Now)
	cmd, rest, err := NewRoot(a, nil).Find(words)
	if err != nil {
		return "", err
	}
	if err := cmd.ParseFlags(rest); !errors.Is(err, pflag.ErrHelp) {
		return cmd.CommandPath(), err
	}
	return cmd.CommandPath(), nil
}

// TestEachHasExamples checks that each command has an example.
func TestEachHasExamples(t *testing.T) {
	t.Parallel()
	everyCommand(func(cmd *cobra.Command) {
		if cmd.Example == "" && !cmd.Hidden {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
	})
}
