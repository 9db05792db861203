// Package config sets global flags that are not on the command line from FLUX_* environment
// variables or the user's configuration file.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
)

// settable lists the flags that a variable or the file may set: they select the output and its
// source within the access that the kubeconfig grants. Users, credentials, server addresses and
// TLS verification come from the kubeconfig or the command line only: CI systems set variables
// such as FLUX_TOKEN for other programs, and these must not be sent to the API server.
var settable = []string{"cache-dir", "context", "disable-compression", "namespace", "ns-follows-kube-context", "timeout", "verbose"}

// Path returns the path of the configuration file: FLUX_CONFIG, else flux/config.yaml in the
// user's configuration directory, or "" if there is no such directory. As the XDG Base Directory
// Specification requires, a relative XDG_CONFIG_HOME is ignored.
func Path(env func(string) string) string {
	if path := env("FLUX_CONFIG"); path != "" {
		return path
	}
	if dir := env("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "flux", "config.yaml")
	}
	if home := Home(env); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "flux", "config.yaml")
	}
	return ""
}

// Home returns the user's home directory, or "" if the environment does not specify one.
func Home(env func(string) string) string { return homeOn(runtime.GOOS, env) }

// homeOn returns the home directory on an operating system. Windows sets USERPROFILE; shells such
// as Git Bash set HOME there as well.
func homeOn(system string, env func(string) string) string {
	if home := env("HOME"); home != "" || system != "windows" {
		return home
	}
	return env("USERPROFILE")
}

// Apply sets every settable flag that is not on the command line, from the variable or else the file. For each
// invalid value, it returns an error with the variable or the file, and it still sets the other flags.
func Apply(flags *pflag.FlagSet, env func(string) string) error {
	v := viper.New()
	path := Path(env)
	if err := read(v, path); err != nil {
		return err
	}
	var problems []error
	for _, key := range v.AllKeys() {
		if !slices.Contains(settable, key) && key != guardrails && key != contextGroups {
			problems = append(problems, fmt.Errorf("%s: %q cannot be set in the configuration file: the settings are %s", path, key, strings.Join(settable, ", ")))
		}
	}
	for _, name := range settable {
		f := flags.Lookup(name)
		if f == nil || f.Changed {
			continue
		}
		origin := "environment variable " + variable(name)
		value := env(variable(name))
		if value == "" && v.IsSet(name) {
			origin, value = fmt.Sprintf("%s: %s", path, name), v.GetString(name)
		}
		if value == "" {
			continue
		}
		if err := flags.Set(name, value); err != nil {
			problems = append(problems, fmt.Errorf("%s: invalid value %q: %w", origin, value, errors.Unwrap(err)))
		}
	}
	return errors.Join(problems...)
}

// Variables returns the environment variables that set flags.
func Variables() []string {
	var names []string
	for _, flag := range settable {
		names = append(names, variable(flag))
	}
	return names
}

func variable(flag string) string {
	return "FLUX_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// read reads the file if it exists. A file that other users may write to is rejected, as ssh does.
func read(v *viper.Viper, path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("reading the configuration file: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("configuration file %s: not a regular file", path)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("configuration file %s: writable by other users (mode %04o): run chmod go-w %s", path, info.Mode().Perm(), path)
	}
	v.SetConfigFile(path)
	if err := v.ReadInConfig(); err != nil {
		return fmt.Errorf("reading the configuration file %s: %w", path, err)
	}
	return nil
}
