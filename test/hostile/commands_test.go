package hostile_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxkit/flux/test/support/testlimit"
)

// other is hostile input of commands other than build kustomization and pull artifact.
type other struct {
	row
	args []string
}

// nightly returns a row that runs only with TIER=nightly.
func nightly(o other) other {
	o.nightly = true
	return o
}

const helmRelease = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: app, namespace: apps}\n" +
	"spec:\n  interval: 1m\n  chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: app}}}\n"

// endless is a template that loops ten billion times.
func endless(body string) string {
	return "{{ range untilStep 0 100000 1 }}{{ range untilStep 0 100000 1 }}" + body + "{{ end }}{{ end }}"
}

func chart(template string) map[string]string {
	return map[string]string{"chart/Chart.yaml": "apiVersion: v2\nname: app\nversion: 1.0.0\n", "chart/templates/a.yaml": template, "hr.yaml": helmRelease}
}

// keys writes an object with many small values, which takes seconds to decode and to print.
func keys(t *testing.T, folder string) {
	t.Helper()
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\ndata:\n")
	for i := range 900_000 {
		fmt.Fprintf(&b, "  k%d: v%d\n", i, i)
	}
	write(t, filepath.Join(folder, "ks"), kustomization)
	write(t, filepath.Join(folder, "app", "config.yaml"), b.String())
}

func others() []other {
	release := []string{"build", "helmrelease", "app", "-n", "apps", "--dry-run", "--helmrelease-file", "$FOLDER/hr.yaml", "--chart", "$FOLDER/chart"}
	limited := append(release[:len(release):len(release)], "--timeout", "1s")
	generated := []string{"build", "artifact-generator", "app", "-n", "apps", "--dry-run", "--generator-file", "$FOLDER/generator.yaml", "--local-sources", "GitRepository/apps/app=$FOLDER/source", "--output", "$FOLDER/out"}
	keyed := []string{"build", "kustomization", "app", "--dry-run", "--kustomization-file", "$FOLDER/ks", "--path", "$FOLDER/app"}
	return []other{
		{row{name: "a chart that renders endlessly, with --timeout 1s", files: chart(endless("")), want: "timed out after 1s"}, limited},
		{row{name: "the same, ended by SIGTERM", files: chart(endless("")), interrupt: true, exit: 130, want: "interrupted"}, release},
		{row{name: "a chart with endless output", files: chart(endless("xxxxxxxxxxxxxxxx")), want: "requires more than 512 MiB of memory"}, release},
		{row{name: "a manifest with 900,000 keys, with --timeout 500ms", make: keys, want: "timed out after 500ms"}, append(keyed[:len(keyed):len(keyed)], "--timeout", "500ms")},
		{row{name: "the same, ended by SIGTERM", make: keys, read: 10 << 20, exit: 130, want: "interrupted"}, keyed},
		{row{name: "build artifact-generator, an artifact with the name ../../out", files: artifactGenerator("", "../../out", 1), want: "invalid name"}, generated},
		{row{name: "the same, a pattern that creates 10,001 artifacts", files: artifactGenerator("@app/x/{a}", "{a}", 1), make: directories(10_001), want: "the generator has more than 10000 artifacts"}, generated},
		{row{name: "the same, an artifact with 20,000 copies of 100 files", files: artifactGenerator("", "app", 20_000), make: directories(100), want: "the artifacts have more than 200000 files"}, generated},
		{row{name: "diff --base, 1,000 Kustomizations that include each other", make: circular(1000), dir: true, exit: 2, want: "the Kustomizations of one revision have more than 100000 objects"}, []string{"diff", "--base", "HEAD~1", "--path", "a"}},
		{row{name: "diff --base, a chart that installs itself under other names", files: recursiveChart(), make: commit, dir: true, exit: 2, want: "HelmReleases in charts are nested more than 100 levels deep"}, []string{"diff", "--base", "HEAD", "--path", "cluster"}},
		{row{name: "diff --base, 98,000 Kustomizations that include each other, with --timeout 5s", make: circular(98_000), dir: true, nightly: true, exit: 2, want: "timed out after 5s"}, []string{"diff", "--base", "HEAD~1", "--path", "a", "--timeout", "5s"}},
		{row{name: "diff --base, a Kustomization that cannot be built with 1,000 HelmReleases, and 5,000 changed directories", make: unbuilt(1000, 5000), dir: true, nightly: true, stdout: "1 not compared"}, []string{"diff", "--base", "HEAD~1", "--path", "cluster"}},
		{row{name: "diff --base, 1,000 Kustomizations of an artifact that may be pushed from 5,000 changed directories", make: pushed(1000, 5000), dir: true, nightly: true, stdout: "1000 not compared"}, []string{"diff", "--base", "HEAD~1", "--path", "cluster"}},
	}
}

// artifactGenerator returns an ArtifactGenerator with one artifact, which copies the source a number of times.
func artifactGenerator(pattern, name string, copies int) map[string]string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: source.extensions.fluxcd.io/v1beta1\nkind: ArtifactGenerator\nmetadata: {name: app, namespace: apps}\n"+
		"spec:\n  pathPattern: %q\n  sources: [{alias: app, kind: GitRepository, name: app}]\n  artifacts:\n  - name: %q\n    copy:\n", pattern, name)
	for i := range copies {
		fmt.Fprintf(&b, "    - {from: \"@app/**\", to: \"@artifact/%d/\"}\n", i)
	}
	return map[string]string{"generator.yaml": b.String(), "source/file": ""}
}

