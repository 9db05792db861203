package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/installation"
	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/internal/ui"
)

// tokenPrinters are the programs that keep a token for a host and print it.
// The host is all they are told; the token comes back through a pipe.
var tokenPrinters = map[string]func(hostname string) []string{
	"gh":   func(hostname string) []string { return []string{"auth", "token", "--hostname", hostname} },
	"glab": func(hostname string) []string { return []string{"config", "get", "token", "--host", hostname} },
}

// tokenSources are the words of --token-from.
var tokenSources = []string{"env", "stdin", "gh", "glab"}

// printerTimeout bounds how long a program may take to print a token: it may
// ask a keyring, which may ask a person.
const printerTimeout = 30 * time.Second

// hostToken returns the token of a Git host's API. Without a source it is
// taken from the environment, else asked for on the terminal, else read from
// standard input, as scripts of Flux 2.9 give it.
func hostToken(ctx context.Context, a *app.App, source, envName, hostname string) (string, error) {
	token, err := tokenOf(ctx, a, source, envName, hostname)
	if err != nil {
		return "", err
	}
	if token == "" {
		return "", clierr.WithHint(fmt.Sprintf("set %s, or name where it is with --token-from=stdin, gh or glab", envName), "there is no token for %s", hostname)
	}
	if strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("the token for %s has a space or a line break in it: give the token alone", hostname)
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

// tokenFromStdin reads what is piped in; a terminal is not waited for, since
// whoever sits there has not been asked anything.
func tokenFromStdin(ctx context.Context, a *app.App) (string, error) {
	if ui.IsTerminal(a.In) {
		return "", nil
	}
	text, err := io.ReadAll(io.LimitReader(a.Stdin(ctx), installation.MostCredentials))
	if err != nil {
		return "", fmt.Errorf("reading the token from standard input: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

func printedToken(ctx context.Context, program string, arguments []string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", clierr.WithHint("install it, or give the token in the environment", "--token-from=%s: there is no program %s on PATH", program, program)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, printerTimeout, &clierr.TimeoutError{After: printerTimeout})
	defer cancel()
	var out, told bytes.Buffer
	cmd := exec.CommandContext(ctx, path, arguments...)
	cmd.Stdout, cmd.Stderr = &out, &told
	cmd.WaitDelay = time.Second // a child of its own may keep the pipes open
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("asking %s for the token: %w", program, context.Cause(ctx))
	case err != nil:
		return "", clierr.WithHint("log in with "+program+" auth login first", "asking %s for the token: %w%s", program, err, remark(told.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// remark is what a program said about its failure, in a line.
func remark(told string) string {
	if told = strings.Join(strings.Fields(told), " "); told == "" {
		return ""
	}
	return ": " + redact.Text(told)
}
