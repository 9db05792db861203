// Command stress runs a tier of tests several times, on fresh clones of HEAD and on busy processors, and
// reports how often each test failed and how long it took:
//
//	go run ./tools/stress [-runs N] [-load N] TARGET
//
// TARGET is a target of the Makefile: test, e2e or nightly. Run it twice, without and with -load, to
// prove that a change makes no test flaky. The exit code is 1 if a run failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "✗", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	runs := flag.Int("runs", 3, "number of runs, each on a fresh clone of HEAD")
	load := flag.Int("load", 0, "number of busy loops that run at the same time, for example the number of processors")
	slowest := flag.Int("slowest", 20, "number of the slowest tests to list")
	flag.Parse()
	if flag.NArg() != 1 || *runs < 1 {
		return errors.New("usage: go run ./tools/stress [-runs N] [-load N] [-slowest N] TARGET")
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	defer spin(*load)()
	r := results{}
	failed := 0
	for i := range *runs {
		began := time.Now()
		err := once(ctx, root, flag.Arg(0), &r)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		state := "passed"
		if err != nil {
			state = "FAILED: " + err.Error()
			failed++
		}
		fmt.Printf("run %d of make %s with %d busy loops took %s: %s\n", i+1, flag.Arg(0), *load, time.Since(began).Round(time.Second), state)
	}
	fmt.Print(r.report(*slowest))
	if failed > 0 {
		return fmt.Errorf("%d of %d runs failed", failed, *runs)
	}
	return nil
}

// once clones HEAD, runs a target in the clone and adds its results. The complete output of a run that
// fails is kept in a file.
func once(ctx context.Context, root, target string, r *results) (err error) {
	work, err := os.MkdirTemp("", "flux-stress-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	clone := filepath.Join(work, "flux")
	if out, err := exec.CommandContext(ctx, "git", "clone", "--quiet", root, clone).CombinedOutput(); err != nil {
		return fmt.Errorf("git clone: %w: %s", err, out)
	}
	log, err := os.CreateTemp("", "flux-stress-*.log")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "make", target, "TESTFLAGS=-json")
	cmd.Dir = clone
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 2 * time.Minute // for sandboxes that tests stop
	failed := cmd.Run()
	if _, err := log.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := errors.Join(r.read(log), log.Close()); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("%w: see %s", failed, log.Name())
	}
	return os.Remove(log.Name())
}

// spin keeps processors busy until the returned function is called.
func spin(loops int) (stop func()) {
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + loops)
	var stopped atomic.Bool
	for range loops {
		go func() {
			for turns := 0; !stopped.Load(); { // runtime.Gosched would wake more threads than loops
				turns++
			}
		}()
	}
	return func() { stopped.Store(true) }
}
