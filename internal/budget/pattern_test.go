package budget_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/budget"
)

func TestRange(t *testing.T) {
	t.Parallel()
	for _, text := range []string{">=1.0.0 <2.0.0", "^1.2.x || >=3.0.0-0, !=3.1.5", "*", strings.Repeat("1 || ", 20) + "1"} {
		if _, err := budget.Range(text); err != nil {
			t.Errorf("%q is refused: %v", text, err)
		}
	}
	var exceeded *budget.ExceededError
	if _, err := budget.Range(strings.Repeat("1||", 100_000)); !errors.As(err, &exceeded) || len(err.Error()) > 200 {
		t.Errorf("a huge range: %v", err)
	}
	if _, err := budget.Range(">>"); err == nil || errors.As(err, &exceeded) {
		t.Errorf("an invalid range: %v", err)
	}
}

func TestRegexp(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", `^main-[a-f0-9]{7,40}-(?P<ts>[0-9]+)$`, `.*-rc\d+`, "(a|b){20}"} {
		if compiled, err := budget.Regexp(text); err != nil || compiled.String() != text {
			t.Errorf("%q is refused: %v", text, err)
		}
	}
	var exceeded *budget.ExceededError
	for _, text := range []string{"(x?){1000}", "(ab{30}c?){30}", strings.Repeat("a?", 3000), strings.Repeat("[^/]+", 500)} {
		if _, err := budget.Regexp(text); !errors.As(err, &exceeded) || len(err.Error()) > 200 {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	for _, text := range []string{"(", "a{2000}", "(?!x)"} {
		if _, err := budget.Regexp(text); err == nil || errors.As(err, &exceeded) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
