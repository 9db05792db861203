package simulate

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/itchyny/gojq"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
)

// stage contains the used fields of a kwok stage.
type stage struct {
	Metadata struct{ Name string }
	Spec     struct {
		Selector struct{ MatchExpressions []struct{ Key string } }
		Next     struct {
			Delete         bool
			StatusTemplate string
		}
	}
}

func TestStagesParseAsKwokStages(t *testing.T) {
	t.Parallel()
	text, err := Selection{Controllers: []string{"source-controller"}}.Stages()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		strict := json.NewDecoder(bytes.NewReader(raw))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&v1alpha1.Stage{}); err != nil {
			t.Fatalf("%v in %s", err, raw)
		}
		var stage stage
		if err := json.Unmarshal(raw, &stage); err != nil {
			t.Fatal(err)
		}
		names = append(names, stage.Metadata.Name)
		if next := stage.Spec.Next; !next.Delete && next.StatusTemplate == "" {
			t.Errorf("stage %s has no next state", stage.Metadata.Name)
		}
		for _, e := range stage.Spec.Selector.MatchExpressions {
			if _, err := gojq.Parse(e.Key); err != nil {
				t.Errorf("stage %s: %v in %s", stage.Metadata.Name, err, e.Key)
			}
		}
	}
	want := []string{
		"pod-ready", "pod-slow-starting", "pod-slow-ready", "pod-image-pull-error", "pod-image-pull-back-off",
		"pod-crash", "pod-crash-again", "pod-complete", "pod-complete-asked", "pod-fail", "pod-delete", "node-ready",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

// Each pod must be handled either by the stages or by the node agent; otherwise, it would
// never become ready.
func TestStagesAndAgentAgree(t *testing.T) {
	t.Parallel()
	const name, owner = "source-controller", "source-controller-7d4f9b"
	one := []string{name}
	cases := []struct {
		image, owner, state string
		selection           Selection
		want                string
	}{
		{"ghcr.io/fluxcd/source-controller:v1.9.5", owner, "", Selection{one, ""}, name},
		{"ghcr.io/fluxcd/source-controller:v1.9.5", owner, "", Selection{one, "flux-system"}, name},
		{"localhost:5000/source-controller@sha256:abc", owner, "", Selection{one, ""}, name},
		{"source-controller", owner, "", Selection{[]string{"helm-controller", name}, ""}, name},
		{"ghcr.io/fluxcd/source-controller:v1.9.5", owner, CrashLoop, Selection{one, ""}, ""},
		{"ghcr.io/fluxcd/source-controller:v1.9.5", owner, "", Selection{}, ""},
		{"ghcr.io/fluxcd/source-controller-cli:v1", owner, "", Selection{one, ""}, ""},
		{"ghcr.io/fluxcd/my-source-controller:v1", owner, "", Selection{one, ""}, ""},
		{"ghcr.io/source-controller/app:v1", owner, "", Selection{one, ""}, ""},
		{"nginx", owner, "", Selection{one, ""}, ""},
		// A pod with only the image, only the name, or another namespace does not run a
		// controller.
		{"x/source-controller", "web-7d4f9b", "", Selection{one, ""}, ""},
		{"x/source-controller", "", "", Selection{one, ""}, ""},
		{"x/source-controller", "source-controller-evil-7d4f9b", "", Selection{one, ""}, ""},
		{"x/source-controller", "my-source-controller-7d4f9b", "", Selection{one, ""}, ""},
		{"x/source-controller", "helm-controller-7d4f9b", "", Selection{[]string{"helm-controller", name}, ""}, ""},
		{"ghcr.io/fluxcd/source-controller:v1.9.5", owner, "", Selection{one, "other"}, ""},
	}
	for _, c := range cases {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system"}}
		pod.Spec.Containers = []corev1.Container{{Name: "manager", Image: c.image}}
		if c.owner != "" {
			yes := true
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: c.owner, Controller: &yes}}
		}
		if c.state != "" {
			pod.Annotations = map[string]string{Annotation: c.state}
		}
		got, _ := c.selection.Controller(pod)
		if got != c.want {
			t.Errorf("Controller(%s of %s, %v) = %q, want %q", c.image, c.owner, c.selection, got, c.want)
		}
		if real := evaluate(t, c.selection.expression(), pod); real != (c.want != "") {
			t.Errorf("the stages treat %s of %s among %v as real: %v", c.image, c.owner, c.selection, real)
		}
	}
}

func evaluate(t *testing.T, expression string, pod *corev1.Pod) bool {
	t.Helper()
	query, err := gojq.Parse(expression)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	var input any
	if err := json.Unmarshal(data, &input); err != nil {
		t.Fatal(err)
	}
	value, ok := query.Run(input).Next()
	if err, failed := value.(error); failed || !ok {
		t.Fatal(err)
	}
	return value == true
}
