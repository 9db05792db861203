package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fluxkit/flux/internal/config"
)

func TestGuardrails(t *testing.T) {
	t.Parallel()
	const valid = "ui-guardrails:\n- {context: \"prod-*\", mode: read-only}\n- {context: \"*\", mode: type-name}\n"
	for _, c := range []struct {
		file, context string
		want          config.Guardrail
		fails         bool
	}{
		{"", "prod-eu", config.None, false},
		{"timeout: 3m\n", "prod-eu", config.None, false},
		{valid, "prod-eu", config.ReadOnly, false},
		{valid, "test", config.TypeName, false},
		{"ui-guardrails:\n- {context: \"prod-*\", mode: read-only}\n", "my-prod-eu", config.None, false},
		{"ui-guardrails:\n- {context: \"*prod*\", mode: read-only}\n", "arn:aws:eks:eu-west-1:123456789012:cluster/prod", config.ReadOnly, false},
		{"ui-guardrails:\n- {context: \"*cluster/prod\", mode: read-only}\n", "arn:aws:eks:eu-west-1:123456789012:cluster/prod", config.ReadOnly, false},
		{"ui-guardrails:\n- {context: \"*cluster/prod\", mode: read-only}\n", "arn:aws:eks:eu-west-1:123456789012:cluster/test", config.None, false},
		{"ui-guardrails:\n- {context: \"prod-*\", mode: readonly}\n", "test", config.None, true},
		{"ui-guardrails:\n- {mode: read-only}\n", "test", config.None, true},
		{"ui-guardrails:\n- {context: \"[\", mode: read-only}\n", "test", config.None, true},
		{"ui-guardrails: read-only\n", "test", config.None, true},
	} {
		file := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(file, []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		env := func(name string) string { return map[string]string{"FLUX_CONFIG": file}[name] }
		got, err := config.GuardrailOf(env, c.context)
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%q in %s: %q, %v", c.file, c.context, got, err)
		}
		if err := config.Apply(flags(t), env); err != nil && !c.fails {
			t.Errorf("%q: %v", c.file, err)
		}
	}
}
