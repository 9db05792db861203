package rules

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

func examples() []example {
	return slices.Concat(sourceExamples, applyExamples, buildExamples, referenceExamples, operatorExamples)
}

// slot matches a variable part of an example.
var slot = regexp.MustCompile(`«(?:\[([nut])\])?([^»]*)»`)

// plain returns the text of an example as the component writes it.
func plain(text string) string { return slot.ReplaceAllString(text, "$2") }

// failing returns an object of a kind with Ready=False.
func failing(t *testing.T, kind, reason, message, spec string) Subject {
	t.Helper()
	k, ok := controllers.FindKind(kind)
	if !ok {
		t.Fatalf("no kind %q", kind)
	}
	fields := map[string]any{}
	if spec != "" {
		if err := json.Unmarshal([]byte(spec), &fields); err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
	}
	return NewSubject(k, controllers.Object{
		"apiVersion": k.APIVersion(), "kind": kind, "metadata": map[string]any{"namespace": "apps", "name": "app"}, "spec": fields,
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": reason, "message": message}}},
	}, "")
}

// classify returns the finding of the rule that matches a failure.
func classify(s Subject) (Finding, bool) {
	found, ok := s.Classify()
	return found.Finding, ok
}

// codeOf returns the code of a failure, "" if no rule matches.
func codeOf(t *testing.T, kind, reason, message, spec string) string {
	t.Helper()
	found, _ := classify(failing(t, kind, reason, message, spec))
	return found.Code
}

// failing returns the failing object of an example with a message and a spec.
func (e example) failing(t *testing.T, message, spec string) Subject {
	t.Helper()
	s := failing(t, e.kind, e.reason, message, spec)
	s.Live = e.live
	return s
}

// codeOf returns the code of an example with a message and a spec.
func (e example) codeOf(t *testing.T, message, spec string) string {
	t.Helper()
	found, _ := classify(e.failing(t, message, spec))
	return found.Code
}

// TestRules checks that real messages match their rule, and that near misses with the same words do
// not.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, e := range examples() {
		message := plain(e.message)
		if got := e.codeOf(t, message, plain(e.spec)); got != e.code {
			t.Errorf("%s %s: %s\n is %q, not %q: %+v", e.kind, e.reason, message, got, e.code, failure.Parse(message))
		}
		if len(e.near) < 2 {
			t.Errorf("%s: %d near misses", message, len(e.near))
		}
		for _, n := range e.near {
			if n.code == e.code && n.kind == e.kind {
				t.Errorf("%s\n is a near miss of %s, which has the same code", n.message, e.code)
			}
			if !shares(e, n) {
				t.Errorf("%s\n is no near miss of %s: it has no words of its message or reason", n.message, e.code)
			}
			if got := codeOf(t, n.kind, n.reason, n.message, ""); got != n.code {
				t.Errorf("near %s: %s %s: %s\n is %q, not %q: %+v", e.code, n.kind, n.reason, n.message, got, n.code, failure.Parse(n.message))
			}
		}
	}
}

// wordIn matches a significant word, including parts of camel-case names.
var wordIn = regexp.MustCompile(`[A-Z]?[a-z]{3,}|[A-Z]{3,}|\d{3,}`)

// shares reports whether a near miss has two words of the reason or of the fixed
// parts of the message of an example.
func shares(e example, n near) bool {
	own := map[string]bool{}
	for _, w := range wordIn.FindAllString(slot.ReplaceAllString(e.message, " ")+" "+e.reason, -1) {
		own[strings.ToLower(w)] = true
	}
	found := map[string]bool{}
	for _, w := range wordIn.FindAllString(n.message, -1) {
		if w = strings.ToLower(w); own[w] {
			found[w] = true
		}
	}
	return len(found) >= 2
}

// TestEveryRuleHasAnExample checks that every rule has an example and is limited to some kinds.
func TestEveryRuleHasAnExample(t *testing.T) {
	t.Parallel()
	for _, list := range tables() {
		for i, r := range list {
			used := slices.ContainsFunc(examples(), func(e example) bool {
				s := e.failing(t, plain(e.message), plain(e.spec)).parsed()
				return slices.IndexFunc(list, func(other rule) bool { return other.matches(s) }) == i && r.code == e.code
			})
			if !used {
				t.Errorf("rule %d of its list, %s, has no example", i, r.code)
			}
			if r.kinds == nil && r.when == nil {
				t.Errorf("rule %s matches every kind", r.code)
			}
		}
	}
}

// filled returns the text of an example with words in its variable parts, in the
// form that each part allows.
func filled(text, words string) string {
	name := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(words), "-"), "-")
	number := regexp.MustCompile(`\D`).ReplaceAllString(words, "")
	return slot.ReplaceAllStringFunc(text, func(found string) string {
		m := slot.FindStringSubmatch(found)
		switch m[1] {
		case "n":
			if number == "" {
				return m[2]
			}
			return "4" + number + "1"
		case "u":
			return name
		case "t":
			return strings.NewReplacer(`"`, "", `\`, "", "\n", " ").Replace(words)
		default:
			if len(name) > 40 {
				name = strings.Trim(name[:40], "-")
			}
			return "x-" + name
		}
	})
}

// literals are the literal words of all patterns, and those of the real messages.
func literals() []string {
	var all []string
	all = append(all, failure.Words()...)
	for _, e := range examples() {
		for _, part := range strings.Split(plain(e.message), ": ") {
			if len(part) < 80 && wordIn.MatchString(part) {
				all = append(all, part)
			}
		}
	}
	all = append(all, "401", "403", "404", "429", "503", "status code 401", "x: authentication required: y", "a: dial tcp 10.0.0.1:1: connect: connection refused")
	slices.Sort(all)
	return slices.Compact(all)
}

// TestNamesDoNotChangeTheCode checks that names of objects, tags, ports, paths and hosts do not
// change the code: the words of every rule are put into the names in every other rule's message.
func TestNamesDoNotChangeTheCode(t *testing.T) {
	t.Parallel()
	all := literals()
	if len(all) < 150 {
		t.Fatalf("only %d words", len(all))
	}
	for i, e := range examples() {
		t.Run(fmt.Sprintf("%02d-%s", i, e.code), func(t *testing.T) {
			t.Parallel()
			if !slot.MatchString(e.message + e.spec) {
				return
			}
			for _, w := range all {
				message := filled(e.message, w)
				if got := e.codeOf(t, message, filled(e.spec, w)); got != e.code {
					t.Errorf("with %q: %s\n is %q, not %q", w, message, got, e.code)
				}
			}
		})
	}
}

// TestWordsOfRules checks that the texts of all rules contain only words that exist, and that every word is used.
func TestWordsOfRules(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, table := range tables() {
		for _, r := range table {
			for _, text := range append([]string{r.message, r.retry}, r.fixes...) {
				for _, name := range word().FindAllString(text, -1) {
					name = strings.Trim(name, "{}")
					used[name] = true
					if words[name] == nil {
						t.Errorf("%s: unknown word %q", r.code, name)
					}
				}
			}
		}
	}
	for name := range words {
		if !used[name] {
			t.Errorf("no rule contains {%s}", name)
		}
	}
}
