package assert_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxkit/flux/internal/kube/expression"
	"github.com/fluxkit/flux/internal/kube/expression/cel"
	"github.com/fluxkit/flux/pkg/testrun/assert"
)

const complete = `# Two tests.
apiVersion: test.fluxkit.dev/v1
kind: Test
metadata: {name: settings}
spec:
  timeout: 90s
  steps:
    - name: change the color
      timeout: 10s
      commit:
        message: Change the color
        files:
          apps/settings.yaml: |
            kind: ConfigMap
          apps/old.yaml: null
      apply:
        - {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}, data: {date: "2026-01-01", n: "1"}}
      patch:
        - object: {apiVersion: v1, kind: ConfigMap, namespace: b, name: a}
          merge: {data: {n: null, day: 2026-01-01}}
      delete: [{apiVersion: v1, kind: ConfigMap, namespace: b, name: c}]
      reconcile: [{kind: Kustomization, namespace: flux-system, name: apps}]
      expect:
        - exists: {apiVersion: v1, kind: Namespace, name: b}
        - absent: {apiVersion: v1, kind: ConfigMap, namespace: b, name: c}
        - value: {object: {apiVersion: v1, kind: ConfigMap, namespace: b, name: a}, expression: object.data.n, equals: 0x10}
        - value: {object: {apiVersion: v1, kind: ConfigMap, namespace: b, name: a}, expression: "object.data.n == '1'"}
        - ready: {object: {kind: Kustomization, namespace: flux-system, name: apps}, reconciliations: 2}
        - pruned: {apiVersion: v1, kind: ConfigMap, namespace: b, name: d}
        - corrected: {object: {apiVersion: v1, kind: ConfigMap, namespace: b, name: a}, merge: {data: {n: "2"}}}
        - event: {object: {kind: Kustomization, namespace: flux-system, name: apps}, reason: ReconciliationSucceeded, message: applied}
        - notification: {provider: {namespace: flux-system, name: chat}, reason: Progressing}
        - committed: {file: apps/image.yaml, content: "app:1[.]2"}
        - why: {object: {kind: Kustomization, namespace: flux-system, name: apps}, message: timeout}
        - order: [{kind: GitRepository, namespace: flux-system, name: a}, {kind: Kustomization, namespace: flux-system, name: b}]
---
---
apiVersion: test.fluxkit.dev/v1
kind: Test
metadata: {name: other}
spec: {steps: [{expect: [{exists: {apiVersion: v1, kind: Namespace, name: b}}]}]}
`

func TestLoad(t *testing.T) {
	t.Parallel()
	tests, err := assert.Load("a.fluxtest.yaml", strings.NewReader(complete))
	if err != nil {
		t.Fatal(err)
	}
	if len(tests) != 2 || tests[0].Name != "settings" || tests[0].String() != "a.fluxtest.yaml:2:1" || tests[1].Steps[0].Name != "step 1" {
		t.Fatalf("got %+v", tests)
	}
	s := tests[0].Steps[0]
	if s.Timeout != 10*time.Second || tests[1].Steps[0].Timeout != assert.DefaultTimeout || len(s.Expect) != 12 {
		t.Errorf("got %+v", s)
	}
	files := s.Commit.Files
	if deleted, known := files["apps/old.yaml"]; !known || deleted != nil || *files["apps/settings.yaml"] != "kind: ConfigMap\n" {
		t.Errorf("files %v", files)
	}
	merge, err := json.Marshal(s.Patch[0].Merge)
	if err != nil || string(merge) != `{"data":{"day":"2026-01-01","n":null}}` {
		t.Errorf("patch %s, %v", merge, err)
	}
	if *s.Expect[2].Value.Equals != any(int64(16)) || s.Expect[3].Value.Equals != nil || s.Expect[2].Line != 26 {
		t.Errorf("values %v %+v in line %d", *s.Expect[2].Value.Equals, s.Expect[3].Value, s.Expect[2].Line)
	}
}

// steps returns a valid file with a list of steps.
func steps(text string) string {
	return "apiVersion: test.fluxkit.dev/v1\nkind: Test\nmetadata: {name: x}\nspec:\n  steps:\n" + text
}

func expecting(text string) string { return steps("  - expect:\n    - " + text + "\n") }

func faulty(text string) string { return steps("  - faults:\n    - " + text + "\n") }