// directories writes a number of directories with one file.
func directories(number int) func(t *testing.T, folder string) {
	return func(t *testing.T, folder string) {
		t.Helper()
		for i := range number {
			write(t, filepath.Join(folder, "source", "x", fmt.Sprintf("d%d", i), "file"), "")
		}
	}
}

// recursiveChart returns a HelmRelease whose chart installs another HelmRelease with the same chart.
func recursiveChart() map[string]string {
	const again = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: %s, namespace: flux-system}\n" +
		"spec: {interval: 10m, releaseName: %s, chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: flux-system}}}}\n"
	files := chart(fmt.Sprintf(again, `{{ printf "%sx" .Release.Name | quote }}`, `{{ sha1sum .Release.Name | trunc 20 | quote }}`))
	files["cluster/app.yaml"] = fmt.Sprintf(again, "app", "app")
	return files
}

// circular commits two directories with many Kustomizations that build each other, and changes one of them.
func circular(number int) func(t *testing.T, folder string) {
	return func(t *testing.T, folder string) {
		t.Helper()
		many := func(from, to int, path string) string {
			var b bytes.Buffer
			for i := from; i < to; i++ {
				fmt.Fprintf(&b, "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: k%d, namespace: flux-system}\nspec: {interval: 1m, prune: true, path: ./%s, sourceRef: {kind: GitRepository, name: flux-system}}\n---\n", i, path)
			}
			return b.String()
		}
		write(t, filepath.Join(folder, "a", "k.yaml"), many(0, number/2, "b"))
		write(t, filepath.Join(folder, "b", "k.yaml"), many(number/2, number, "a"))
		commit(t, folder)
		write(t, filepath.Join(folder, "a", "k.yaml"), strings.Replace(many(0, number/2, "b"), "1m", "2m", 1))
		commit(t, folder)
	}
}

// pushed commits Kustomizations of an OCI artifact, and changes manifests in deep directories that may be its origin.
func pushed(number, files int) func(t *testing.T, folder string) {
	return func(t *testing.T, folder string) {
		t.Helper()
		var b bytes.Buffer
		for i := range number {
			fmt.Fprintf(&b, "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: k%d, namespace: flux-system}\nspec: {interval: 1m, prune: true, path: ./x/p%d, sourceRef: {kind: OCIRepository, name: app}}\n---\n", i, i)
		}
		b.WriteString("apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: app, namespace: flux-system}\nspec: {interval: 1m, url: \"oci://example.com/app\", ref: {tag: v1}}\n")
		write(t, filepath.Join(folder, "cluster", "all.yaml"), b.String())
		deepen(t, folder, files)
	}
}

// unbuilt commits a Kustomization with a remote base and HelmReleases, and changes manifests in deep directories.
func unbuilt(number, files int) func(t *testing.T, folder string) {
	return func(t *testing.T, folder string) {
		t.Helper()
		write(t, filepath.Join(folder, "cluster", "ks.yaml"), "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: app, namespace: flux-system}\nspec: {interval: 1m, prune: true, path: ./app, sourceRef: {kind: GitRepository, name: flux-system}}\n")
		resources := "resources: [\"https://example.com/base.yaml\""
		for i := range number {
			write(t, filepath.Join(folder, fmt.Sprintf("app/r%d.yaml", i)), fmt.Sprintf("apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: r%d, namespace: x}\nspec: {interval: 10m, chartRef: {kind: OCIRepository, name: app}, values: {text: %s}}\n", i, strings.Repeat("x", 1000)))
			resources += fmt.Sprintf(", r%d.yaml", i)
		}
		write(t, filepath.Join(folder, "app", "kustomization.yaml"), resources+"]\n")
		deepen(t, folder, files)
	}
}

// deepen commits a repository, and then manifests in deep directories.
func deepen(t *testing.T, folder string, files int) {
	t.Helper()
	commit(t, folder)
	for i := range files {
		write(t, filepath.Join(folder, fmt.Sprintf("a/b%d/c/d/e/f/g%d/h.yaml", i%500, i)), "a: b\n")
	}
	commit(t, folder)
}

// commit commits the files of a directory.
func commit(t *testing.T, folder string) {
	t.Helper()
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-qm", "change"}} {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
}

// command runs the command in or on a directory with the input.
func (o other) command(t *testing.T, bin string) outcome {
	t.Helper()
	folder := t.TempDir()
	for name, text := range o.files {
		write(t, filepath.Join(folder, name), text)
	}
	if o.make != nil {
		o.make(t, folder)
	}
	args := make([]string, len(o.args))
	for i := range o.args {
		args[i] = strings.ReplaceAll(o.args[i], "$FOLDER", folder)
	}
	if o.cluster != nil {
		args = append(args, "--kubeconfig="+o.cluster().kubeconfig(t), "--namespace=apps", "--timeout="+testlimit.Wait.String())
	}
	if o.answer != nil {
		args = append(args, "--kubeconfig="+o.answer.kubeconfig(t), "--namespace=apps", "--timeout="+testlimit.Wait.String())
	}
	if !o.dir {
		folder = ""
	}
	return o.runIn(t, folder, bin, args)
}

// awaitRead returns when a process has read a number of bytes.
func awaitRead(t *testing.T, pid int, bytes int64) {
	t.Helper()
	for ctx := t.Context(); ctx.Err() == nil; {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
		var read int64
		if err == nil {
			_, err = fmt.Sscanf(string(text), "rchar: %d", &read)
		}
		if err != nil {
			t.Fatalf("the process has ended before it read its input: %v", err)
		}
		if read >= bytes {
			return
		}
	}
}
