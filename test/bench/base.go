package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5"
	gitobject "github.com/go-git/go-git/v5/plumbing/object"
)

// fleetSize is the number of Kustomizations in the repository; one of them changes.
const fleetSize = 200

// base measures the diff of a repository with many Kustomizations, one of which differs
// between two revisions, and compares it with two builds of the whole repository.
func (b *bench) base(ctx context.Context) (err error) {
	in, remove, err := newFleet(b, fleetSize, 2)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	differs := *in
	differs.exit = 1
	var some, all []sample
	for i := range b.runs + 1 {
		s, err := differs.run(ctx, "flux", "diff", "--base", "HEAD", "--path", fleetPath, "--progress-bar=false")
		if err != nil {
			return err
		}
		once, err := in.run(ctx, "flux", "build", "kustomization", "flux-system", "--path", fleetPath, "--recursive", "--dry-run")
		if err != nil {
			return err
		}
		if i > 0 { // the first round warms the caches
			some, all = append(some, s), append(all, once)
		}
	}
	m, twice := medians(some), medians(all)
	twice.Wall, twice.CPU = 2*twice.Wall, 2*twice.CPU
	fmt.Printf("flux diff --base with one changed Kustomization of %d, compared with building all of them twice\n", fleetSize)
	fmt.Printf("  %-46s %10s %10s %10s\n", "", "wall", "cpu", "memory")
	for _, row := range []struct {
		name string
		s    sample
	}{{"flux diff --base", m}, {"flux build --recursive, twice", twice}} {
		fmt.Printf("  %-46s %8.1fms %8.1fms %7.1fMiB\n", row.name, ms(row.s.Wall), ms(row.s.CPU), float64(row.s.Memory)/1024)
	}
	fmt.Printf("  %-46s %10.2f %10.2f %10.2f %s\n\n", "ratio", ratio(m.Wall, twice.Wall), ratio(m.CPU, twice.CPU),
		float64(m.Memory)/float64(twice.Memory), target{}.judge(ratio(m.Wall, twice.Wall), 0.1))
	if b.large {
		return b.baseGrowth(ctx)
	}
	return nil
}

// baseGrowth measures diffs of one and of all Kustomizations in repositories of several
// sizes.
func (b *bench) baseGrowth(ctx context.Context) error {
	const objects = 10
	fmt.Printf("Scaling of flux diff --base with Kustomizations of %d objects (target: constant cost per Kustomization)\n", objects)
	fmt.Printf("  %-16s %-8s %10s %10s %10s per Kustomization\n", "Kustomizations", "changed", "wall", "cpu", "memory")
	for _, size := range []int{30, 300, 3000} {
		if err := b.baseOf(ctx, size, objects); err != nil {
			return err
		}
	}
	fmt.Println()
	return nil
}

func (b *bench) baseOf(ctx context.Context, size, objects int) (err error) {
	in, remove, err := newFleet(b, size, objects)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	in.exit = 1
	for _, row := range []struct {
		changed string
		args    []string
	}{{"one", []string{"--base", "HEAD"}}, {"all", []string{"--base", "HEAD~1", "--head", "HEAD"}}} {
		var samples []sample
		for range 3 {
			s, err := in.run(ctx, "flux", append([]string{"diff", "--path", fleetPath, "--progress-bar=false", "-o", "brief"}, row.args...)...)
			if err != nil {
				return err
			}
			samples = append(samples, s)
		}
		m := medians(samples)
		fmt.Printf("  %-16d %-8s %8.1fms %8.1fms %7.1fMiB %10.2fms %8.1fKiB\n", size, row.changed, ms(m.Wall), ms(m.CPU), float64(m.Memory)/1024,
			ms(m.Wall)/float64(size), float64(m.Memory)/float64(size))
	}
	return nil
}

// fleetPath is the cluster's directory in the repository.
const fleetPath = "clusters/production"

// newFleet creates a repository of Kustomizations and returns a bench in it. The last
// commit changes all of them, the work tree only one.
func newFleet(b *bench, size, objects int) (in *bench, remove func() error, err error) {
	home, err := os.MkdirTemp("", "flux-bench-")
	if err != nil {
		return nil, nil, err
	}
	remove = func() error { return os.RemoveAll(home) }
	if err := fleetFiles(home, size, objects); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("creating the repository: %w", err), remove())
	}
	in = b.with("HOME="+home, "KUBECONFIG=")
	in.dir = home
	return in, remove, nil
}

func fleetFiles(root string, size, objects int) error {
	files := map[string]string{fleetPath + "/flux-system.yaml": fleetKustomization("flux-system", fleetPath)}
	config := func(of string) string {
		var text strings.Builder
		for i := range objects - 1 {
			fmt.Fprintf(&text, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: config-%d}\ndata: {of: %s}\n", i, of)
		}
		return text.String()
	}
	change := map[string]string{}
	for i := range size {
		name := fmt.Sprintf("app-%03d", i)
		files[fleetPath+"/"+name+".yaml"] = fleetKustomization(name, "apps/"+name)
		files["apps/"+name+"/kustomization.yaml"] = "namespace: " + name + "\nresources: [deployment.yaml, config.yaml]\nimages: [{name: web, newTag: \"2\"}]\n"
		files["apps/"+name+"/config.yaml"], change["apps/"+name+"/config.yaml"] = config("old"), config(name)
		files["apps/"+name+"/deployment.yaml"] = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}
`
	}
	repository, err := git.PlainInit(root, false)
	if err != nil {
		return err
	}
	for _, commit := range []map[string]string{files, change} {
		if err := commitFiles(repository, root, commit); err != nil {
			return err
		}
	}
	return writeFile(root, "apps/app-001/config.yaml", config("another"))
}

func commitFiles(repository *git.Repository, root string, files map[string]string) error {
	for name, text := range files {
		if err := writeFile(root, name, text); err != nil {
			return err
		}
	}
	work, err := repository.Worktree()
	if err != nil {
		return err
	}
	if err := work.AddWithOptions(&git.AddOptions{All: true}); err != nil {
		return err
	}
	who := &gitobject.Signature{Name: "bench", Email: "bench@example.com", When: time.Unix(1700000000, 0)}
	_, err = work.Commit("change", &git.CommitOptions{Author: who})
	return err
}

func fleetKustomization(name, path string) string {
	return fmt.Sprintf(`apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %s, namespace: flux-system}
spec: {interval: 10m, prune: true, path: ./%s, sourceRef: {kind: GitRepository, name: flux-system}}
`, name, path)
}

func writeFile(root, name, text string) error {
	file := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o600)
}
