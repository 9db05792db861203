package config

import "fmt"

// Guardrail is a restriction of the actions in the dashboard.
type Guardrail string

// The guardrails. ReadOnly disables all actions, and TypeName requires the name of the cluster for each.
const (
	None     Guardrail = ""
	ReadOnly Guardrail = "read-only"
	TypeName Guardrail = "type-name"
)

// guardrails is the name of the setting for the guardrails of the dashboard.
const guardrails = "ui-guardrails"

// GuardrailOf returns the guardrail of the first entry in the configuration file that matches a kubeconfig context.
func GuardrailOf(env func(string) string, context string) (Guardrail, error) {
	var entries []struct {
		Context string
		Mode    Guardrail
	}
	file, err := readList(env, guardrails, "context, mode", &entries)
	if err != nil {
		return None, err
	}
	found := None
	for i, e := range entries {
		matches, err := MatchContext(e.Context, context)
		switch {
		case err != nil || e.Context == "":
			return None, fmt.Errorf("%s: %s[%d].context: invalid pattern %q", file, guardrails, i, e.Context)
		case e.Mode != ReadOnly && e.Mode != TypeName:
			return None, fmt.Errorf("%s: %s[%d].mode: %q is not %s or %s", file, guardrails, i, e.Mode, ReadOnly, TypeName)
		case matches && found == None:
			found = e.Mode
		}
	}
	return found, nil
}
