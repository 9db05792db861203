package script_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/test/support/testcluster"
)

// runAction runs a composite action of the folder action with inputs, as a runner of GitHub or
// Gitea does, and expects an exit code: action CODE FILE INPUT=VALUE…
func runAction(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: action CODE FILE INPUT=VALUE…")
	}
	var action struct {
		Inputs map[string]struct {
			Default  *string
			Required bool
		}
		Runs struct {
			Using string
			Steps []struct {
				Shell, Run, Uses string
				Env, With        map[string]string
			}
		}
	}
	readAction(ts, args[1], &action)
	values := map[string]string{
		"runner.temp": ts.MkAbs("temp"), "runner.os": "Linux", "runner.arch": "X64", "github.token": ts.Getenv("GITHUB_TOKEN"),
	}
	given := inputs(args[2:])
	for name, input := range action.Inputs {
		value, ok := given[name]
		if !ok && input.Default == nil {
			ts.Fatalf("input %s has no value and no default", name)
		}
		if !ok {
			value = expand(ts, *input.Default, values)
		}
		values["inputs."+name] = value
		delete(given, name)
	}
	if len(given) > 0 || action.Runs.Using != "composite" || len(action.Runs.Steps) == 0 {
		ts.Fatalf("unknown inputs %v, or no steps", given)
	}
	ts.Check(os.MkdirAll(ts.MkAbs("temp"), 0o700))
	ts.Setenv("GITHUB_ACTION_PATH", filepath.Join(testcluster.Root(), "action", filepath.Dir(args[1])))
	for _, name := range []string{"GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"} {
		file := ts.MkAbs("temp/" + name)
		ts.Check(os.WriteFile(file, nil, 0o600))
		ts.Setenv(name, file)
	}
	var caches []cached
	code, path, token := 0, ts.Getenv("PATH"), ts.Getenv("GITHUB_TOKEN")
	for _, step := range action.Runs.Steps {
		if step.Uses != "" {
			caches = append(caches, restore(ts, step.Uses, expand(ts, step.With["key"], values), expand(ts, step.With["path"], values)))
			continue
		}
		for name, value := range step.Env {
			ts.Setenv(name, expand(ts, value, values))
		}
		if strings.Contains(step.Run, "${{") || step.Shell != "sh" {
			ts.Fatalf("an expression in a script is an injection: %s", step.Run)
		}
		if code = runShell(ts, step.Run); code != 0 {
			break
		}
		added := strings.Fields(ts.ReadFile(ts.MkAbs("temp/GITHUB_PATH")))
		ts.Setenv("PATH", strings.Join(append(added, path), string(os.PathListSeparator)))
	}
	ts.Setenv("PATH", path)
	ts.Setenv("GITHUB_TOKEN", token)
	for _, c := range caches {
		c.save(ts, code)
	}
	expectCode(ts, args[0], code)
}

// cached is a directory that a step keeps for later jobs.
type cached struct{ path, kept string }

// restore does what actions/cache does at the start of a job. The caches are in the folder caches.
func restore(ts *testscript.TestScript, uses, key, path string) cached {
	if !strings.HasPrefix(uses, "actions/cache@v") || key == "" || path == "" {
		ts.Fatalf("unknown step %s", uses)
	}
	c := cached{path, ts.MkAbs("caches/" + key)}
	ts.Check(os.RemoveAll(path)) // every job has a machine of its own
	if _, err := os.Stat(c.kept); err == nil {
		ts.Check(os.CopyFS(path, os.DirFS(c.kept)))
	}
	return c
}

// save does what actions/cache does at the end of a job that has not failed.
func (c cached) save(ts *testscript.TestScript, code int) {
	if _, err := os.Stat(c.kept); code == 0 && err != nil {
		ts.Check(os.CopyFS(c.kept, os.DirFS(c.path)))
	}
}

