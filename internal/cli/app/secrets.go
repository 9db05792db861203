package app

import (
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/redact"
)

// purposeful are the commands whose answer on standard output holds credentials,
// with the reason. Their messages are masked as all others are.
var purposeful = map[string]string{
	"flux create secret":       "--export prints the Secret, to be encrypted and committed",
	"flux create source":       "--export prints the Secret of --username and --password",
	"flux export source":       "--with-credentials prints the Secrets of sources",
	"flux build":               "prints what is applied; --show-secrets prints the values of Secrets",
	"flux envsubst":            "prints the values of variables",
	"flux debug kustomization": "--show-secrets prints variables that come from Secrets",
	"flux debug helmrelease":   "prints the values of a release",
}

// PrintsCredentials reports whether a command is one of purposeful.
func PrintsCredentials(cmd *cobra.Command) bool {
	for path := range purposeful {
		if cmd != nil && (cmd.CommandPath() == path || strings.HasPrefix(cmd.CommandPath(), path+" ")) {
			return true
		}
	}
	return false
}

// LearnEnvironment makes the credentials in the environment known.
func (a *App) LearnEnvironment() {
	for _, variable := range a.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		switch {
		case strings.Contains(value, "://"):
			a.Secrets.AddURL(value)
		case redact.Named(name) && !strings.HasPrefix(value, "/"):
			a.Secrets.Add(value)
		}
	}
	for line := range strings.Lines(a.Env("SOPS_AGE_KEY")) {
		a.Secrets.Add(line)
	}
}

// LearnFlags makes the credentials on a command line known.
func (a *App) LearnFlags(cmd *cobra.Command, args []string) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			_, part, _ := strings.Cut(value, "=") // of key=value
			a.Secrets.AddURL(value)
			a.Secrets.AddURL(part)
			switch {
			case f.Name == "creds":
				user, password, both := strings.Cut(value, ":")
				if !both {
					password = user
				}
				a.Secrets.AddLogin(user, password)
				a.Secrets.Add(value)
			case f.Value.Type() == "bool", strings.HasSuffix(f.Name, "secret"): // a Secret is named by those
			case redact.Named(f.Name):
				a.Secrets.Add(value)
			}
		}
	})
	for _, arg := range args {
		a.Secrets.AddURL(arg)
	}
}

// learnCluster makes the credentials of a kubeconfig known, and those that an
// exec plugin provides as soon as a request has them.
func (a *App) learnCluster(cfg *rest.Config) {
	a.Secrets.Add(cfg.BearerToken, string(cfg.KeyData))
	a.Secrets.AddLogin(cfg.Username, cfg.Password)
	for _, file := range []string{cfg.BearerTokenFile, cfg.KeyFile} {
		if text, err := os.ReadFile(file); err == nil { // the client reports what is wrong with it
			a.Secrets.Add(string(text))
		}
	}
	if cfg.ExecProvider != nil {
		for _, variable := range cfg.ExecProvider.Env {
			if redact.Named(variable.Name) {
				a.Secrets.Add(variable.Value)
			}
		}
	}
	a.Secrets.AddURL(cfg.Host)
	cfg.Wrap(a.Secrets.Transport)
}

// Flush writes what was held back because it began like a secret.
func (a *App) Flush() {
	for _, w := range []io.Writer{a.Out, a.Err} {
		if masked, ok := w.(*redact.Writer); ok {
			_ = masked.Flush() // who could be told is gone
		}
	}
}

// Unmasked returns the stream itself, for programs that run in place of flux and
// for answers that hold credentials by purpose.
func Unmasked(w io.Writer) io.Writer {
	if masked, ok := w.(*redact.Writer); ok {
		return masked.Unwrap()
	}
	return w
}
