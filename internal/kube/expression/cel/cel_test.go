package cel_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/kube/expression"
	"github.com/fluxkit/flux/internal/kube/expression/cel"
)

const object = `{"spec":{"replicas":3,"image":"app:1.2.3","on":true,"list":["a","b"],"memory":"128Mi"},"metadata":{"labels":{"a.b/c":"d"}}}`

func TestEvaluate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text    string
		boolean bool
		value   string
		err     string
	}{
		{text: "object.spec.replicas", value: "3"},
		{text: "object.spec.replicas == 3", boolean: true, value: "true"},
		{text: "object.spec.replicas > 3", boolean: true, value: "false"},
		{text: "object.spec.image.matches('^app:1[.]')", boolean: true, value: "true"},
		{text: "object.metadata.labels['a.b/c']", value: `"d"`},
		{text: "object.spec.list", value: `["a","b"]`},
		{text: "object.spec.on", boolean: true, value: "true"},
		{text: "quantity(object.spec.memory).isLessThan(quantity('1Gi'))", boolean: true, value: "true"},
		// Near misses: a field that does not exist, a value of another type, and types without JSON.
		{text: "object.spec.replica", err: "no such key: replica"},
		{text: "object.spec.replicas", boolean: true, err: "the value is of type int, not bool"},
		{text: "'true'", boolean: true, err: "the value is of type string, not bool"},
		{text: "quantity('1Gi')", err: "which cannot be compared with equals"},
		// Invalid expressions.
		{text: "object.spec.", err: "Syntax error"},
		{text: "objekt.spec", err: "undeclared reference to 'objekt'"},
		// Work without bounds.
		{text: strings.Repeat("[1,2,3,4,5,6,7,8,9,10].all(x, ", 8) + "true" + strings.Repeat(")", 8), boolean: true, err: "cost"},
	} {
		answers, err := cel.New().Evaluate(t.Context(), expression.Request{
			Expressions: []expression.Expression{{Text: c.text, Boolean: c.boolean}}, Object: json.RawMessage(object),
		})
		if err != nil || len(answers) != 1 {
			t.Fatalf("%s: %v, %v", c.text, answers, err)
		}
		got := strings.ReplaceAll(string(answers[0].Value), " ", "")
		if got != c.value || c.err == "" && answers[0].Error != "" || !strings.Contains(answers[0].Error, c.err) {
			t.Errorf("%s is %s, error %q, want %s, error %q", c.text, got, answers[0].Error, c.value, c.err)
		}
	}
}

// TestCompileForControllers compiles expressions as the controllers do: those of health checks are only parsed.
func TestCompileForControllers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		environment expression.Environment
		text, err   string
	}{
		{expression.Health, "status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True')", ""},
		{expression.Health, "anything.at.all", ""},
		{expression.Health, "status.?phase.orValue('') == 'Ready'", ""},
		{expression.Health, "status.conditions.filter(e, e.type == 'Ready'", "Syntax error"},
		{expression.Health, "status.phase = 'Ready'", "Syntax error"},
		{expression.Dependency, "dep.status.conditions.exists(e, e.type == 'Ready' && e.status == 'True')", ""},
		{expression.Dependency, "dep.metadata.labels['version'] == self.metadata.labels['version']", ""},
		{expression.Dependency, "dependency.metadata.name == 'a'", "undeclared reference to 'dependency'"},
		{expression.Dependency, "dep.status.ready", "the value is of type dyn, not bool"},
		{expression.Dependency, "dep.metadata.name ==", "Syntax error"},
		{"other", "true", "no environment"},
	} {
		answers, err := cel.New().Evaluate(t.Context(), expression.Request{
			Expressions: []expression.Expression{{Text: c.text, Environment: c.environment, Boolean: c.environment == expression.Dependency}},
		})
		if err != nil || len(answers) != 1 || c.err == "" && answers[0].Error != "" || !strings.Contains(answers[0].Error, c.err) {
			t.Errorf("%s %q: %v, %v, want %q", c.environment, c.text, answers, err, c.err)
		}
	}
}

// TestCompile checks that expressions are only compiled without an object.
func TestCompile(t *testing.T) {
	t.Parallel()
	e := cel.New()
	request := expression.Request{Expressions: []expression.Expression{{Text: "object.a.b == 1", Boolean: true}, {Text: "1 +", Boolean: true}, {Text: "1 + 1", Boolean: true}}}
	for range 2 {
		answers, err := e.Evaluate(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		if answers[0].Error != "" || answers[0].Value != nil || answers[1].Error == "" || answers[2].Error != "the value is of type int, not bool" {
			t.Errorf("got %+v", answers)
		}
	}
}
