package root

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
)

// TestReferenceIsReproducible checks that the command reference does not depend
// on the environment that it is generated in.
func TestReferenceIsReproducible(t *testing.T) {
	t.Setenv("HOME", "/home/one")
	first := reference(t, "flux-system")
	t.Setenv("HOME", "/home/two")
	second := reference(t, "elsewhere")
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the reference depends on the environment (-one +two):\n%s", diff)
	}
	if !strings.Contains(first["flux.md"], `(default "$HOME/.kube/cache")`) {
		t.Errorf("no default of --cache-dir:\n%s", first["flux.md"])
	}
	if _, ok := first["flux_docgen.md"]; ok {
		t.Error("a hidden command is in the reference")
	}
}

func reference(t *testing.T, namespace string) map[string]string {
	t.Helper()
	env := func(name string) string { return map[string]string{"FLUX_SYSTEM_NAMESPACE": namespace}[name] }
	var out, errs bytes.Buffer
	a := app.New(strings.NewReader(""), &out, &errs, env, time.Now)
	dir := filepath.Join(t.TempDir(), "docs", "cmd")
	if code := Run(t.Context(), a, []string{"docgen", "--path", dir}); code != clierr.ExitSuccess || out.Len() > 0 {
		t.Fatalf("exit %d, stdout %q, stderr %q", code, out.String(), errs.String())
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		pages[f.Name()] = string(data)
	}
	return pages
}

// TestCompletion checks the script of each shell and the error for other
// arguments.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for shell, start := range map[string]string{
		"bash": "# bash completion V2 for flux", "fish": "# fish completion for flux",
		"powershell": "# powershell completion for flux", "zsh": "#compdef flux\ncompdef _flux flux",
	} {
		code, out, errs := runApp(t, "completion", shell)
		if code != clierr.ExitSuccess || !strings.HasPrefix(out, start) || errs != "" {
			t.Errorf("%s: exit %d, stdout %.60q, stderr %q", shell, code, out, errs)
		}
	}
	for _, args := range [][]string{{"bash", "--nonsense"}, {"tcsh"}, {"bash", "more"}} {
		if code, out, errs := runApp(t, append([]string{"completion"}, args...)...); code != clierr.ExitFailed || out != "" || !strings.HasPrefix(errs, "✗ unknown") {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", args, code, out, errs)
		}
	}
}

func runApp(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := app.New(strings.NewReader(""), &stdout, &stderr, func(string) string { return "" }, time.Now)
	code = Run(t.Context(), a, args)
	return code, stdout.String(), stderr.String()
}

// TestGlobalFlagsOnOnePage checks that only the page of flux lists the global flags, and that all other
// pages have a link to them.
func TestGlobalFlagsOnOnePage(t *testing.T) {
	t.Parallel()
	for name, page := range reference(t, "flux-system") {
		listed := strings.Contains(page, "--kube-api-qps")
		linked := strings.Contains(page, "[global flags](flux.md#global-flags)")
		if first := name == "flux.md"; listed != first || linked == first {
			t.Errorf("%s: lists the global flags: %t, has a link to them: %t", name, listed, linked)
		}
	}
}
