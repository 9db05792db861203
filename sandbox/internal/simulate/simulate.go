// Package simulate says how pods live that are not processes: which state an
// annotation asks for, and the stages that a fake kubelet takes them through.
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

// Annotation on a pod chooses what becomes of it; DelayAnnotation is how long
// a slow start takes, ten seconds when it is missing.
const (
	Annotation      = "sandbox.fluxkit.dev/state"
	DelayAnnotation = "sandbox.fluxkit.dev/delay"
)

// The states that Annotation knows.
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

// Stages renders the stages for all pods but those whose image is one of the
// controllers, which run as processes instead.
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

// realExpression is the jq expression that is true for a pod that runs as a
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

// Controller returns which of the controllers a pod runs and in which of its
// containers. A pod whose annotation asks for a state is simulated, whatever
// its image.
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

// imageName is the last element of an image's repository, without tag or digest.
func imageName(image string) string {
	image, _, _ = strings.Cut(image, "@")
	name, _, _ := strings.Cut(path.Base(image), ":")
	return name
}
