package schema

import (
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fluxkit/flux/pkg/validate/verdict"
)

// rules collects violations of API server rules that are not part of its schemas. It checks the rules that manifests
// violate most often.
type rules struct{ problems []verdict.Problem }

// rulesOf returns the violations of an object that is valid according to its schema.
func rulesOf(o *unstructured.Unstructured) []verdict.Problem {
	value := typed(o.GroupVersionKind())
	if value == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, value) != nil {
		return nil
	}
	r, spec := &rules{}, field.NewPath("spec")
	switch o := value.(type) {
	case *corev1.Pod:
		r.pod(spec, &o.Spec, nil)
	case *appsv1.Deployment:
		r.workload(spec, o.Spec.Selector, &o.Spec.Template, nil)
	case *appsv1.StatefulSet:
		r.workload(spec, o.Spec.Selector, &o.Spec.Template, o.Spec.VolumeClaimTemplates)
	case *appsv1.DaemonSet:
		r.workload(spec, o.Spec.Selector, &o.Spec.Template, nil)
	case *appsv1.ReplicaSet:
		r.workload(spec, o.Spec.Selector, &o.Spec.Template, nil)
	case *batchv1.Job:
		r.job(spec, &o.Spec)
	case *batchv1.CronJob:
		r.job(spec.Child("jobTemplate", "spec"), &o.Spec.JobTemplate.Spec)
		if problem := scheduleProblem(o.Spec.Schedule); problem != "" {
			r.report(spec.Child("schedule"), "%s", problem)
		}
	case *corev1.Service:
		r.service(spec, &o.Spec)
	case *corev1.Secret:
		r.secret(o)
	case *corev1.PersistentVolumeClaim:
		r.claim(spec, &o.Spec)
	case *autoscalingv2.HorizontalPodAutoscaler:
		if o.Spec.MaxReplicas < 1 {
			r.report(spec.Child("maxReplicas"), "must be at least 1")
		} else if o.Spec.MinReplicas != nil && *o.Spec.MinReplicas > o.Spec.MaxReplicas {
			r.report(spec.Child("maxReplicas"), "must not be less than minReplicas")
		}
	case *policyv1.PodDisruptionBudget:
		if o.Spec.MinAvailable != nil && o.Spec.MaxUnavailable != nil {
			r.report(spec, "minAvailable and maxUnavailable must not both be set")
		}
	}
	return r.problems
}

func (r *rules) report(at *field.Path, message string, args ...any) {
	r.problems = append(r.problems, verdict.Problem{Rule: verdict.RuleSchema, Field: at.String(), Message: fmt.Sprintf(message, args...)})
}

// workload checks a kind that creates pods from a template and selects them by label.
func (r *rules) workload(spec *field.Path, selector *metav1.LabelSelector, template *corev1.PodTemplateSpec, claims []corev1.PersistentVolumeClaim) {
	pods := spec.Child("template", "spec")
	if matches, err := metav1.LabelSelectorAsSelector(selector); err == nil && selector != nil {
		switch {
		case len(selector.MatchLabels)+len(selector.MatchExpressions) == 0:
			r.report(spec.Child("selector"), "must not be empty")
		case !matches.Matches(labels.Set(template.Labels)):
			r.report(spec.Child("template", "metadata", "labels"), "must match spec.selector")
		}
	}
	if policy := template.Spec.RestartPolicy; policy != "" && policy != corev1.RestartPolicyAlways {
		r.report(pods.Child("restartPolicy"), "must be Always")
	}
	var names []string
	for _, claim := range claims {
		names = append(names, claim.Name)
	}
	r.pod(pods, &template.Spec, names)
}

func (r *rules) job(spec *field.Path, job *batchv1.JobSpec) {
	pods := spec.Child("template", "spec")
	if policy := job.Template.Spec.RestartPolicy; policy != corev1.RestartPolicyNever && policy != corev1.RestartPolicyOnFailure {
		r.report(pods.Child("restartPolicy"), "must be Never or OnFailure")
	}
	r.pod(pods, &job.Template.Spec, nil)
}

// pod checks a pod spec. volumes lists additional volumes from a StatefulSet.
func (r *rules) pod(at *field.Path, pod *corev1.PodSpec, volumes []string) {
	for i, volume := range pod.Volumes {
		if slices.ContainsFunc(pod.Volumes[:i], func(other corev1.Volume) bool { return other.Name == volume.Name }) {
			r.report(at.Child("volumes").Index(i).Child("name"), "duplicate name %q", volume.Name)
		}
		volumes = append(volumes, volume.Name)
	}
	if len(pod.Containers) == 0 {
		r.report(at.Child("containers"), "must contain a container")
	}
	names := map[string]bool{}
	for _, list := range []struct {
		field      string
		containers []corev1.Container
	}{{"containers", pod.Containers}, {"initContainers", pod.InitContainers}} {
		for i, c := range list.containers {
			at := at.Child(list.field).Index(i)
			if names[c.Name] {
				r.report(at.Child("name"), "duplicate name %q", c.Name)
			}
			names[c.Name] = true
			if c.Image == "" {
				r.report(at.Child("image"), "required field is missing")
			}
			r.container(at, &c, volumes)
		}
	}
}

