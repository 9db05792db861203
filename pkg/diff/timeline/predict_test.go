package timeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/diff/builds"
	"github.com/fluxkit/flux/pkg/diff/timeline"
	"github.com/fluxkit/flux/pkg/repository"
)

// revision has the definition of each owner, and what it applies.
type revision map[string][2]string

func parse(t *testing.T, text string) []build.Object {
	t.Helper()
	var all []build.Object
	for _, document := range strings.Split(text, "\n---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, build.Object{Unstructured: u})
	}
	return all
}

// owned returns one side of an owner, nil if it does not exist.
func owned(t *testing.T, r revision, name string) *repository.Rendering {
	t.Helper()
	of, ok := r[name]
	if !ok {
		return nil
	}
	return &repository.Rendering{Owner: parse(t, of[0])[0].Unstructured, Build: &build.Result{Objects: parse(t, of[1])}}
}

// predicted returns the timeline of a change as lines.
func predicted(t *testing.T, before, after revision) string {
	t.Helper()
	var all []builds.Pair
	for _, name := range []string{"root", "a", "b", "c", "web"} {
		d := builds.Pair{Before: owned(t, before, name), After: owned(t, after, name)}
		if d.Before != nil || d.After != nil {
			all = append(all, d)
		}
	}
	p := timeline.Predict(all, builds.Compare(all))
	var lines []string
	for _, e := range p.Entries {
		line := strings.Join(strings.Fields(e.String()), " ")
		if e.Uncertain {
			line += " ?"
		}
		lines = append(lines, line)
	}
	for _, b := range p.Blocked {
		lines = append(lines, "blocked "+b.String())
	}
	for _, text := range p.Unknown {
		lines = append(lines, "unknown "+text)
	}
	return strings.Join(lines, "\n")
}

func ks(name, more string) string {
	return fmt.Sprintf("{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: %s, namespace: f}, spec: {prune: true, path: ./%[1]s%s}}", name, more)
}

func cm(name, value string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: f}, data: {a: %s}}", name, value)
}

func deployment(image, app string, replicas int) string {
	return fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: f}, spec: {replicas: %d, selector: {matchLabels: {app: %s}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: %s}]}}}}", replicas, app, image)
}

func hr(values string) string {
	return "{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: web, namespace: f}, spec: {chart: {spec: {chart: web, sourceRef: {kind: HelmRepository, name: h}}}, values: {a: " + values + "}}}"
}

const afterA, afterB = ", dependsOn: [{name: a}]", ", dependsOn: [{name: b}]"

