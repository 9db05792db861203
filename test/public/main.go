// Command public compares flux with the library of kustomize-controller on clones
// of public repositories, and prints the result as a Markdown table:
//
//	go run ./test/public -commits 30 [-clone] DIRECTORY [NAME=PATH[,PATH]…]
//
// DIRECTORY contains the clones, with the names in the table of repositories, or with the
// given names and directories of clusters. With -clone, missing repositories of the table
// are cloned; otherwise, they are listed and the run fails.
// The objects of flux build and the changes that flux diff --base finds in each of the
// last commits must be equal to the output of the renderer in test/outside/render.
// Charts are not rendered, because they are stored on other hosts. The reasons for an
// undetermined result of flux diff are printed, and are no differences.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
)

// repository is a public repository and the directories of its clusters.
type repository struct {
	name  string
	url   string
	paths []string
}

func repositories() []repository {
	fluxcd := func(name string, paths ...string) repository {
		return repository{name, "https://github.com/fluxcd/" + name, paths}
	}
	return []repository{
		fluxcd("flux2-kustomize-helm-example", "clusters/staging", "clusters/production"),
		fluxcd("flux2-monitoring-example", "clusters/test"),
		fluxcd("flux2-multi-tenancy", "clusters/staging", "clusters/production"),
		fluxcd("flux2-hub-spoke-example", "hub"),
		{"home-ops", "https://github.com/onedr0p/home-ops", []string{"kubernetes/flux/cluster"}},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "✗", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	commits := flag.Int("commits", 10, "number of commits of each cluster whose changes are compared")
	only := flag.String("only", "", "name of the only repository to compare")
	fetch := flag.Bool("clone", false, "clone the repositories that are missing in DIRECTORY")
	flag.Parse()
	if flag.NArg() < 1 {
		return errors.New("usage: go run ./test/public [-commits N] [-only NAME] [-clone] DIRECTORY [NAME=PATH[,PATH]…]")
	}
	compared, err := selected(ctx, flag.Args())
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "flux-public-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	tools := &tools{work: work, flux: filepath.Join(work, "flux"), render: filepath.Join(work, "render")}
	if err := tools.build(ctx); err != nil {
		return err
	}
	fmt.Println("| repository | commit | directory | Kustomizations | objects | equal | commits | changes | equal | undetermined |")
	fmt.Println("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	differ := false
	for _, r := range compared {
		if *only != "" && r.name != *only {
			continue
		}
		clone := filepath.Join(flag.Arg(0), r.name)
		if _, err := os.Stat(clone); err != nil && *fetch {
			if _, err := output(ctx, "", "git", "clone", "--quiet", r.url, clone); err != nil {
				return err
			}
		}
		if _, err := os.Stat(clone); err != nil {
			fmt.Fprintf(os.Stderr, "✗ %s is missing: git clone %s %s\n", r.name, r.url, clone)
			differ = true
			continue
		}
		for _, path := range r.paths {
			c := &comparison{tools: tools, clone: clone, repository: r, path: path, rendered: map[string]rendering{}}
			if err := c.run(ctx, *commits); err != nil {
				return fmt.Errorf("%s %s: %w", r.name, path, err)
			}
			fmt.Println(c.row())
			for _, d := range c.differences {
				fmt.Fprintln(os.Stderr, "✗", r.name, path, d)
			}
			for _, u := range c.undetermined {
				fmt.Fprintln(os.Stderr, "-", r.name, path, u)
			}
			differ = differ || len(c.differences) > 0
		}
	}
	if differ {
		return errors.New("flux and kustomize-controller's library differ, or repositories are missing")
	}
	return nil
}

// selected returns the repositories of the arguments after the directory, or those of the table.
func selected(ctx context.Context, args []string) ([]repository, error) {
	if len(args) == 1 {
		return repositories(), nil
	}
	var all []repository
	for _, arg := range args[1:] {
		name, paths, _ := strings.Cut(arg, "=")
		url, err := output(ctx, filepath.Join(args[0], name), "git", "remote", "get-url", "origin")
		if err != nil {
			return nil, err
		}
		all = append(all, repository{name, strings.TrimSpace(string(url)), strings.Split(paths, ",")})
	}
	return all, nil
}

// tools lists the two programs that are compared.
type tools struct{ work, flux, render string }

func (t *tools) build(ctx context.Context) error {
	for _, args := range [][]string{
		{"build", "-o", t.work + "/", "./cmd/flux", "./cmd/flux-helper"},
		{"build", "-C", "test/outside", "-o", t.render, "./render"},
	} {
		if _, err := output(ctx, "", "go", args...); err != nil {
			return err
		}
	}
	return nil
}

// output runs a command and returns its standard output. Errors contain its standard error.
func output(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, stderr.String())
	}
	return out, nil
}