func (r *rules) container(at *field.Path, c *corev1.Container, volumes []string) {
	paths := map[string]bool{}
	for i, mount := range c.VolumeMounts {
		at := at.Child("volumeMounts").Index(i)
		if !slices.Contains(volumes, mount.Name) {
			r.report(at.Child("name"), "the pod has no volume %q", mount.Name)
		}
		if paths[mount.MountPath] {
			r.report(at.Child("mountPath"), "duplicate path %q", mount.MountPath)
		}
		paths[mount.MountPath] = true
	}
	ports := map[string]bool{}
	for i, port := range c.Ports {
		at := at.Child("ports").Index(i)
		r.port(at.Child("containerPort"), port.ContainerPort)
		if ports[port.Name] {
			r.report(at.Child("name"), "duplicate name %q", port.Name)
		}
		ports[port.Name] = port.Name != ""
		if port.Name != "" {
			r.portName(at.Child("name"), port.Name)
		}
	}
	for name, limit := range c.Resources.Limits {
		if request, ok := c.Resources.Requests[name]; ok && request.Cmp(limit) > 0 {
			r.report(at.Child("resources", "requests").Key(string(name)), "must not exceed the limit %s", limit.String())
		}
	}
	for name, probe := range map[string]*corev1.Probe{"livenessProbe": c.LivenessProbe, "readinessProbe": c.ReadinessProbe, "startupProbe": c.StartupProbe} {
		if probe != nil {
			r.probe(at.Child(name), probe)
		}
	}
}

func (r *rules) port(at *field.Path, port int32) {
	for _, problem := range validation.IsValidPortNum(int(port)) {
		r.report(at, "%s", problem)
	}
}

func (r *rules) portName(at *field.Path, name string) {
	for _, problem := range validation.IsValidPortName(name) {
		r.report(at, "%s", problem)
	}
}

func (r *rules) probe(at *field.Path, probe *corev1.Probe) {
	handlers := 0
	for _, set := range []bool{probe.Exec != nil, probe.HTTPGet != nil, probe.TCPSocket != nil, probe.GRPC != nil} {
		if set {
			handlers++
		}
	}
	if handlers != 1 {
		r.report(at, "must have exactly one of exec, httpGet, tcpSocket and grpc")
	}
}

func (r *rules) service(spec *field.Path, service *corev1.ServiceSpec) {
	if service.Type == corev1.ServiceTypeExternalName {
		if service.ExternalName == "" {
			r.report(spec.Child("externalName"), "required field is missing")
		}
	} else if len(service.Ports) == 0 && service.ClusterIP != corev1.ClusterIPNone {
		r.report(spec.Child("ports"), "required field is missing")
	}
	names := map[string]bool{}
	for i, port := range service.Ports {
		at := spec.Child("ports").Index(i)
		r.port(at.Child("port"), port.Port)
		switch {
		case port.Name == "" && len(service.Ports) > 1:
			r.report(at.Child("name"), "required field is missing")
		case names[port.Name]:
			r.report(at.Child("name"), "duplicate name %q", port.Name)
		}
		names[port.Name] = port.Name != ""
	}
}

// secretKeys lists the keys that Secrets of a type must contain.
var secretKeys = map[corev1.SecretType][]string{
	corev1.SecretTypeTLS:              {corev1.TLSCertKey, corev1.TLSPrivateKeyKey},
	corev1.SecretTypeDockerConfigJson: {corev1.DockerConfigJsonKey},
	corev1.SecretTypeDockercfg:        {corev1.DockerConfigKey},
	corev1.SecretTypeSSHAuth:          {corev1.SSHAuthPrivateKey},
}

func (r *rules) secret(secret *corev1.Secret) {
	for _, key := range secretKeys[secret.Type] {
		value, set := secret.Data[key]
		if text, ok := secret.StringData[key]; ok {
			value, set = []byte(text), true
		}
		at := field.NewPath("data").Key(key)
		switch {
		case !set:
			r.report(at, "required by type %s", secret.Type)
		case (key == corev1.DockerConfigJsonKey || key == corev1.DockerConfigKey) && json.Unmarshal(value, &map[string]any{}) != nil:
			r.report(at, "must be a JSON object")
		}
	}
}

func (r *rules) claim(spec *field.Path, claim *corev1.PersistentVolumeClaimSpec) {
	if len(claim.AccessModes) == 0 {
		r.report(spec.Child("accessModes"), "must contain an access mode")
	}
	if _, set := claim.Resources.Requests[corev1.ResourceStorage]; !set {
		r.report(spec.Child("resources", "requests", "storage"), "required field is missing")
	}
}
