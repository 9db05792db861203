package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/config"
)

// flags returns some of the global flags.
func flags(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	fs := pflag.NewFlagSet("flux", pflag.ContinueOnError)
	fs.String("namespace", "flux-system", "")
	fs.String("context", "", "")
	fs.Duration("timeout", 0, "")
	fs.Bool("verbose", false, "")
	for _, name := range []string{"token", "server", "user", "cluster", "as", "kubeconfig", "certificate-authority", "client-key"} {
		fs.String(name, "", "")
	}
	fs.Bool("insecure-skip-tls-verify", false, "")
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return fs
}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("namespace: from-file\ncontext: from-file\ntimeout: 3m\nverbose: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"FLUX_CONFIG": file, "FLUX_NAMESPACE": "from-env", "FLUX_CONTEXT": "from-env", "FLUX_VERSION": "2.0.0"}
	fs := flags(t, "--context=from-flag")
	if err := config.Apply(fs, func(name string) string { return env[name] }); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"context": "from-flag", "namespace": "from-env", "timeout": "3m0s", "verbose": "true"} {
		if got := fs.Lookup(name).Value.String(); got != want {
			t.Errorf("--%s is %q, want %q", name, got, want)
		}
	}
}

// TestNotSettable checks that variables and the file cannot select users, servers or certificate
// verification.
func TestNotSettable(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"token", "server", "user", "cluster", "as", "kubeconfig", "certificate-authority", "client-key", "insecure-skip-tls-verify"} {
		variable := "FLUX_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		fs := flags(t)
		if err := config.Apply(fs, func(v string) string { return map[string]string{variable: "true"}[v] }); err != nil || fs.Changed(name) {
			t.Errorf("%s=true: error %v, --%s is %q", variable, err, name, fs.Lookup(name).Value)
		}
		file := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(file, []byte(name+": true\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		err := config.Apply(fs, func(v string) string { return map[string]string{"FLUX_CONFIG": file}[v] })
		if err == nil || !strings.Contains(err.Error(), name) || fs.Changed(name) {
			t.Errorf("%s in the file: error %v, --%s is %q", name, err, name, fs.Lookup(name).Value)
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
		"unknown setting": {"hue: red\n", nil, `"hue" cannot be set in the configuration file`},
		"broken file":     {"namespace: [\n", nil, "reading the configuration file"},
		"wrong value":     {"timeout: soon\n", nil, `config.yaml: timeout: invalid value "soon"`},
		"wrong variable":  {"", map[string]string{"FLUX_TIMEOUT": "soon"}, `environment variable FLUX_TIMEOUT: invalid value "soon"`},
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
		"/home/us/.config/flux/config.yaml": {"XDG_CONFIG_HOME": "relative", "HOME": "/home/us"},
	} {
		if got := config.Path(func(name string) string { return env[name] }); got != want {
			t.Errorf("Path with %v is %q, want %q", env, got, want)
		}
	}
}

// TestOthersFile checks that a file that other users may write to is rejected.
func TestOthersFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("namespace: theirs\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(name string) string { return map[string]string{"FLUX_CONFIG": file}[name] }
	for _, mode := range []os.FileMode{0o660, 0o602, 0o666} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		fs := flags(t)
		if err := config.Apply(fs, env); err == nil || !strings.Contains(err.Error(), "chmod go-w") || fs.Changed("namespace") {
			t.Errorf("mode %o: got %v", mode, err)
		}
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := config.Apply(flags(t), env); err != nil {
		t.Errorf("a file writable only by its owner: %v", err)
	}
}
