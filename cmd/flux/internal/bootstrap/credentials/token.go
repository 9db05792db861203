// Package credentials reads the passwords, tokens, keys and certificates of bootstrap from flags, files, the environment,
// standard input, prompts and the CLIs of Git hosts.
package credentials

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/installflags"
	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/ui"
)

// tokenPrinters maps the CLIs that store tokens to the arguments that print the token
// of a host.
var tokenPrinters = map[string]func(hostname string) []string{
	"gh":   func(hostname string) []string { return []string{"auth", "token", "--hostname", hostname} },
	"glab": func(hostname string) []string { return []string{"config", "get", "token", "--host", hostname} },
}

// TokenSources returns the values of --token-from. program is the Git host CLI that stores tokens,
// or "".
func TokenSources(program string) []string {
	if program == "" {
		return []string{"env", "stdin"}
	}
	return []string{"env", "stdin", program}
}

// printerTimeout is the maximum time for printing a token, which may require the user
// to enter the password of a keyring.
const printerTimeout = 30 * time.Second

// HostToken returns the API token of a Git host. Without a source, it reads the
// environment, then prompts on the terminal; without a terminal, it reads standard
// input, as in Flux 2.9.
func HostToken(ctx context.Context, a *app.App, source, envName, hostname string) (string, error) {
	token, err := tokenOf(ctx, a, source, envName, hostname)
	if err != nil {
		return "", err
	}
	if token == "" {
		return "", hint.Errorf("set "+envName+", or another source with --token-from", "no token found for %s", hostname)
	}
	if strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("the token for %s contains a space or a line break: set only the token", hostname)
	}
	return token, nil
}

func tokenOf(ctx context.Context, a *app.App, source, envName, hostname string) (string, error) {
	if arguments, known := tokenPrinters[source]; known {
		return printedToken(ctx, source, arguments(hostname))
	}
	if source == "stdin" {
		return tokenFromStdin(ctx, a)
	}
	if token := strings.TrimSpace(a.Env(envName)); token != "" || source == "env" {
		return token, nil
	}
	token, err := ask(ctx, a, "Token for "+hostname)
	if errors.Is(err, ui.ErrNoTerminal) {
		return tokenFromStdin(ctx, a)
	}
	return strings.TrimSpace(token), err
}

// tokenFromStdin reads the token from a pipe. It does not read from a terminal,
// because the user was not prompted.
func tokenFromStdin(ctx context.Context, a *app.App) (string, error) {
	if ui.IsTerminal(a.In) {
		return "", nil
	}
	text, err := budget.ReadAll(a.Stdin(ctx), "", "it", installflags.MostCredentials)
	if err != nil {
		return "", fmt.Errorf("reading the token from standard input: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

func printedToken(ctx context.Context, program string, arguments []string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", hint.Errorf("install it, or set the token in the environment", "--token-from=%s: %s not found in PATH", program, program)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, printerTimeout, &clierr.TimeoutError{After: printerTimeout})
	defer cancel()
	var out, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, path, arguments...)
	cmd.Stdout, cmd.Stderr = &out, &stderr
	cmd.WaitDelay = time.Second // a child process may keep the pipes open
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("reading the token from %s: %w", program, context.Cause(ctx))
	case err != nil:
		return "", hint.Errorf("log in with "+program+" auth login first", "reading the token from %s: %w%s", program, err, suffix(stderr.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// suffix formats the error output of a program as the end of an error message.
func suffix(output string) string {
	if output = strings.Join(strings.Fields(output), " "); output == "" {
		return ""
	}
	return ": " + redact.Text(output)
}
