package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	ownerName      = "kustomize.toolkit.fluxcd.io/name"
	ownerNamespace = "kustomize.toolkit.fluxcd.io/namespace"
)

// comparison compares one cluster of one repository.
type comparison struct {
	*tools
	repository
	clone, path string
	// rendered maps commits to renderings.
	rendered map[string]rendering

	commit                           string
	owners, objects, equal           int
	commits, changes, matchedChanges int
	differences                      []string
	// undetermined lists the commits for which flux diff exits with 2, with the reasons.
	undetermined []string
}

// rendering contains the objects of each Kustomization as JSON, by "NAMESPACE/NAME" of
// the Kustomization and "GROUP KIND NAMESPACE/NAME" of the object. The
// objects of a Kustomization with another source, or one that cannot be built, are nil.
type rendering struct {
	objects map[string]map[string]string
	failed  map[string]bool
	// prunes contains the Kustomizations that prune objects, and kept the objects that are not pruned, by "OWNER OBJECT".
	prunes, kept map[string]bool
}

func newRendering() rendering {
	return rendering{map[string]map[string]string{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
}

func (c *comparison) row() string {
	return fmt.Sprintf("| %s | %.8s | %s | %d | %d | %d | %d | %d | %d | %d |", c.name, c.commit, c.path, c.owners, c.objects, c.equal, c.commits, c.changes, c.matchedChanges, len(c.undetermined))
}

func (c *comparison) run(ctx context.Context, commits int) error {
	head, err := output(ctx, c.clone, "git", "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	c.commit = strings.TrimSpace(string(head))
	if err := c.compareBuild(ctx); err != nil {
		return err
	}
	history, err := output(ctx, c.clone, "git", "log", "--first-parent", "--format=%H", fmt.Sprintf("-%d", commits+1), c.commit)
	if err != nil {
		return err
	}
	list := strings.Fields(string(history))
	for i := range len(list) - 1 {
		if err := c.compareDiff(ctx, list[i+1], list[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *comparison) differ(format string, args ...any) {
	c.differences = append(c.differences, fmt.Sprintf(format, args...))
}

// compareBuild compares the objects of flux build at the commit.
func (c *comparison) compareBuild(ctx context.Context) error {
	want, err := c.render(ctx, c.commit)
	if err != nil {
		return err
	}
	got, err := c.build(ctx)
	if err != nil {
		return err
	}
	for owner, objects := range want.objects {
		if want.failed[owner] && len(got[owner]) > 0 {
			c.differ("%s: built only by flux", owner)
		}
		if objects == nil {
			continue
		}
		c.owners++
		c.objects += len(objects)
		for key, object := range objects {
			if got[owner][key] == object {
				c.equal++
			} else {
				c.differ("%s %s: (-want +flux)\n%s", owner, key, cmp.Diff(object, got[owner][key]))
			}
		}
		for key := range got[owner] {
			if _, ok := objects[key]; !ok {
				c.differ("%s %s: built only by flux", owner, key)
			}
		}
	}
	for owner := range got {
		if _, ok := want.objects[owner]; !ok {
			c.differ("%s: built only by flux", owner)
		}
	}
	return nil
}

// build returns the objects of Kustomizations in the output of flux build. It fails for Kustomizations with
// external sources, and prints the others.
func (c *comparison) build(ctx context.Context) (got map[string]map[string]string, err error) {
	tree, err := c.checkout(ctx, c.commit)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(filepath.Dir(tree))) }()
	root := filepath.Join(filepath.Dir(tree), "root.yaml")
	object := fmt.Sprintf(`{"apiVersion":"kustomize.toolkit.fluxcd.io/v1","kind":"Kustomization","metadata":{"name":"flux-system","namespace":"flux-system"},"spec":{"interval":"10m","prune":true,"path":"./%s","sourceRef":{"kind":"GitRepository","name":"flux-system"}}}`, c.path)
	if err := os.WriteFile(root, []byte(object), 0o600); err != nil {
		return nil, err
	}
	for _, args := range [][]string{{"init", "--quiet"}, {"remote", "add", "origin", c.url}} {
		if _, err := output(ctx, tree, "git", args...); err != nil {
			return nil, err
		}
	}
	out, err := output(ctx, tree, c.flux, "build", "kustomization", "flux-system", "-n", "flux-system", "--kustomization-file", root, "--path", "./"+c.path, "--recursive", "--dry-run", "-o", "json")
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || len(out) == 0) {
		return nil, err
	}
	var list unstructured.UnstructuredList
	if err := list.UnmarshalJSON(out); err != nil {
		return nil, fmt.Errorf("decoding the output of flux build: %w", err)
	}
	got = map[string]map[string]string{}
	for i := range list.Items {
		labels := list.Items[i].GetLabels()
		if labels[ownerName] == "" { // an object of a ResourceSet
			continue
		}
		owner := labels[ownerNamespace] + "/" + labels[ownerName]
		if got[owner] == nil {
			got[owner] = map[string]string{}
		}
		key, text, err := normal(&list.Items[i])
		if err != nil {
			return nil, err
		}
		got[owner][key] = text
	}
	return got, nil
}

// compareDiff compares the changes of flux diff between two commits.
func (c *comparison) compareDiff(ctx context.Context, base, head string) error {
	before, err := c.render(ctx, base)
	if err != nil {
		return err
	}
	after, err := c.render(ctx, head)
	if err != nil {
		return err
	}
	want := changed(before, after)
	got, err := c.diff(ctx, base, head)
	if err != nil {
		return err
	}
	c.commits++
	c.changes += len(want)
	for key, action := range want {
		if got[key] == action {
			c.matchedChanges++
		} else {
			c.differ("%.8s..%.8s %s: flux says %q, want %q", base, head, key, got[key], action)
		}
	}
	for key, action := range got {
		owner, _, _ := strings.Cut(key, " ")
		_, known := want[key]
		if !known && !skipped(before, after, owner) {
			c.differ("%.8s..%.8s %s: %q only by flux", base, head, key, action)
		}
	}
	return nil
}

// skipped reports whether a Kustomization has another source in both commits. flux must not compare one that the library
// cannot build.
func skipped(before, after rendering, owner string) bool {
	return before.objects[owner] == nil && after.objects[owner] == nil && !before.failed[owner] && !after.failed[owner]
}

// changed returns the actions by "OWNER OBJECT".
func changed(before, after rendering) map[string]string {
	actions := map[string]string{}
	owners := maps.Clone(before.objects)
	maps.Copy(owners, after.objects)
	for owner := range owners {
		if before.failed[owner] || after.failed[owner] {
			continue
		}
		was, is := before.objects[owner], after.objects[owner]
		for key, object := range is {
			if old, ok := was[key]; !ok {
				actions[owner+" "+key] = "created"
			} else if old != object {
				actions[owner+" "+key] = "changed"
			}
		}
		prunes := after.prunes[owner]
		if is == nil {
			prunes = before.prunes[owner]
		}
		for key := range was {
			if _, ok := is[key]; ok {
				continue
			}
			if actions[owner+" "+key] = "pruned"; !prunes || before.kept[owner+" "+key] {
				actions[owner+" "+key] = "skipped"
			}
		}
	}
	return actions
}

func (c *comparison) diff(ctx context.Context, base, head string) (map[string]string, error) {
	out, err := output(ctx, c.clone, c.flux, "diff", "--base", base, "--head", head, "--path", c.path, "--with-helm=false", "--ignore-field=", "-o", "json")
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || len(out) == 0) {
		return nil, err
	}
	var report struct {
		Kustomizations []struct {
			Owner       object `json:"owner"`
			NotCompared *struct {
				Reason   string `json:"reason"`
				Affected bool   `json:"affected"`
			} `json:"notCompared"`
			Changes []struct {
				Object object `json:"object"`
				Action string `json:"action"`
			} `json:"changes"`
		} `json:"kustomizations"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return nil, fmt.Errorf("decoding the output of flux diff: %w", err)
	}
	actions := map[string]string{}
	undetermined := fmt.Sprintf("%.8s..%.8s", base, head)
	for _, k := range report.Kustomizations {
		if k.Owner.Kind != "Kustomization" {
			continue
		}
		if k.NotCompared != nil && k.NotCompared.Affected {
			undetermined += fmt.Sprintf("; %s/%s: %s", k.Owner.Namespace, k.Owner.Name, k.NotCompared.Reason)
		}
		for _, change := range k.Changes {
			actions[k.Owner.Namespace+"/"+k.Owner.Name+" "+change.Object.key()] = change.Action
		}
	}
	if exit != nil && exit.ExitCode() == 2 {
		c.undetermined = append(c.undetermined, undetermined)
	}
	return actions, nil
}

// object is a reference in the report.
type object struct{ Group, Kind, Namespace, Name string }

func (o object) key() string {
	return o.Group + " " + o.Kind + " " + o.Namespace + "/" + o.Name
}

// checkout unpacks a commit into a new directory and returns it.
func (c *comparison) checkout(ctx context.Context, commit string) (string, error) {
	dir, err := os.MkdirTemp(c.work, "tree-")
	if err != nil {
		return "", err
	}
	tree := filepath.Join(dir, "tree")
	archive := filepath.Join(dir, "archive.tar")
	if err := os.Mkdir(tree, 0o700); err != nil {
		return "", err
	}
	if _, err := output(ctx, c.clone, "git", "archive", "--output", archive, commit); err != nil {
		return "", err
	}
	_, err = output(ctx, tree, "tar", "xf", archive)
	return tree, err
}

// render renders a commit with the library of kustomize-controller.
func (c *comparison) render(ctx context.Context, commit string) (r rendering, err error) {
	if r, ok := c.rendered[commit]; ok {
		return r, nil
	}
	tree, err := c.checkout(ctx, commit)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(filepath.Dir(tree))) }()
	args := []string{"-path", c.path, "-url", c.url, "-url", c.url + ".git", tree}
	out, err := output(ctx, "", c.tools.render, args...)
	if err != nil {
		return r, fmt.Errorf("at %.8s: %w", commit, err)
	}
	var owners []struct {
		Namespace, Name, Skipped, Failed string
		Prune                            bool
		Objects                          []*unstructured.Unstructured
	}
	if err := json.Unmarshal(out, &owners); err != nil {
		return r, err
	}
	r = newRendering()
	for _, o := range owners {
		owner := o.Namespace + "/" + o.Name
		r.objects[owner], r.prunes[owner] = nil, o.Prune
		if r.failed[owner] = o.Failed != ""; o.Skipped != "" || o.Failed != "" {
			continue
		}
		r.objects[owner] = map[string]string{}
		for _, object := range o.Objects {
			key, text, err := normal(object)
			if err != nil {
				return r, err
			}
			r.objects[owner][key] = text
			const prune, disabled = "kustomize.toolkit.fluxcd.io/prune", "disabled"
			r.kept[owner+" "+key] = object.GetLabels()[prune] == disabled || object.GetAnnotations()[prune] == disabled
		}
	}
	c.rendered[commit] = r
	return r, nil
}

// normal returns the key of an object, and the object as JSON without the fields that
// flux build adds or masks: the labels of the owner, and the values of Secrets.
func normal(o *unstructured.Unstructured) (key, text string, err error) {
	o = o.DeepCopy()
	labels := o.GetLabels()
	delete(labels, ownerName)
	delete(labels, ownerNamespace)
	if o.SetLabels(labels); len(labels) == 0 {
		unstructured.RemoveNestedField(o.Object, "metadata", "labels")
	}
	if o.GetKind() == "Secret" && o.GetAPIVersion() == "v1" {
		delete(o.Object, "sops")
		for _, field := range []string{"data", "stringData"} {
			if values, ok := o.Object[field].(map[string]any); ok {
				o.Object[field] = slices.Sorted(maps.Keys(values))
			}
		}
	}
	data, err := json.MarshalIndent(o.Object, "", " ")
	if err != nil {
		return "", "", err
	}
	kind := o.GroupVersionKind()
	return object{kind.Group, kind.Kind, o.GetNamespace(), o.GetName()}.key(), string(data), nil
}
