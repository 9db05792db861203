//go:build unix

package credentials

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
)

// TestHostToken runs stand-ins for gh and glab from PATH, so its cases are sequential.
func TestHostToken(t *testing.T) {
	bin := t.TempDir()
	program := func(name, script string) {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	program("gh", `test "$*" = "auth token --hostname ghe.example.com" && echo gho_1 || { echo "not logged in: $*" >&2; exit 4; }`)
	program("glab", `test "$*" = "config get token --host gl.example.com" && echo glpat-1`)
	t.Setenv("PATH", bin)
	for name, test := range map[string]struct {
		source, host, env, stdin string
		token, problem           string
	}{
		"environment":          {"", "github.com", " abc\n", "other", "abc", ""},
		"environment alone":    {"env", "github.com", "", "piped", "", "no token found for github.com"},
		"piped":                {"", "github.com", "", "piped\n", "piped", ""},
		"stdin before env":     {"stdin", "github.com", "abc", "piped", "piped", ""},
		"two lines":            {"stdin", "github.com", "", "user\npiped", "", "the token for github.com contains a space or a line break: set only the token"},
		"nothing":              {"", "github.com", "", "", "", "no token found for github.com"},
		"gh":                   {"gh", "ghe.example.com", "abc", "", "gho_1", ""},
		"gh, not logged in":    {"gh", "other.example.com", "", "", "", "reading the token from gh: exit status 4: not logged in: auth token --hostname other.example.com"},
		"glab":                 {"glab", "gl.example.com", "", "", "glpat-1", ""},
		"glab, nothing stored": {"glab", "other.example.com", "", "", "", "reading the token from glab: exit status 1"},
	} {
		t.Run(name, func(t *testing.T) {
			env := func(key string) string { return map[string]string{"TOKEN": test.env}[key] }
			a := app.New(strings.NewReader(test.stdin), &bytes.Buffer{}, &bytes.Buffer{}, env, time.Now)
			token, err := HostToken(t.Context(), a, test.source, "TOKEN", test.host)
			problem := ""
			if err != nil {
				problem = err.Error()
			}
			if token != test.token || problem != test.problem {
				t.Errorf("got %q, %q; want %q, %q", token, problem, test.token, test.problem)
			}
		})
	}
}

// TestHostTokenInterrupted checks that an interrupt ends the wait for a locked keyring.
func TestHostTokenInterrupted(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	started := filepath.Join(bin, "started")
	if err := syscall.Mkfifo(started, 0o600); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\necho > %s\n%s 600\n", started, sleep)
	if err := os.WriteFile(filepath.Join(bin, "gh"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		_, _ = os.ReadFile(started) // returns when the program runs
	}()
	a := app.New(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}, func(string) string { return "" }, time.Now)
	if _, err := HostToken(ctx, a, "gh", "TOKEN", "github.com"); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupt while gh is running: %v", err)
	}
}
