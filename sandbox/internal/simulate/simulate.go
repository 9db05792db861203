// Package simulate defines the life cycle of simulated pods: the annotation that
// selects a state, and the stages of the fake kubelet.
package simulate

import (
	"bytes"
	_ "embed"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/template"

	corev1 "k8s.io/api/core/v1"
)

// Annotation on a pod selects its state; DelayAnnotation is the duration of a slow
// start (default 10s).
const (
	Annotation      = "sandbox.fluxkit.dev/state"
	DelayAnnotation = "sandbox.fluxkit.dev/delay"
)

// The values of Annotation.
const (
	ImagePullError = "image-pull-error"
	CrashLoop      = "crash-loop"
	Pending        = "pending"
	SlowStart      = "slow-start"
	Complete       = "complete"
	Fail           = "fail"
)

//go:embed stages.yaml
var stagesTemplate string

// Stages renders the stages for all pods except those whose image is one of the
// controllers, which run as processes.
func Stages(controllers []string) ([]byte, error) {
	t, err := template.New("stages").Delims("[[", "]]").Parse(stagesTemplate)
	if err != nil {
		return nil, fmt.Errorf("reading the pod stages: %w", err)
	}
	var out bytes.Buffer
	err = t.Execute(&out, map[string]string{
		"Real": realExpression(controllers), "State": Annotation, "Delay": DelayAnnotation,
	})
	if err != nil {
		return nil, fmt.Errorf("rendering the pod stages: %w", err)
	}
	return out.Bytes(), nil
}

// realExpression returns the jq expression that is true for a pod that runs as a
// process; it must agree with Controller.
func realExpression(controllers []string) string {
	if len(controllers) == 0 {
		return "false"
	}
	names := make([]string, len(controllers))
	for i, name := range controllers {
		names[i] = regexp.QuoteMeta(name)
	}
	return fmt.Sprintf(`(.metadata.annotations[%q] // "") == "" and ([.spec.containers[].image | test("(^|/)(%s)([:@]|$)")] | any)`,
		Annotation, strings.Join(names, "|"))
}

// Controller returns the controller that a pod runs, and the container of it. A
// pod with the annotation is simulated, whatever its image.
func Controller(pod *corev1.Pod, controllers []string) (name string, container *corev1.Container) {
	if pod.Annotations[Annotation] != "" {
		return "", nil
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if name := imageName(c.Image); slices.Contains(controllers, name) {
			return name, c
		}
	}
	return "", nil
}

// imageName returns the last element of an image's repository, without tag or digest.
func imageName(image string) string {
	image, _, _ = strings.Cut(image, "@")
	name, _, _ := strings.Cut(path.Base(image), ":")
	return name
}
