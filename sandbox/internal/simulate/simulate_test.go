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
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
)

// stage has the fields of a kwok stage that the stages here use.
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
	text, err := Stages([]string{"source-controller"})
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

// A pod that both the stages and the node agent take, or neither, would never
// become ready.
func TestStagesAndAgentAgree(t *testing.T) {
	t.Parallel()
	cases := []struct {
		image, state string
		controllers  []string
		want         string
	}{
		{"ghcr.io/fluxcd/source-controller:v1.9.5", "", []string{"source-controller"}, "source-controller"},
		{"localhost:5000/source-controller@sha256:abc", "", []string{"source-controller"}, "source-controller"},
		{"source-controller", "", []string{"helm-controller", "source-controller"}, "source-controller"},
		{"ghcr.io/fluxcd/source-controller:v1.9.5", CrashLoop, []string{"source-controller"}, ""},
		{"ghcr.io/fluxcd/source-controller:v1.9.5", "", nil, ""},
		{"ghcr.io/fluxcd/source-controller-cli:v1", "", []string{"source-controller"}, ""},
		{"ghcr.io/fluxcd/my-source-controller:v1", "", []string{"source-controller"}, ""},
		{"ghcr.io/source-controller/app:v1", "", []string{"source-controller"}, ""},
		{"nginx", "", []string{"source-controller"}, ""},
	}
	for _, c := range cases {
		pod := &corev1.Pod{}
		pod.Spec.Containers = []corev1.Container{{Name: "manager", Image: c.image}}
		if c.state != "" {
			pod.Annotations = map[string]string{Annotation: c.state}
		}
		name, _ := Controller(pod, c.controllers)
		if name != c.want {
			t.Errorf("Controller(%s, %v) = %q, want %q", c.image, c.controllers, name, c.want)
		}
		if real := evaluate(t, realExpression(c.controllers), pod); real != (c.want != "") {
			t.Errorf("the stages treat %s among %v as real: %v", c.image, c.controllers, real)
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
