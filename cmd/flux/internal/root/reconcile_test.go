package root

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/reconcile"
	"github.com/fluxkit/flux/test/support/fakeapi"
)

const (
	kustomizationPath = "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations"
	eventPath         = "/api/v1/namespaces/flux-system/events"
)

// steered is a fake API server with a function in place of kustomize-controller,
// which is called with each patched Kustomization and the number of its patches.
type steered struct {
	*fakeapi.Server
	mu      sync.Mutex
	patches map[string]int
}

func steer(t *testing.T, names []string, answer func(s *steered, o controllers.Object, patch int)) *steered {
	t.Helper()
	s := &steered{Server: fakeapi.New(t), patches: map[string]int{}}
	s.Serve(eventPath, "/apis/apps/v1/namespaces/flux-system/deployments")
	for _, k := range controllers.Kinds { // for the diagnosis of a failure
		s.Serve(fleetPath(k))
	}
	for _, name := range names {
		s.Put(kustomizationPath, controllers.Object{
			"metadata": map[string]any{"name": name, "namespace": "flux-system", "generation": 1},
			"spec":     map[string]any{},
		})
		s.Handle("PATCH "+kustomizationPath+"/"+name, func(w http.ResponseWriter, r *http.Request) {
			var change controllers.Object
			if err := json.NewDecoder(r.Body).Decode(&change); err != nil {
				t.Error(err)
			}
			o := merged(s.Object(kustomizationPath, name), change)
			s.Put(kustomizationPath, o)
			s.mu.Lock()
			s.patches[name]++
			patch := s.patches[name]
			s.mu.Unlock()
			body, err := json.Marshal(s.Object(kustomizationPath, name))
			if err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Type", "application/json")
			if _, err := w.Write(body); err != nil {
				t.Log(err)
			}
			answer(s, o, patch)
		})
	}
	return s
}

// fleetPath returns the path that lists a kind in all namespaces.
func fleetPath(k controllers.Kind) string { return "/apis/" + k.APIVersion() + "/" + k.Resource }

// merged applies a JSON merge patch.
func merged(o, change controllers.Object) controllers.Object {
	result := controllers.Object{}
	for key, value := range o {
		result[key] = value
	}
	for key, value := range change {
		m, isMap := value.(map[string]any)
		old, wasMap := result[key].(map[string]any)
		switch {
		case value == nil:
			delete(result, key)
		case isMap && wasMap:
			result[key] = merged(old, m)
		default:
			result[key] = value
		}
	}
	return result
}

// say sets the Ready condition and marks the requested reconciliation as handled.
func (s *steered) say(name, status, reason, message string) {
	o := s.Object(kustomizationPath, name)
	s.Put(kustomizationPath, merged(o, controllers.Object{"status": map[string]any{
		"lastHandledReconcileAt": controllers.Annotation(o, controllers.RequestAnnotation), "observedGeneration": 1,
		"conditions": []any{map[string]any{"type": "Ready", "status": status, "reason": reason, "message": message}},
	}}))
}

// allAsked reports whether that many objects have been patched.
func (s *steered) allAsked(objects int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.patches) == objects
}

// count returns the number of requests with a prefix.
func (s *steered) count(prefix string) int {
	n := 0
	for _, r := range s.Requests() {
		if strings.HasPrefix(r, prefix) {
			n++
		}
	}
	return n
}

func withDependency(s *steered, name, on string) {
	o := s.Object(kustomizationPath, name)
	s.Put(kustomizationPath, merged(o, controllers.Object{"spec": map[string]any{"dependsOn": []any{map[string]any{"name": on}}}}))
}

// TestReconcileRequestsAgainWhenTheDependencyIsReady reconciles an object and its
// dependency together: DependencyNotReady is not a failure, and the object is
// requested again when the dependency is ready.
func TestReconcileRequestsAgainWhenTheDependencyIsReady(t *testing.T) {
	t.Parallel()
	var first sync.Once
	s := steer(t, []string{"apps", "infra"}, func(s *steered, _ controllers.Object, patch int) {
		if patch == 2 {
			s.say("apps", "True", "ReconciliationSucceeded", "applied")
		}
		if patch == 1 && s.allAsked(2) {
			first.Do(func() {
				s.say("apps", "False", "DependencyNotReady", "dependency 'flux-system/infra' is not ready")
				s.say("infra", "True", "ReconciliationSucceeded", "applied")
			})
		}
	})
	withDependency(s, "apps", "infra")
	got := flux(t.Context(), s.Server, "reconcile", "ks", "apps", "infra", "--timeout", "30s")
	if got.Code != 0 || !strings.Contains(got.Err, "✔ Kustomization flux-system/apps: applied revision") {
		t.Errorf("%+v", got)
	}
	if s.patches["apps"] != 2 || s.patches["infra"] != 1 {
		t.Errorf("patches: %v", s.patches)
	}
}

