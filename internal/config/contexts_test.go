package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/config"
)

func TestContextGroups(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]map[string][]string{
		"":              {},
		"timeout: 3m\n": {},
		"context-groups:\n- {name: Prod, contexts: [\"prod-*\", \"^prod-test\"]}\n- {name: all, contexts: [\"*\"]}\n": {"Prod": {"prod-*", "^prod-test"}, "all": {"*"}},
		"context-groups:\n- {name: prod}\n":                                         nil,
		"context-groups:\n- {contexts: [a]}\n":                                      nil,
		"context-groups:\n- {name: \"a,b\", contexts: [a]}\n":                       nil,
		"context-groups:\n- {name: a, contexts: [a]}\n- {name: a, contexts: [b]}\n": nil,
		"context-groups: {prod: [a]}\n":                                             nil,
	} {
		file := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		env := func(name string) string { return map[string]string{"FLUX_CONFIG": file}[name] }
		got, err := config.ContextGroups(env)
		if diff := cmp.Diff(want, got); diff != "" || (err != nil) != (want == nil) {
			t.Errorf("%q: %v\n%s", text, err, diff)
		}
		if err := config.Apply(flags(t), env); err != nil && want != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}
