package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-git/go-git/v5"
	gitobject "github.com/go-git/go-git/v5/plumbing/object"
)

// fleetSize is the number of Kustomizations in the repository; one of them changes.
const fleetSize = 200

// base measures the diff of a repository of many Kustomizations, one of which
// differs between two revisions, against two builds of the whole repository.
func (b *bench) base(ctx context.Context) (err error) {
	home, err := os.MkdirTemp("", "flux-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	if err := fleet(home); err != nil {
		return fmt.Errorf("creating the repository: %w", err)
	}
	in := b.with("HOME="+home, "KUBECONFIG=")
	in.dir = home
	differs := *in
	differs.exit = 1
	const path = "clusters/production"
	var some, all []sample
	for i := range b.runs + 1 {
		s, err := differs.run(ctx, "flux", "diff", "--base", "HEAD", "--path", path, "--progress-bar=false")
		if err != nil {
			return err
		}
		once, err := in.run(ctx, "flux", "build", "kustomization", "flux-system", "--path", path, "--recursive", "--dry-run")
		if err != nil {
			return err
		}
		if i > 0 { // the first round warms the caches
			some, all = append(some, s), append(all, once)
		}
	}
	m, twice := medians(some), medians(all)
	twice.Wall, twice.CPU = 2*twice.Wall, 2*twice.CPU
	fmt.Printf("flux diff --base, where one of %d Kustomizations differs, against building all of them twice\n", fleetSize)
	fmt.Printf("  %-46s %10s %10s %10s\n", "", "wall", "cpu", "memory")
	for _, row := range []struct {
		name string
		s    sample
	}{{"flux diff --base", m}, {"flux build --recursive, twice", twice}} {
		fmt.Printf("  %-46s %8.1fms %8.1fms %7.1fMiB\n", row.name, ms(row.s.Wall), ms(row.s.CPU), float64(row.s.Memory)/1024)
	}
	fmt.Printf("  %-46s %10.2f %10.2f %10.2f %s\n\n", "ratio", ratio(m.Wall, twice.Wall), ratio(m.CPU, twice.CPU),
		float64(m.Memory)/float64(twice.Memory), target{}.judge(ratio(m.Wall, twice.Wall), 0.1))
	return nil
}

// fleet creates a repository with an uncommitted change in one file.
func fleet(root string) error {
	files := map[string]string{"clusters/production/flux-system.yaml": fleetKustomization("flux-system", "clusters/production")}
	for i := range fleetSize {
		name := fmt.Sprintf("app-%03d", i)
		files["clusters/production/"+name+".yaml"] = fleetKustomization(name, "apps/"+name)
		files["apps/"+name+"/kustomization.yaml"] = "namespace: " + name + "\nresources: [deployment.yaml, config.yaml]\nimages: [{name: web, newTag: \"2\"}]\n"
		files["apps/"+name+"/config.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\ndata: {of: " + name + "}\n"
		files["apps/"+name+"/deployment.yaml"] = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}
`
	}
	for name, text := range files {
		if err := writeFile(root, name, text); err != nil {
			return err
		}
	}
	repository, err := git.PlainInit(root, false)
	if err != nil {
		return err
	}
	work, err := repository.Worktree()
	if err != nil {
		return err
	}
	if err := work.AddWithOptions(&git.AddOptions{All: true}); err != nil {
		return err
	}
	who := &gitobject.Signature{Name: "bench", Email: "bench@example.com", When: time.Unix(1700000000, 0)}
	if _, err := work.Commit("all", &git.CommitOptions{Author: who}); err != nil {
		return err
	}
	return writeFile(root, "apps/app-100/config.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\ndata: {of: another}\n")
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