// TestReconcileFailsWithTheDependency checks that an object fails without a
// timeout if its dependency fails.
func TestReconcileFailsWithTheDependency(t *testing.T) {
	t.Parallel()
	var first sync.Once
	s := steer(t, []string{"apps", "infra"}, func(s *steered, _ controllers.Object, _ int) {
		if s.allAsked(2) {
			first.Do(func() {
				s.say("apps", "False", "DependencyNotReady", "dependency 'flux-system/infra' is not ready")
				s.say("infra", "False", "BuildFailed", "no such folder")
			})
		}
	})
	withDependency(s, "apps", "infra")
	got := flux(t.Context(), s.Server, "reconcile", "ks", "apps", "infra", "--timeout", "30s")
	for _, want := range []string{
		"✗ Kustomization flux-system/infra is not ready: BuildFailed: no such folder",
		"✗ Kustomization flux-system/apps is not ready: its dependency Kustomization flux-system/infra is not ready",
	} {
		if got.Code != 1 || !strings.Contains(got.Err, want) {
			t.Errorf("%q is not in %+v", want, got)
		}
	}
}

// TestReconcileDoesNotWaitForOtherDependencies checks that DependencyNotReady is a
// failure if the command does not reconcile the dependency.
func TestReconcileDoesNotWaitForOtherDependencies(t *testing.T) {
	t.Parallel()
	s := steer(t, []string{"apps", "infra"}, func(s *steered, o controllers.Object, _ int) {
		s.say(controllers.Name(o), "False", "DependencyNotReady", "dependency 'flux-system/other' is not ready")
	})
	withDependency(s, "apps", "other")
	got := flux(t.Context(), s.Server, "reconcile", "ks", "apps", "--timeout", "30s")
	if got.Code != 1 || !strings.Contains(got.Err, "DependencyNotReady: dependency 'flux-system/other'") || s.patches["apps"] != 1 {
		t.Errorf("%+v %v", got, s.patches)
	}
}

// TestReconcileSharesAWatch checks that many named objects share one watch.
func TestReconcileSharesAWatch(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range reconcile.ShareFrom {
		names = append(names, fmt.Sprintf("app-%02d", i))
	}
	s := steer(t, names, func(s *steered, o controllers.Object, _ int) {
		s.say(controllers.Name(o), "True", "ReconciliationSucceeded", "applied")
	})
	got := flux(t.Context(), s.Server, append([]string{"reconcile", "ks", "--timeout", "30s"}, names...)...)
	if got.Code != 0 || strings.Count(got.Err, "applied revision") != reconcile.ShareFrom {
		t.Errorf("%+v", got)
	}
	if patches, lists := s.count("PATCH "), s.count("GET "+kustomizationPath); patches != reconcile.ShareFrom || lists > 2 {
		t.Errorf("%d patches, %d lists and watches: %v", patches, lists, s.Requests())
	}
}

// TestReconcileOnceSuspendsAgainOnInterrupt checks that reconcile --once suspends
// the object again after Ctrl-C.
func TestReconcileOnceSuspendsAgainOnInterrupt(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	s := steer(t, []string{"app"}, func(_ *steered, _ controllers.Object, patch int) {
		if patch == 1 {
			interrupt()
		}
	})
	s.Put(kustomizationPath, merged(s.Object(kustomizationPath, "app"), controllers.Object{"spec": map[string]any{"suspend": true}}))
	var out, err bytes.Buffer
	a := app.New(strings.NewReader(""), &out, &err, func(string) string { return "" }, func() time.Time { return time.Unix(0, 0) })
	a.Client = func() (*kube.Client, error) { return s.Client, nil }
	if code := Run(ctx, a, []string{"reconcile", "ks", "app", "--once"}); code != clierr.ExitInterrupted {
		t.Errorf("exit code %d: %s", code, err.String())
	}
	k, _ := controllers.FindKind("Kustomization")
	if !k.Suspension.Is(s.Object(kustomizationPath, "app")) || s.patches["app"] != 2 {
		t.Errorf("not suspended: %v %v", s.patches, s.Object(kustomizationPath, "app"))
	}
}
