package hostile_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fluxkit/flux/test/support/testcluster"
)

// pipelines lists the variables of CI systems.
func pipelines() []string {
	return []string{
		"GITHUB_ACTIONS=true", "GITEA_ACTIONS=true", "FORGEJO_ACTIONS=true", "GITLAB_CI=true", "TF_BUILD=True", "BITBUCKET_BUILD_NUMBER=1",
		"JENKINS_URL=https://ci.example.com", "CI=woodpecker", "DRONE=true", "BUILDKITE=true", "CIRCLECI=true", "TEAMCITY_VERSION=2026.1", "CI=true",
	}
}

const (
	// injected lists CI workflow commands as lines of a text.
	injected = "::error file=a::x\n  ::set-output name=a::b\n::stop-commands::a\nx ##[add-path]/x\ny ##vso[task.setvariable variable=a]b\n##teamcity[buildStatus status='SUCCESS']\nz \x1b[0Ksection_start:1:a\r\x1b[0Kb"
	// harmless is text that looks like them.
	harmless = "a::b std::string\n::1\n::ffff:10.0.0.1\n## [a] #[b]"
)

// injections commits a cluster with workflow commands in a failing chart, in lines of a diff and their
// context, and in a file name.
func injections(t *testing.T, folder string) {
	t.Helper()
	lines := func(last string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config, namespace: apps}\ndata:\n  text: |-\n    " +
			strings.ReplaceAll(strings.NewReplacer("\x1b", "", "\r", "").Replace(injected)+"\n"+harmless+"\n"+last, "\n", "\n    ") + "\n"
	}
	fail := `{{ fail ` + quoted(injected) + ` }}`
	write(t, filepath.Join(folder, "chart", "Chart.yaml"), "apiVersion: v2\nname: app\nversion: 1.0.0\n")
	write(t, filepath.Join(folder, "chart", "templates", "a.yaml"), strings.Replace(configMap, "name: config", "name: chart", 1))
	write(t, filepath.Join(folder, "cluster", "release.yaml"), strings.Replace(helmRelease, "name: app}}}", "name: flux-system, namespace: flux-system}}}", 1))
	write(t, filepath.Join(folder, "cluster", "config.yaml"), lines("before"))
	commit(t, folder)
	write(t, filepath.Join(folder, "chart", "templates", "a.yaml"), fail)
	write(t, filepath.Join(folder, "cluster", "config.yaml"), lines("after"))
	write(t, filepath.Join(folder, "cluster", "sub", "kustomization.yaml"), "resources: ['##vso[task.complete result=Failed].yaml']\n")
	write(t, filepath.Join(folder, "cluster", "sub.yaml"), strings.Replace(strings.Replace(kustomization, "name: app", "name: sub", 1), "path: ./", "path: ./cluster/sub, interval: 1m, prune: true, sourceRef: {kind: GitRepository, name: flux-system}", 1))
	write(t, filepath.Join(folder, "cluster", "kustomization.yaml"), "resources: [config.yaml, release.yaml, sub.yaml]\n")
	commit(t, folder)
}

// quoted returns a string of a template.
func quoted(text string) string {
	return `"` + strings.NewReplacer("\n", `\n`, "\r", `\r`, "\x1b", `\x1b`).Replace(text) + `"`
}

// executed returns the lines that a runner would execute: of GitHub, Gitea and Forgejo as in
// ActionCommand of actions/runner, of Azure Pipelines and TeamCity anywhere in a line, and sections of
// GitLab.
func executed(output string) []string {
	var found []string
	for _, line := range strings.FieldsFunc(output, func(r rune) bool { return r == '\n' || r == '\r' }) {
		command, ok := strings.CutPrefix(strings.TrimSpace(line), "::")
		name, _, both := strings.Cut(command, "::")
		name, _, _ = strings.Cut(name, " ")
		legacy := false
		for _, marker := range []string{"##[", "##vso[", "##teamcity["} {
			legacy = legacy || strings.Contains(strings.ToLower(line), marker)
		}
		if ok && both && name != "" || legacy || strings.Contains(line, "\x1b") {
			found = append(found, line)
		}
	}
	return found
}

// notCompared matches the annotation of an owner that is not compared.
var notCompared = regexp.MustCompile(`(?m)^::notice (file=[^,]*,line=\d+,)?title=not-compared::`)

// TestPipelines runs commands on a repository with workflow commands, with the variables of each CI
// system: human-readable text must not contain them, while similar text and machine-readable formats
// must be unchanged.
func TestPipelines(t *testing.T) {
	t.Parallel()
	bin := testcluster.Programs(t)
	folder := t.TempDir()
	injections(t, folder)
	home := t.TempDir()
	run := func(t *testing.T, variable, line string) (stdout, stderr string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "flux"), words(line)...)
		cmd.Dir, cmd.Env = folder, []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
		if variable != "" {
			cmd.Env = append(cmd.Env, variable)
		}
		var out, messages bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &messages
		_ = cmd.Run() // the exit code is not 0
		return out.String(), messages.String()
	}
	const diff = "diff --base HEAD~1 --head HEAD --path cluster"
	people := []string{diff, diff + " -o unified", diff + " -o brief", "validate --path cluster", "build kustomization sub --dry-run --kustomization-file cluster/sub.yaml --path cluster/sub"}
	programs := []string{diff + " -o json", diff + " -o annotations", diff + " -o github", diff + " -o junit", "validate --path cluster -o github", "validate --path cluster -o json",
		"build kustomization config --dry-run --kustomization-file cluster/sub.yaml --path chart/.."}
	outside := map[string]string{}
	commands := 0
	for _, line := range slices.Concat(people, programs) {
		stdout, stderr := run(t, "", line)
		outside[line] = stdout
		commands += len(executed(stdout + stderr))
	}
	if commands == 0 {
		t.Fatal("without a CI system, there are no commands to escape")
	}
	for _, variable := range pipelines() {
		t.Run(variable, func(t *testing.T) {
			for _, line := range people {
				stdout, stderr := run(t, variable, line)
				if found := executed(stdout + stderr); len(found) > 0 {
					t.Errorf("flux %s prints %q", line, found)
				}
				for text := range strings.Lines(harmless) {
					if text = strings.TrimSpace(text); strings.Contains(outside[line], text) && !strings.Contains(stdout, text) {
						t.Errorf("flux %s escapes %q:\n%s", line, text, stdout)
					}
				}
			}
			for _, line := range programs {
				stdout, stderr := run(t, variable, line)
				if stdout != outside[line] {
					t.Errorf("flux %s differs:\n%s\nwithout a CI system:\n%s", line, stdout, outside[line])
				}
				if found := executed(stderr); len(found) > 0 {
					t.Errorf("flux %s prints %q", line, found)
				}
			}
		})
	}
	annotations := outside[diff+" -o annotations"]
	if own := len(notCompared.FindAllString(annotations, -1)); own != 2 || len(executed(annotations)) != own || strings.Contains(annotations, "##") {
		t.Errorf("annotations: %q", annotations)
	}
	if !strings.Contains(outside[diff], "execution error at (app/templates/a.yaml") {
		t.Errorf("the chart does not fail:\n%s", outside[diff])
	}
}
