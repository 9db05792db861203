// Package config fills global flags that were not given on the command line:
// from FLUX_* environment variables and, after these, from the user's
// configuration file.
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

// settable are the flags that a variable or the file may set: those that choose
// what is shown and where, among what the kubeconfig gives access to. Users,
// credentials, server addresses and TLS verification come from the kubeconfig or
// the command line alone: CI systems set variables such as FLUX_TOKEN for other
// programs, and these must not reach the API server.
var settable = []string{"cache-dir", "context", "disable-compression", "namespace", "ns-follows-kube-context", "timeout", "verbose"}

// Path returns where the configuration file is: FLUX_CONFIG, else
// flux/config.yaml in the user's configuration directory. It is "" where there
// is no such directory. As the XDG Base Directory Specification asks for, a
// relative XDG_CONFIG_HOME is ignored: the file would depend on the current
// directory, which may be somebody else's.
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

// Home returns the user's home directory, "" where the environment names none.
func Home(env func(string) string) string { return homeOn(runtime.GOOS, env) }

// homeOn returns the home directory on an operating system. Windows names it in
// USERPROFILE; shells such as Git Bash set HOME there, too.
func homeOn(system string, env func(string) string) string {
	if home := env("HOME"); home != "" || system != "windows" {
		return home
	}
	return env("USERPROFILE")
}

// Apply sets every settable flag that was not given: flag, then variable, then
// file, then default. It returns an error that names the variable or the file
// for each value that cannot be used, and sets the other flags.
func Apply(flags *pflag.FlagSet, env func(string) string) error {
	v := viper.New()
	path := Path(env)
	if err := read(v, path); err != nil {
		return err
	}
	var problems []error
	for _, key := range v.AllKeys() {
		if !slices.Contains(settable, key) {
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

func variable(flag string) string {
	return "FLUX_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// read reads the file if there is one. A file that other users may write to is
// refused, as ssh refuses its own.
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