// TestPredict checks what is predicted of a change, and of similar ones.
func TestPredict(t *testing.T) {
	t.Parallel()
	of := func(kind, name string) string { return kind + "/f/" + name }
	moves := " (moves from Kustomization/f/a to Kustomization/f/b)"
	for name, c := range map[string]struct {
		before, after revision
		want          []string
	}{
		"nothing": {revision{"a": {ks("a", ""), cm("x", "1")}}, revision{"a": {ks("a", ""), cm("x", "1")}}, nil},
		"create, change and prune": {
			revision{"a": {ks("a", ""), cm("x", "1") + "\n---\n" + cm("w", "1")}}, revision{"a": {ks("a", ""), cm("x", "2") + "\n---\n" + cm("z", "1")}},
			[]string{"1 changed " + of("ConfigMap", "x"), "1 created " + of("ConfigMap", "z"), "1 deleted " + of("ConfigMap", "w")},
		},
		"in the order of dependencies": {
			revision{"a": {ks("a", afterB), cm("x", "1")}, "b": {ks("b", ", dependsOn: [{name: c}]"), cm("w", "1")}, "c": {ks("c", ""), cm("z", "1")}},
			revision{"a": {ks("a", afterB), cm("x", "2")}, "b": {ks("b", ", dependsOn: [{name: c}]"), cm("w", "1")}, "c": {ks("c", ""), cm("z", "2")}},
			[]string{"1 changed " + of("ConfigMap", "z"), "2 changed " + of("ConfigMap", "x")},
		},
		"circular dependencies": {
			revision{"a": {ks("a", afterB), cm("x", "1")}, "b": {ks("b", afterA), cm("w", "1")}}, revision{"a": {ks("a", afterB), cm("x", "2")}, "b": {ks("b", afterA), cm("w", "1")}},
			[]string{"blocked Kustomization/f/a: Kustomization/f/b is blocked"},
		},
		"image":    {revision{"a": {ks("a", ""), deployment("i:1", "x", 1)}}, revision{"a": {ks("a", ""), deployment("i:2", "x", 1)}}, []string{"1 restarted Deployment/f/d: its pod template changes"}},
		"replicas": {revision{"a": {ks("a", ""), deployment("i:1", "x", 1)}}, revision{"a": {ks("a", ""), deployment("i:1", "x", 2)}}, []string{"1 changed Deployment/f/d"}},
		"selector": {
			revision{"a": {ks("a", ""), deployment("i:1", "x", 1) + "\n---\n" + cm("x", "1")}, "b": {ks("b", afterA), cm("w", "1")}, "c": {ks("c", ""), cm("z", "1")}},
			revision{"a": {ks("a", ""), deployment("i:1", "y", 1) + "\n---\n" + cm("x", "2")}, "b": {ks("b", afterA), cm("w", "2")}, "c": {ks("c", ""), cm("z", "2")}},
			[]string{"1 failed Kustomization/f/a: field is immutable: spec.selector of Deployment/f/d", "1 changed " + of("ConfigMap", "z"), "blocked Kustomization/f/b: Kustomization/f/a fails"},
		},
		"selector with force": {
			revision{"a": {ks("a", ", force: true"), deployment("i:1", "x", 1)}}, revision{"a": {ks("a", ", force: true"), deployment("i:1", "y", 1)}},
			[]string{"1 recreated Deployment/f/d: it did not exist in between"},
		},
		"pruned before it is applied": {
			revision{"a": {ks("a", ""), cm("x", "1")}, "b": {ks("b", afterA), cm("w", "1")}}, revision{"a": {ks("a", ""), ""}, "b": {ks("b", afterA), cm("w", "1") + "\n---\n" + cm("x", "1")}},
			[]string{"1 recreated " + of("ConfigMap", "x") + ": it did not exist in between" + moves},
		},
		"applied before it is pruned": {
			revision{"a": {ks("a", afterB), cm("x", "1")}, "b": {ks("b", ""), cm("w", "1")}}, revision{"a": {ks("a", afterB), ""}, "b": {ks("b", ""), cm("w", "1") + "\n---\n" + cm("x", "1")}},
			[]string{"1 changed " + of("ConfigMap", "x") + moves},
		},
		"pruned or applied first": {
			revision{"a": {ks("a", ""), cm("x", "1")}, "b": {ks("b", ""), cm("w", "1")}}, revision{"a": {ks("a", ""), ""}, "b": {ks("b", ""), cm("w", "1") + "\n---\n" + cm("x", "1")}},
			[]string{"1 recreated " + of("ConfigMap", "x") + ": it is recreated if Kustomization/f/a is reconciled before Kustomization/f/b, which depends on timing" + moves + " ?"},
		},
		"not pruned": {
			revision{"a": {strings.Replace(ks("a", ""), "true", "false", 1), cm("x", "1")}, "b": {ks("b", ""), cm("w", "1")}},
			revision{"a": {strings.Replace(ks("a", ""), "true", "false", 1), ""}, "b": {ks("b", ""), cm("w", "1") + "\n---\n" + cm("x", "1")}},
			[]string{"1 changed " + of("ConfigMap", "x") + moves},
		},
		"not pruned by a failing owner": {
			revision{"a": {ks("a", ""), deployment("i:1", "x", 1) + "\n---\n" + cm("x", "1")}, "b": {ks("b", ""), cm("w", "1")}},
			revision{"a": {ks("a", ""), deployment("i:1", "y", 1)}, "b": {ks("b", ""), cm("w", "1") + "\n---\n" + cm("x", "1")}},
			[]string{"1 failed Kustomization/f/a: field is immutable: spec.selector of Deployment/f/d", "1 changed " + of("ConfigMap", "x") + moves},
		},
		"applied by two": {
			revision{"a": {ks("a", ""), cm("x", "1")}, "b": {ks("b", afterA), cm("w", "1")}}, revision{"a": {ks("a", ""), cm("x", "1")}, "b": {ks("b", afterA), cm("w", "1") + "\n---\n" + cm("x", "2")}},
			[]string{"1 changed " + of("ConfigMap", "x") + ": both apply it and revert each other's changes" + moves},
		},
		"suspended": {
			revision{"a": {ks("a", ", suspend: true"), cm("x", "1")}}, revision{"a": {ks("a", ", suspend: true"), cm("x", "2")}},
			[]string{"blocked Kustomization/f/a: it is suspended"},
		},
		"defined by another": {
			revision{"root": {ks("root", ""), ks("a", "")}, "a": {ks("a", ""), cm("x", "1")}}, revision{"root": {ks("root", ""), ks("a", ", targetNamespace: g")}, "a": {ks("a", ", targetNamespace: g"), cm("x", "2")}},
			[]string{"1 changed Kustomization/f/a", "2 changed " + of("ConfigMap", "x")},
		},
		"values": {
			revision{"a": {ks("a", ", wait: true"), hr("1")}, "b": {ks("b", afterA), cm("w", "1")}, "web": {hr("1"), deployment("i:1", "x", 1)}},
			revision{"a": {ks("a", ", wait: true"), hr("2")}, "b": {ks("b", afterA), cm("w", "2")}, "web": {hr("2"), deployment("i:1", "x", 2)}},
			[]string{"1 changed HelmRelease/f/web", "2 released HelmRelease/f/web: Helm upgrade", "2 changed Deployment/f/d", "3 changed " + of("ConfigMap", "w")},
		},
		"values that no object has": {
			revision{"a": {ks("a", ""), hr("1")}, "web": {hr("1"), cm("w", "1")}}, revision{"a": {ks("a", ""), hr("2")}, "web": {hr("2"), cm("w", "1")}},
			[]string{"1 changed HelmRelease/f/web", "2 released HelmRelease/f/web: Helm upgrade"},
		},
		"a label of the release": {
			revision{"a": {ks("a", ""), hr("1")}, "web": {hr("1"), cm("w", "1")}}, revision{"a": {ks("a", ""), strings.Replace(hr("1"), "name: web", "labels: {l: a}, name: web", 1)}, "web": {strings.Replace(hr("1"), "name: web", "labels: {l: a}, name: web", 1), cm("w", "1")}},
			[]string{"1 changed HelmRelease/f/web"},
		},
		"release with an immutable field": {
			revision{"a": {ks("a", ""), hr("1")}, "web": {hr("1"), deployment("i:1", "x", 1)}}, revision{"a": {ks("a", ""), hr("2")}, "web": {hr("2"), deployment("i:1", "y", 1)}},
			[]string{"1 changed HelmRelease/f/web", "2 released HelmRelease/f/web: Helm upgrade", "2 failed HelmRelease/f/web: field is immutable: spec.selector of Deployment/f/d", "unknown HelmRelease/f/web: the objects that Helm changes before it fails, and the remediation"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(strings.Join(c.want, "\n"), predicted(t, c.before, c.after)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}
