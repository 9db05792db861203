package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/config"
)

// flags are a few of the global ones.
func flags(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	fs := pflag.NewFlagSet("flux", pflag.ContinueOnError)
	fs.String("namespace", "flux-system", "")
	fs.String("context", "", "")
	fs.Duration("timeout", 0, "")
	fs.StringArray("as-group", nil, "")
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return fs
}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("namespace: from-file\ncontext: from-file\ntimeout: 3m\nas-group: [a, b]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"FLUX_CONFIG": file, "FLUX_NAMESPACE": "from-env", "FLUX_CONTEXT": "from-env", "FLUX_VERSION": "2.0.0"}
	fs := flags(t, "--context=from-flag")
	if err := config.Apply(fs, func(name string) string { return env[name] }); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"context": "from-flag", "namespace": "from-env", "timeout": "3m0s", "as-group": "[a,b]"} {
		if got := fs.Lookup(name).Value.String(); got != want {
			t.Errorf("--%s is %q, want %q", name, got, want)
		}
	}
}

func TestWrongSettings(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		file string
		env  map[string]string
		want string
	}{
		"unknown setting": {"colour: red\n", nil, `unknown setting "colour"`},
		"broken file":     {"namespace: [\n", nil, "reading the config file"},
		"wrong value":     {"timeout: soon\n", nil, "timeout in "},
		"wrong variable":  {"", map[string]string{"FLUX_TIMEOUT": "soon"}, "FLUX_TIMEOUT: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(file, []byte(test.file), 0o600); err != nil {
				t.Fatal(err)
			}
			err := config.Apply(flags(t), func(name string) string {
				if name == "FLUX_CONFIG" {
					return file
				}
				return test.env[name]
			})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestPath(t *testing.T) {
	t.Parallel()
	for want, env := range map[string]map[string]string{
		"/etc/flux.yaml":                    {"FLUX_CONFIG": "/etc/flux.yaml", "HOME": "/home/me"},
		"/xdg/flux/config.yaml":             {"XDG_CONFIG_HOME": "/xdg", "HOME": "/home/me"},
		"/home/me/.config/flux/config.yaml": {"HOME": "/home/me"},
		"":                                  {},
	} {
		if got := config.Path(func(name string) string { return env[name] }); got != want {
			t.Errorf("Path with %v is %q, want %q", env, got, want)
		}
	}
}
