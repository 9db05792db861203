// Package config fills the global flags that were not given on the command
// line: from FLUX_* variables and, after these, from the user's config file.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
)

// settable are the flags that a variable or the file may set. FLUX_VERSION is
// left to installers, and one-off choices such as --token to the command line
// and the environment of kubectl.
var settable = []string{
	"as", "as-group", "as-uid", "as-user-extra", "cache-dir", "certificate-authority", "client-certificate", "client-key",
	"cluster", "context", "disable-compression", "insecure-skip-tls-verify", "kubeconfig", "namespace",
	"ns-follows-kube-context", "server", "timeout", "tls-server-name", "token", "user", "verbose",
}

// Path is where the config file lies: FLUX_CONFIG, else flux/config.yaml in
// the user's configuration folder. It is "" where there is no such folder.
func Path(env func(string) string) string {
	if path := env("FLUX_CONFIG"); path != "" {
		return path
	}
	if dir := env("XDG_CONFIG_HOME"); dir != "" {
		return filepath.Join(dir, "flux", "config.yaml")
	}
	if home := env("HOME"); home != "" {
		return filepath.Join(home, ".config", "flux", "config.yaml")
	}
	return ""
}

// Apply sets every settable flag that was not given: flag, then variable,
// then file, then default.
func Apply(flags *pflag.FlagSet, env func(string) string) error {
	v := viper.New()
	path := Path(env)
	if path != "" {
		v.SetConfigFile(path)
		if err := v.ReadInConfig(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("reading the config file %s: %w", path, err)
		}
	}
	if err := known(v.AllKeys(), path); err != nil {
		return err
	}
	for _, name := range settable {
		f := flags.Lookup(name)
		if f == nil || f.Changed {
			continue
		}
		origin := "FLUX_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		values := []string{env(origin)}
		if values[0] == "" && v.IsSet(name) {
			origin, values = name+" in "+path, v.GetStringSlice(name)
		}
		for _, value := range values {
			if value == "" {
				continue
			}
			if err := flags.Set(name, value); err != nil {
				return fmt.Errorf("%s: %w", origin, err)
			}
		}
	}
	return nil
}

func known(keys []string, path string) error {
	for _, key := range keys {
		found := false
		for _, name := range settable {
			found = found || name == key
		}
		if !found {
			return fmt.Errorf("config file %s: unknown setting %q: it takes %s", path, key, strings.Join(settable, ", "))
		}
	}
	return nil
}
