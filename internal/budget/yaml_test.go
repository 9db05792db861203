package budget_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	goyaml "go.yaml.in/yaml/v3"

	"github.com/fluxkit/flux/internal/budget"
)

// bomb is a document of which every level refers to the one before it.
func bomb(levels, width int) string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x]\n")
	for i := 1; i <= levels; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), width), ","))
	}
	return b.String()
}

func TestYAML(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want string
	}{
		"aliases in sequences":      {bomb(9, 9), "expand to more than 1000000 nodes"},
		"aliases in the second doc": {"a: 1\n---\n" + bomb(9, 9), "expand to more than 1000000 nodes"},
		"aliases of one long text":  {"a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 100) + "]\n", "expand to more than 64 MiB"},
		"aliases of merge keys":     {"a: &a {" + strings.TrimSuffix(numbered(1000), ",") + "}\nb:\n" + strings.Repeat("- <<: *a\n", 1000), "expand to more than"},
		"an alias of itself":        {"a: &a [*a]\n", "contains itself"},
		"nested sequences":          {"a: " + strings.Repeat("[", 600) + strings.Repeat("]", 600), "nested more than 500 levels"},
		"nested mappings":           {"a: " + strings.Repeat("{a: ", 600) + strings.Repeat("}", 600), "nested more than 500 levels"},
		"nested items of one line":  {strings.Repeat("- ", 600) + "a\n", "nested more than 500 levels"},
		"many nodes":                {"[" + strings.Repeat("a,", 2_100_000) + "]", "more than 2000000 nodes"},

		"few aliases":            {bomb(3, 9), ""},
		"a long list":            {strings.Repeat("- a\n", 10_000), ""},
		"ampersands in a script": {"run: |\n  a && b * c\n", ""},
		"many flat brackets":     {strings.Repeat("- []\n", 10_000), ""},
		"no YAML":                {"\x00&*{[", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := budget.YAML("app/file.yaml", []byte(c.text))
			var exceeded *budget.ExceededError
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %s", err)
			case c.want != "" && (!errors.As(err, &exceeded) || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "app/file.yaml: ")):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: 1,", i)
	}
	return b.String()
}

// FuzzYAML checks that accepted documents decode to a bounded number of nodes, and that
// documents without aliases are refused only for their own size.
func FuzzYAML(f *testing.F) {
	f.Add("a: &a [1, 2]\nb: [*a, *a]\n")
	f.Add(bomb(4, 4))
	f.Add("a: &a {b: *a}")
	f.Add("a: &a {b: c}\nd:\n  <<: *a\n---\n- &x y\n- *x\n")
	f.Add("? - - a\n: {? b}\n")
	f.Fuzz(func(t *testing.T, text string) {
		err := budget.YAML("f", []byte(text))
		var exceeded *budget.ExceededError
		if err != nil && !errors.As(err, &exceeded) {
			t.Fatalf("%T: %v", err, err)
		}
		if err != nil {
			if !strings.Contains(text, "*") && len(text) < 1000 && !strings.Contains(err.Error(), "levels deep") {
				t.Errorf("refused: %v", err)
			}
			return
		}
		const most = 2_000_000
		for decoder := goyaml.NewDecoder(strings.NewReader(text)); ; {
			var value any
			if decoder.Decode(&value) != nil {
				return
			}
			if n := nodesOf(value); n > most {
				t.Errorf("%d nodes are accepted", n)
			}
		}
	})
}

// nodesOf counts the nodes of a decoded value.
func nodesOf(value any) int {
	n := 1
	switch value := value.(type) {
	case map[string]any:
		for _, below := range value {
			n += 1 + nodesOf(below)
		}
	case map[any]any:
		for _, below := range value {
			n += 1 + nodesOf(below)
		}
	case []any:
		for _, below := range value {
			n += nodesOf(below)
		}
	}
	return n
}
