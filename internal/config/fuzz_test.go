package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/config"
)

// FuzzApply checks that a configuration file sets harmless flags only, never one that is on the
// command line, and that each error names the file.
func FuzzApply(f *testing.F) {
	for _, text := range []string{
		"namespace: apps\ntimeout: 3m\n", "token: abc\n", "server: {a: b}\n", "namespace: [a, b]\n", "a: &a [*a]\n", "NAMESPACE: x\nToken: y\n",
		"namespace.token: x\n", "? {a: b}\n", "timeout: 1e400\nverbose: maybe\n", "- a\n", "<<: {token: x}\n",
	} {
		f.Add(text)
	}
	harmless := []string{"namespace", "context", "timeout", "verbose"}
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		fs := flags(t, "--context=given")
		err := config.Apply(fs, func(name string) string { return map[string]string{"FLUX_CONFIG": file}[name] })
		fs.VisitAll(func(flag *pflag.Flag) {
			if flag.Changed && !slices.Contains(harmless, flag.Name) {
				t.Errorf("--%s is set to %q", flag.Name, flag.Value)
			}
		})
		if got := fs.Lookup("context").Value.String(); got != "given" {
			t.Errorf("--context is set to %q", got)
		}
		if err != nil && !strings.Contains(err.Error(), file) {
			t.Errorf("the error does not name the file: %v", err)
		}
	})
}
