package helper_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/helper"
)

// findVariable makes this program print the path of the helper program.
const findVariable = "HELPER_TEST_FIND"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(findVariable) != "":
		path, err := helper.Find(helper.Program)
		fmt.Println(path, errors.Is(err, helper.ErrNotFound))
		return
	case len(os.Args) == 2 && os.Args[1] == "jobs":
		if err := helper.Serve(context.Background(), handlers(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	os.Exit(m.Run())
}

const (
	sum     helper.Call[int, int]       = "sum"
	garbage helper.Call[string, string] = "garbage"
	repeat  helper.Call[string, string] = "repeat"
)

func handlers() []helper.Handler {
	return []helper.Handler{
		sum.QueryHandler(func(ctx context.Context, count int, query helper.Query) (sum int, err error) {
			for i := range count {
				var n int
				if err := query(ctx, i, &n); err != nil {
					return 0, fmt.Errorf("number %d: %w", i, err)
				}
				sum += n
			}
			return sum, nil
		}),
		garbage.Handler(func(context.Context, string) (string, error) {
			fmt.Println("not JSON")
			return "", nil
		}),
		repeat.Handler(func(_ context.Context, text string) (string, error) {
			if text == "" {
				return "", &helper.Error{Step: "reading", Text: "no text"}
			}
			return strings.Repeat(text, budget.HelperOutput/8), nil
		}),
	}
}

func newProcess() *helper.Process {
	return newPool().Process("test", func(context.Context) ([]string, error) { return []string{}, nil }, "jobs")
}

func newPool() *helper.Pool {
	return &helper.Pool{Find: os.Executable, LookupEnv: os.LookupEnv, Warn: func(text string) { fmt.Fprintln(os.Stderr, text) }}
}

// TestFind runs a copy of this program in a folder of its own, with programs of the name in PATH
// and in the current folder.
func TestFind(t *testing.T) {
	t.Parallel()
	bin, onPath, current := t.TempDir(), t.TempDir(), t.TempDir()
	flux := filepath.Join(bin, "flux")
	copyProgram(t, flux)
	for _, folder := range []string{onPath, current} {
		write(t, filepath.Join(folder, helper.Program))
	}
	link := filepath.Join(onPath, "flux") // as package managers install it
	if err := os.Symlink(flux, link); err != nil {
		t.Fatal(err)
	}
	find := func() string {
		for {
			cmd := exec.CommandContext(t.Context(), link)
			cmd.Dir = current
			cmd.Env = []string{findVariable + "=1", "PATH=" + onPath + ":.:" + current}
			out, err := cmd.Output()
			if errors.Is(err, syscall.ETXTBSY) { // a process that another test starts has inherited the copied file
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(string(out))
		}
	}
	if got := find(); got != "true" {
		t.Errorf("without a helper program beside flux: %s", got)
	}
	write(t, filepath.Join(bin, helper.Program))
	resolved, err := filepath.EvalSymlinks(bin)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := find(), filepath.Join(resolved, helper.Program)+" false"; got != want {
		t.Errorf("with a helper program beside flux: %s, want %s", got, want)
	}
}

func copyProgram(t *testing.T, to string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close() }()
	file, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o700)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(file, from)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexit 9\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestQueries(t *testing.T) {
	t.Parallel()
	p := newProcess()
	var asked []string
	square := func(query json.RawMessage) (any, error) {
		var i int
		err := json.Unmarshal(query, &i)
		asked = append(asked, string(query))
		if i == 4 {
			return nil, errors.New("no squares of 4")
		}
		return i * i, err
	}
	if got, err := sum.DoWithQueries(t.Context(), p, "adding", 4, square); err != nil || got != 0+1+4+9 {
		t.Errorf("sum %d, %v", got, err)
	}
	_, err := sum.DoWithQueries(t.Context(), p, "adding", 9, square)
	if err == nil || err.Error() != "number 4: no squares of 4" {
		t.Errorf("error of an answer: %v", err)
	}
	if got := strings.Join(asked, " "); got != "0 1 2 3 0 1 2 3 4" {
		t.Errorf("queries %s", got)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestUnknownJob(t *testing.T) {
	t.Parallel()
	p := newProcess()
	_, err := helper.Call[int, int]("later").Do(t.Context(), p, "a job of the next version", 0)
	if err == nil || !strings.Contains(err.Error(), `flux-helper does not support the job "later": install the same version of flux and flux-helper`) {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestMalformedOutput(t *testing.T) {
	t.Parallel()
	p := newProcess()
	if _, err := garbage.Do(t.Context(), p, "printing", ""); err == nil || !strings.Contains(err.Error(), "flux-helper exited before it finished printing") {
		t.Error(err)
	}
}

// TestInputAndErrors checks that a job rejects input of another type, and the errors of jobs.
func TestInputAndErrors(t *testing.T) {
	t.Parallel()
	p := newProcess()
	if _, err := helper.Call[[]string, int](sum).Do(t.Context(), p, "adding", nil); err != nil {
		t.Errorf("input null: %v", err)
	}
	if _, err := helper.Call[[]string, int](sum).Do(t.Context(), p, "adding", []string{}); err == nil || !strings.Contains(err.Error(), "cannot unmarshal") {
		t.Errorf("input of another type: %v", err)
	}
	_, err := repeat.Do(t.Context(), p, "repeating", "")
	var failed *helper.Error
	if !errors.As(err, &failed) || *failed != (helper.Error{Step: "reading", Text: "no text"}) {
		t.Errorf("error of a step: %v", err)
	}
	if text, err := repeat.Do(t.Context(), p, "repeating", "seven ."); err != nil || len(text) != 7*(budget.HelperOutput/8) {
		t.Errorf("%d bytes, error %v", len(text), err)
	}
	if _, err := repeat.Do(t.Context(), p, "repeating", "nine ...."); err == nil || !strings.Contains(err.Error(), "the output of repeat is larger than 64 MiB") {
		t.Errorf("large output: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// client is a client of a pool that counts how often it is closed.
type client struct{ closed int }

func (c *client) Close() error {
	c.closed++
	return nil
}

func TestPool(t *testing.T) {
	t.Parallel()
	p := newPool()
	first := helper.Shared(p, "a", func() *client { return &client{} })
	if second := helper.Shared(p, "a", func() *client { return &client{} }); first != second {
		t.Error("a second client of the same name")
	}
	if other := helper.Shared(p, "b", func() *client { return &client{} }); first == other {
		t.Error("two names have one client")
	}
	if err := p.Close(); err != nil || first.closed != 1 {
		t.Errorf("closed %d times, error %v", first.closed, err)
	}
}
