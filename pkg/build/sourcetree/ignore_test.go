package sourcetree

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/sourceignore"
)

// TestExcluded checks that a missing file or directory is reported with the rule that excludes it.
func TestExcluded(t *testing.T) {
	t.Parallel()
	tree := func(files map[string]string) fstest.MapFS {
		own := fstest.MapFS{}
		for name, text := range files {
			own[name] = &fstest.MapFile{Data: []byte(text)}
		}
		return own
	}
	own := map[string]string{"apps/web/cm.yaml": "", "apps/web/deep/.hidden/cm.yaml": "", "apps/db/cm.yaml": "", "apps/db/secret.txt": "", ".github/apps/cm.yaml": ""}
	with := func(ignore string) fstest.MapFS {
		files := map[string]string{".sourceignore": ignore}
		for name, text := range own {
			files[name] = text
		}
		return tree(files)
	}
	source := "GitRepository/flux-system/apps"
	for name, test := range map[string]struct {
		parts  []Part
		ignore string
		path   string
		// want is the problem, or "" if the directory can be built.
		want string
	}{
		"a directory":                 {parts: []Part{{Tree: with("# none\n\napps/web/\n")}}, path: "apps/web", want: `excluded from the artifact by line 3 ("apps/web/") of .sourceignore`},
		"below an excluded directory": {parts: []Part{{Tree: with("apps/\n")}}, path: "apps/web/deep", want: `excluded from the artifact by line 1 ("apps/") of .sourceignore`},
		"all of its files": {
			parts: []Part{{Tree: with("*.yaml\n*.txt\n")}}, path: "apps/db",
			want: `excluded from the artifact by line 1 ("*.yaml") of .sourceignore, line 2 ("*.txt") of .sourceignore`,
		},
		"not all of its files":        {parts: []Part{{Tree: with("*.yaml\n")}}, path: "apps/db"},
		"included again":              {parts: []Part{{Tree: with("apps/\n!apps/web\n")}}, path: "apps/web"},
		"included, and not again":     {parts: []Part{{Tree: with("apps/\n!apps/web\napps/web/**\n")}}, path: "apps/web", want: `excluded from the artifact by line 3 ("apps/web/**") of .sourceignore`},
		"another included again":      {parts: []Part{{Tree: with("apps/\n!apps/web\n")}}, path: "apps/db", want: `excluded from the artifact by line 1 ("apps/") of .sourceignore`},
		"spec.ignore":                 {parts: []Part{{Tree: with("*.txt\n")}}, ignore: "# all\n/*\n!/clusters\n", path: "apps/web", want: `excluded from the artifact by line 2 ("/*") of spec.ignore of ` + source},
		"included by spec.ignore":     {parts: []Part{{Tree: with("apps/\n")}}, ignore: "!apps/", path: "apps/web"},
		"a default":                   {parts: []Part{{Tree: tree(own)}}, path: ".github/apps", want: `excluded from the artifact by the default pattern ".github/" of source-controller`},
		"no default beside others":    {parts: []Part{{Tree: with("*.txt\n")}}, path: ".github/apps"},
		"a nested .sourceignore":      {parts: []Part{{Tree: tree(map[string]string{"apps/web/.sourceignore": "*\n", "apps/web/cm.yaml": ""})}}, path: "apps/web", want: `excluded from the artifact by line 1 ("*") of apps/web/.sourceignore`},
		"no such directory":           {parts: []Part{{Tree: with("apps/web/\n")}}, path: "apps/wbe", want: "the directory does not exist"},
		"a name like an excluded one": {parts: []Part{{Tree: with("apps/web/\n")}}, path: "apps/web2", want: "the directory does not exist"},
		"of a part": {
			parts: []Part{{Tree: tree(map[string]string{"a.yaml": ""})}, {Tree: tree(own), From: "apps", At: "lib"}}, ignore: "lib/web", path: "lib/web",
			want: `excluded from the artifact by line 1 ("lib/web") of spec.ignore of ` + source,
		},
		"the directory of a part": {
			parts: []Part{{Tree: tree(map[string]string{"a.yaml": ""})}, {Tree: tree(map[string]string{".hidden/cm.yaml": ""}), At: "lib"}}, ignore: "lib/.hidden", path: "lib",
			want: `excluded from the artifact by line 1 ("lib/.hidden") of spec.ignore of ` + source,
		},
		"sparse": {parts: []Part{{Tree: tree(own), Only: []string{"apps/db"}}}, path: "apps/web", want: "excluded from the artifact by spec.sparseCheckout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			selected, err := Select(t.Context(), test.parts, Ignore{test.ignore, source})
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			if test.want != "" {
				want = `cannot build "` + test.path + `": ` + test.want
			}
			got := ""
			if err := CheckDirectory(selected, test.path); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// TestReadRules compares the rules with those of source-controller's library.
func TestReadRules(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "a\n#b\n \n\\#c\r\n!a/b\nd/ \n", "*.yaml\n!keep.yaml", strings.Repeat("x", 70_000) + "\na", "a\n" + strings.Repeat("x", 70_000) + "\nb"} {
		want, got := sourceignore.ReadPatterns(strings.NewReader(text), []string{"in"}), ReadRules(text, []string{"in"}, "file")
		if len(want) != len(got) {
			t.Fatalf("%.40q: got %d rules, want %d", text, len(got), len(want))
		}
		matcher := sourceignore.NewMatcher(want)
		for _, name := range []string{"in/a", "in/a/b", "in/d/e", "in/#c", "in/x.yaml", "in/keep.yaml", "a", "in/b"} {
			if _, excluded := Excluding(got, name, false); excluded != matcher.Match(strings.Split(name, "/"), false) {
				t.Errorf("%.40q: excludes %s: %t", text, name, excluded)
			}
		}
	}
	matcher := sourceignore.NewDefaultMatcher(nil, nil)
	rules := defaults(sourceignore.ExcludeVCS, sourceignore.ExcludeExt, sourceignore.ExcludeCI, sourceignore.ExcludeExtra)
	for _, name := range []string{".github/a", ".git/a", "a.png", "deep/.sops.yaml", "a.yaml", "github/a"} {
		if _, excluded := Excluding(rules, name, false); excluded != matcher.Match(strings.Split(name, "/"), false) {
			t.Errorf("the defaults exclude %s: %t", name, excluded)
		}
	}
}