func TestInvalid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "x:1:1: the file has no documents"},
		{"comment", "# nothing\n---\n", "x:1:1: the file has no documents"},
		{"syntax", "apiVersion: [\n", "x:1:1: invalid YAML: did not find expected node content"},
		{"list", "- a\n", "x:1:1: must be an object, not a list"},
		{"other kind", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\nspec: {steps: [{name: a}]}\n",
			"x:1:1: apiVersion: must be test.fluxkit.dev/v1, not v1\nx:1:1: kind: must be Test, not ConfigMap"},
		{"missing", "apiVersion: test.fluxkit.dev/v1\nkind: Test\nmetadata: {}\n", "x:3:11: metadata.name is required\nx:1:1: spec is required"},
		{"invalid name", "apiVersion: test.fluxkit.dev/v1\nkind: Test\nmetadata: {name: A b}\nspec: {steps: [{name: a}]}\n",
			`x:1:1: metadata.name: invalid name "A b": must be an RFC 1123 subdomain`},
		{"no steps", strings.TrimSuffix(steps(""), "\n") + " []\n", "x:5:10: spec.steps: must not be empty"},
		{"misspelled", steps("  - expct: []\n"), `x:6:5: unknown field "spec.steps[0].expct": did you mean "expect"?`},
		{"misspelled assertion", expecting("exsits: {}"), "x:7:7: unknown field \"spec.steps[0].expect[0].exsits\": did you mean \"exists\"?\n" +
			"x:7:7: spec.steps[0].expect[0]: an assertion is required"},
		{"unknown", steps("  - shell: ls\n"), `x:6:5: unknown field "spec.steps[0].shell": use one of apply, commit, delete, expect, faults, name, patch, reconcile, timeout`},
		{"twice", steps("  - name: a\n    name: b\n"), "x:7:5: name is set twice"},
		{"twice in an object", steps("  - apply: [{apiVersion: v1, kind: A, metadata: {name: a, name: b}}]\n"), "x:6:59: name is set twice"},
		{"number for text", steps("  - name: 5\n"), "x:6:11: spec.steps[0].name: must be a string, not the value 5: quote it"},
		{"list for text", steps("  - name: [a]\n"), "x:6:11: spec.steps[0].name: must be a string, not a list"},
		{"empty text", steps("  - name: ''\n"), "x:6:11: spec.steps[0].name: must not be empty"},
		{"text for list", steps("  - expect: a\n"), "x:6:13: spec.steps[0].expect: must be a list, not a string"},
		{"no duration", steps("  - timeout: 30\n"), "x:6:14: spec.steps[0].timeout: must be a duration of at most 1h, such as 30s or 2m"},
		{"long", steps("  - timeout: 90m\n"), "x:6:14: spec.steps[0].timeout: must be a duration of at most 1h, such as 30s or 2m"},
		{"short", steps("  - timeout: 5ms\n"), "x:6:5: spec.steps[0].timeout: must be at least 1s"},
		{"two assertions", expecting("{exists: {apiVersion: v1, kind: A, name: a}, absent: {apiVersion: v1, kind: A, name: a}}"),
			"x:7:7: spec.steps[0].expect[0]: only one assertion is allowed, not exists and absent: put each in its own item"},
		{"no assertion", expecting("{}"), "x:7:7: spec.steps[0].expect[0]: an assertion is required"},
		{"no apiVersion", expecting("exists: {kind: Deployment, name: a}"), "x:7:7: spec.steps[0].expect[0].exists: apiVersion is required for Deployment, which is not a Flux kind"},
		{"no namespace", expecting("ready: {object: {kind: Kustomization, name: a}}"), "x:7:7: spec.steps[0].expect[0].ready: namespace is required for Kustomization"},
		{"not ready", expecting("ready: {object: {apiVersion: v1, kind: Secret, name: a}}"),
			"x:7:7: spec.steps[0].expect[0].ready: Secret is not a kind with a Ready condition that Flux sets"},
		{"kustomize's kind", expecting("ready: {object: {apiVersion: kustomize.config.k8s.io/v1beta1, kind: Kustomization, namespace: a, name: a}}"),
			"x:7:7: spec.steps[0].expect[0].ready: Kustomization is not a kind with a Ready condition that Flux sets"},
		{"zero", expecting("ready: {object: {kind: Kustomization, namespace: a, name: a}, reconciliations: 0}"),
			"x:7:86: spec.steps[0].expect[0].ready.reconciliations: must be a number from 1 to 1000000"},
		{"regexp", expecting("committed: {file: a, content: '('}"), "x:7:37: spec.steps[0].expect[0].committed.content: invalid regular expression: error parsing regexp: missing closing ): `(`"},
		{"no cause", expecting("why: {object: {kind: Kustomization, namespace: a, name: a}}"), "x:7:7: spec.steps[0].expect[0].why: rootCause or message is required"},
		{"order of one", expecting("order: [{kind: Kustomization, namespace: a, name: a}]"), "x:7:7: spec.steps[0].expect[0].order: at least two objects are required"},
		{"outside", steps("  - commit: {files: {../a: b}}\n"), `x:6:5: spec.steps[0].commit.files: invalid path "../a": must be relative to the repository root, without . and ..`},
		{"hooks", steps("  - commit: {files: {a/.git/hooks/x: b}}\n"), `x:6:5: spec.steps[0].commit.files: invalid path "a/.git/hooks/x": must be relative to the repository root, without . and ..`},
		{"incomplete object", steps("  - apply: [{kind: A}]\n"), "x:6:5: spec.steps[0].apply[0]: apiVersion, kind and metadata.name are required"},
		{"not reconciled", steps("  - reconcile: [{kind: Alert, namespace: a, name: a}]\n"), "x:6:5: spec.steps[0].reconcile: Alert is not a kind that Flux reconciles"},
		{"no fault", faulty("{}"), "x:6:5: spec.steps[0].faults[0]: exactly one of server, controller, apiServer, webhook, pods and quota is required"},
		{"two faults", faulty("{apiServer: {state: restarted}, pods: {namespace: a, state: fail}}"), "x:6:5: spec.steps[0].faults[0]: exactly one of server, controller, apiServer, webhook, pods and quota is required"},
		{"no such server", faulty("server: {name: helm, down: true}"), "x:6:5: spec.steps[0].faults[0]: server.name: must be git or registry, not helm"},
		{"no failure", faulty("server: {name: git}"), "x:6:5: spec.steps[0].faults[0]: server: exactly one of down, status and delay is required"},
		{"two failures", faulty("server: {name: git, down: true, delay: 1s}"), "x:6:5: spec.steps[0].faults[0]: server: exactly one of down, status and delay is required"},
		{"success", faulty("server: {name: git, status: 200}"), "x:6:5: spec.steps[0].faults[0]: server.status: must be from 400 to 599"},
		{"text for a boolean", faulty("server: {name: git, down: \"yes\"}"), "x:7:33: spec.steps[0].faults[0].server.down: must be true or false, not a string\n" +
			"x:6:5: spec.steps[0].faults[0]: server: exactly one of down, status and delay is required"},
		{"no such state", faulty("pods: {namespace: a, state: crashing}"), "x:6:5: spec.steps[0].faults[0]: pods.state: must be crash-loop or image-pull-error or pending or slow-start or fail, not crashing"},
		{"no such hook", faulty("pods: {namespace: a, hook: install, state: fail}"), "x:6:5: spec.steps[0].faults[0]: pods.hook: must be test or pre-install or post-install or pre-upgrade or post-upgrade or pre-rollback or post-rollback or pre-delete or post-delete, not install"},
		{"number for a label", faulty("pods: {namespace: a, labels: [web], state: fail}"), "x:7:36: spec.steps[0].faults[0].pods.labels: must be an object, not a list"},
		{"invalid label", faulty("pods: {namespace: a, labels: {app: a b}, state: fail}"), `x:6:5: spec.steps[0].faults[0]: pods.labels: invalid labels "app=a b"`},
		{"no such controller state", faulty("controller: {name: helm-controller, state: dead}"), "x:6:5: spec.steps[0].faults[0]: controller.state: must be killed or leaderless, not dead"},
		{"number for a limit", faulty("quota: {namespace: a, hard: [pods]}"), "x:7:35: spec.steps[0].faults[0].quota.hard: must be an object, not a list"},
		{"same name", steps("  - name: a\n---\n") + steps("  - name: a\n"), `x:8:1: metadata.name: the test on line 1 has the same name "x"`},
		{"not a number", steps("  - patch: [{object: {apiVersion: v1, kind: A, name: a}, merge: {a: .inf}}]\n"), "x:6:69: invalid value .inf"},
		{"merge key", steps("  - &a {name: b}\n  - <<: *a\n"), "x:7:5: keys must be strings"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := assert.Load("x", strings.NewReader(c.text))
			if got := message(err); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestLimits(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("- {name: a}\n", 101)
	for name, c := range map[string]struct{ text, want string }{
		"bytes":      {"# " + strings.Repeat("x", 1<<20), "x: the file is larger than 1 MiB"},
		"nodes":      {steps("  - apply: [" + strings.Repeat("1,", 100_001) + "]"), "x: the file has more than 100000 nodes"},
		"documents":  {numbered(101), "x:201:1: the file has more than 100 documents"},
		"steps":      {steps(strings.ReplaceAll(long, "-", "  -")), "x:1:1: spec.steps: more than 100 steps"},
		"aliases":    {"a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n", "aliases expand to more than"},
		"expression": {expecting("value: {object: {apiVersion: v1, kind: A, name: a}, expression: '" + strings.Repeat("1+", 2100) + "1'}"), "value.expression: longer than 4096 bytes"},
	} {
		_, err := assert.Load("x", strings.NewReader(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), "\n") > 20 {
			t.Errorf("%s: got %.300v, want %q", name, err, c.want)
		}
	}
}

// numbered returns a file with n tests.
func numbered(n int) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, "{apiVersion: test.fluxkit.dev/v1, kind: Test, metadata: {name: x%d}, spec: {steps: [{name: a}]}}\n---\n", i)
	}
	return all.String()
}