// runGitLabJob runs the job of a GitLab component with inputs: gitlabjob CODE FILE INPUT=VALUE…
func runGitLabJob(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: gitlabjob CODE FILE INPUT=VALUE…")
	}
	text, err := os.ReadFile(filepath.Join(testcluster.Root(), "action", args[1]))
	ts.Check(err)
	header, body, _ := strings.Cut(string(text), "\n---\n")
	var head struct {
		Spec struct {
			Inputs map[string]struct{ Default *string }
		}
	}
	ts.Check(yaml.Unmarshal([]byte(header), &head))
	given := inputs(args[2:])
	for name, input := range head.Spec.Inputs {
		value, ok := given[name]
		if !ok && input.Default == nil {
			ts.Fatalf("input %s has no value and no default", name)
		}
		if !ok {
			value = *input.Default
		}
		body = strings.ReplaceAll(body, "$[[ inputs."+name+" ]]", value)
	}
	var jobs map[string]struct {
		Variables map[string]string
		Script    []string
	}
	ts.Check(yaml.Unmarshal([]byte(body), &jobs))
	for _, job := range jobs {
		for name, value := range job.Variables {
			ts.Setenv(name, strings.ReplaceAll(value, "$CI_PROJECT_DIR", ts.Getenv("CI_PROJECT_DIR")))
		}
		expectCode(ts, args[0], runShell(ts, strings.Join(job.Script, "\n")))
	}
}

func readAction(ts *testscript.TestScript, name string, into any) {
	text, err := os.ReadFile(filepath.Join(testcluster.Root(), "action", name))
	ts.Check(err)
	ts.Check(yaml.Unmarshal(text, into))
}

func inputs(args []string) map[string]string {
	given := map[string]string{}
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		given[name] = strings.ReplaceAll(value, `\n`, "\n")
	}
	return given
}

var expression = regexp.MustCompile(`\$\{\{ ([a-z0-9.-]+) \}\}`)

func expand(ts *testscript.TestScript, text string, values map[string]string) string {
	return expression.ReplaceAllStringFunc(text, func(found string) string {
		name := expression.FindStringSubmatch(found)[1]
		value, known := values[name]
		if !known {
			ts.Fatalf("unknown expression %s", found)
		}
		return value
	})
}

// runShell runs a script as runners do, and returns its exit code.
func runShell(ts *testscript.TestScript, script string) int {
	file := ts.MkAbs("temp.sh")
	ts.Check(os.WriteFile(file, []byte(script), 0o600))
	var failed *exec.ExitError
	err := ts.Exec("sh", "-e", file)
	ts.Check(os.Remove(file))
	if errors.As(err, &failed) {
		return failed.ExitCode()
	}
	ts.Check(err)
	return 0
}

func expectCode(ts *testscript.TestScript, want string, got int) {
	if want != strconv.Itoa(got) {
		ts.Fatalf("the exit code is %d, not %s", got, want)
	}
}

// TestActionWorkflow requires that the workflows for Gitea give the actions inputs that they have, and
// those that they require.
func TestActionWorkflow(t *testing.T) {
	t.Parallel()
	for workflow, action := range map[string]string{"gitea.yml": "action", "gitea-test.yml": "action/test"} {
		checkWorkflow(t, workflow, action)
	}
}

func checkWorkflow(t *testing.T, name, folder string) {
	t.Helper()
	read := func(name string, into any) {
		text, err := os.ReadFile(filepath.Join(testcluster.Root(), "action", name))
		if err == nil {
			err = yaml.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var action struct {
		Inputs map[string]struct{ Required bool }
	}
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct {
				Uses string
				With map[string]string
			}
		}
	}
	read(filepath.Join("..", folder, "action.yml"), &action)
	read(name, &workflow)
	checked := 0
	for _, job := range workflow.Jobs {
		for _, step := range job.Steps {
			if !strings.Contains(step.Uses, "/fluxkit/flux/"+folder+"@") {
				continue
			}
			checked++
			for name := range step.With {
				if _, known := action.Inputs[name]; !known {
					t.Errorf("the action has no input %s", name)
				}
			}
			for name, input := range action.Inputs {
				if input.Required && step.With[name] == "" {
					t.Errorf("input %s is required", name)
				}
			}
		}
	}
	if checked != 1 {
		t.Errorf("%d steps use the action", checked)
	}
}
