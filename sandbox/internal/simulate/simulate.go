// Package simulate defines the life cycle of simulated pods: the annotation that
// selects a state, and the stages of the fake kubelet.
package simulate

import (
	"bytes"
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"text/template"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// Selection selects the pods that run as processes.
type Selection struct {
	// Controllers lists the names of their Deployments and images.
	Controllers []string
	// Namespace is the namespace of the pods, "" for any.
	Namespace string
}

// Stages renders the stages for all pods except the selected ones, which run as processes.
func (s Selection) Stages() ([]byte, error) {
	t, err := template.New("stages").Delims("[[", "]]").Parse(stagesTemplate)
	if err != nil {
		return nil, fmt.Errorf("reading the pod stages: %w", err)
	}
	var out bytes.Buffer
	err = t.Execute(&out, map[string]string{"Real": s.expression(), "State": Annotation, "Delay": DelayAnnotation})
	if err != nil {
		return nil, fmt.Errorf("rendering the pod stages: %w", err)
	}
	return out.Bytes(), nil
}

// expression returns the jq expression that is true for a pod that runs as a
// process; it must agree with Controller.
func (s Selection) expression() string {
	if len(s.Controllers) == 0 {
		return "false"
	}
	var each []string
	for _, name := range s.Controllers {
		each = append(each, fmt.Sprintf(`(([.metadata.ownerReferences[]? | select(.controller == true and .kind == "ReplicaSet") | .name | test(%q)] | any) and `+
			`([.spec.containers[].image | test(%q)] | any))`, replicaSet(name), image(name)))
	}
	all := fmt.Sprintf(`(.metadata.annotations[%q] // "") == "" and (%s)`, Annotation, strings.Join(each, " or "))
	if s.Namespace != "" {
		all += fmt.Sprintf(" and .metadata.namespace == %q", s.Namespace)
	}
	return all
}

// replicaSet matches the ReplicaSet names of a controller's Deployment, and image its image in any registry.
func replicaSet(name string) string { return "^" + regexp.QuoteMeta(name) + "-[a-z0-9]+$" }
func image(name string) string      { return "(^|/)" + regexp.QuoteMeta(name) + "([:@]|$)" }

// Controller returns the controller that a pod runs, and its container: the pod must belong to the Deployment of the
// controller and have its image. All other pods, and pods with the annotation, are simulated.
func (s Selection) Controller(pod *corev1.Pod) (name string, container *corev1.Container) {
	if pod.Annotations[Annotation] != "" || s.Namespace != "" && pod.Namespace != s.Namespace {
		return "", nil
	}
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "ReplicaSet" {
		return "", nil
	}
	for _, name := range s.Controllers {
		if !regexp.MustCompile(replicaSet(name)).MatchString(owner.Name) {
			continue
		}
		for i := range pod.Spec.Containers {
			if c := &pod.Spec.Containers[i]; regexp.MustCompile(image(name)).MatchString(c.Image) {
				return name, c
			}
		}
	}
	return "", nil
}