// TestFind checks that only files with the suffix are read, and that all problems are reported.
func TestFind(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{
		"test/a.fluxtest.yaml":      {Data: []byte(complete)},
		"test/other.yaml":           {Data: []byte("- a")},
		".git/x.fluxtest.yaml":      {Data: []byte("- a")},
		"apps/b.fluxtest.yaml":      {Data: []byte(strings.ReplaceAll(complete, "settings}", "first}"))},
		"apps/fluxtest.yaml":        {Data: []byte("- a")},
		"apps/c.fluxtest.yaml/keep": {},
	}
	tests, err := assert.Find(t.Context(), tree)
	if err != nil || len(tests) != 4 || tests[0].File != "apps/b.fluxtest.yaml" || tests[2].File != "test/a.fluxtest.yaml" {
		t.Fatalf("got %+v, %v", tests, err)
	}
	tree["a.fluxtest.yaml"] = &fstest.MapFile{Data: []byte("- a")}
	tree["z.fluxtest.yaml"] = &fstest.MapFile{Data: []byte("a: [")}
	_, err = assert.Find(t.Context(), tree)
	var invalid *assert.InvalidError
	if !errors.As(err, &invalid) || len(invalid.Problems) != 2 {
		t.Errorf("got %v", err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	ref := "{object: {apiVersion: v1, kind: A, name: a}, expression: "
	for expression, want := range map[string]string{
		"object.a == 1":       "",
		"object.a, equals: 1": "",
		"objct.a == 1":        `x:7:7: invalid expression "objct.a == 1": undeclared reference to 'objct' (in container '')`,
		"size('a')":           `x:7:7: invalid expression "size('a')": the value is of type int, not bool`,
	} {
		tests, err := assert.Load("x", strings.NewReader(expecting("value: "+ref+expression+"}")))
		if err != nil {
			t.Fatal(err)
		}
		if got := message(assert.Check(t.Context(), cel.New(), tests)); got != want {
			t.Errorf("%s: got %s, want %s", expression, got, want)
		}
	}
	var _ expression.Evaluator = expression.Client{}
}

// FuzzLoad checks that no file that a repository can have ends the process.
func FuzzLoad(f *testing.F) {
	f.Add(complete)
	f.Add(expecting("exsits: {}"))
	f.Add("a: &a [*a]\n")
	f.Fuzz(func(t *testing.T, text string) {
		tests, err := assert.Load("x", strings.NewReader(text))
		if err == nil && len(tests) == 0 {
			t.Error("no tests and no error")
		}
	})
}

// TestDocumentation loads the examples in the documentation, and checks that it has each field.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/test-files.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	for _, example := range examples {
		if _, err := assert.Load("example", strings.NewReader(example[1])); err != nil {
			t.Error(err)
		}
	}
	var source []byte
	for _, name := range []string{"file.go", "../fault/fault.go"} {
		code, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		source = append(source, code...)
	}
	fields := regexp.MustCompile("`field:\"(\\w+)").FindAllStringSubmatch(string(source), -1)
	for _, field := range fields {
		if !regexp.MustCompile("`[\\w.]*\\b" + field[1] + "[.`]").Match(text) {
			t.Errorf("the documentation does not have the field %s", field[1])
		}
	}
	if len(examples) == 0 || len(fields) < 30 {
		t.Errorf("%d examples, %d fields", len(examples), len(fields))
	}
}
