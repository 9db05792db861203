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
		if err := helper.Serve(context.Background(), jobs(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	os.Exit(m.Run())
}

func jobs() map[string]helper.Job {
	return map[string]helper.Job{
		"sum": func(ctx context.Context, input json.RawMessage, ask helper.Ask) (any, error) {
			var count, sum int
			if err := json.Unmarshal(input, &count); err != nil {
				return nil, err
			}
			for i := range count {
				var n int
				if err := ask(ctx, i, &n); err != nil {
					return nil, fmt.Errorf("number %d: %w", i, err)
				}
				sum += n
			}
			return sum, nil
		},
		"garbage": func(context.Context, json.RawMessage, helper.Ask) (any, error) {
			fmt.Println("not JSON")
			return nil, nil
		},
	}
}

func newProcess() *helper.Process {
	return &helper.Process{
		Find: os.Executable, Arguments: []string{"jobs"}, Report: func(line string) { fmt.Fprintln(os.Stderr, line) },
		Environment: func(context.Context) ([]string, error) { return []string{}, nil },
	}
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

func TestQuestions(t *testing.T) {
	t.Parallel()
	p := newProcess()
	var asked []string
	square := func(question json.RawMessage) (any, error) {
		var i int
		err := json.Unmarshal(question, &i)
		asked = append(asked, string(question))
		if i == 4 {
			return nil, errors.New("no squares of 4")
		}
		return i * i, err
	}
	var sum int
	if err := p.Do(t.Context(), helper.Call{Job: "sum", Title: "adding", Input: 4, Answer: square}, &sum); err != nil || sum != 0+1+4+9 {
		t.Errorf("sum %d, %v", sum, err)
	}
	err := p.Do(t.Context(), helper.Call{Job: "sum", Title: "adding", Input: 9, Answer: square}, &sum)
	if err == nil || err.Error() != "number 4: no squares of 4" {
		t.Errorf("error of an answer: %v", err)
	}
	if got := strings.Join(asked, " "); got != "0 1 2 3 0 1 2 3 4" {
		t.Errorf("questions %s", got)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestUnknownJob(t *testing.T) {
	t.Parallel()
	p := newProcess()
	err := p.Do(t.Context(), helper.Call{Job: "later", Title: "a job of the next version"}, nil)
	if err == nil || !strings.Contains(err.Error(), `flux-helper does not run the job "later": install flux and flux-helper of the same version`) {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestMalformedOutput(t *testing.T) {
	t.Parallel()
	p := newProcess()
	if err := p.Do(t.Context(), helper.Call{Job: "garbage", Title: "printing"}, nil); err == nil || !strings.Contains(err.Error(), "flux-helper exited before it finished printing") {
		t.Error(err)
	}
}
