package dryrun

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fluxkit/flux/pkg/controllers"
)

// normalizer converts objects to the form in which kustomize-controller applies them. The
// controller decodes objects of built-in kinds into their Go types and encodes them again, which
// drops unknown fields and normalizes quantities.
type normalizer struct{ types *runtime.Scheme }

// newNormalizer registers the stable API versions. Servers do not serve beta versions by default
// (since Kubernetes 1.24). The scheme of client-go contains all versions, and would add 2 ms and 7
// MiB to every start of the program.
func newNormalizer() (*normalizer, error) {
	n := &normalizer{runtime.NewScheme()}
	err := (&runtime.SchemeBuilder{
		admissionregistrationv1.AddToScheme, appsv1.AddToScheme, autoscalingv1.AddToScheme, autoscalingv2.AddToScheme,
		batchv1.AddToScheme, certificatesv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme,
		discoveryv1.AddToScheme, eventsv1.AddToScheme, flowcontrolv1.AddToScheme, networkingv1.AddToScheme,
		nodev1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme, resourcev1.AddToScheme,
		schedulingv1.AddToScheme, storagev1.AddToScheme,
	}).AddToScheme(n.types)
	if err != nil {
		return nil, fmt.Errorf("registering the Kubernetes types: %w", err)
	}
	return n, nil
}

// normalize changes an object in place. An object that does not match its type is kept as it is:
// the server reports the error.
func (n *normalizer) normalize(o *unstructured.Unstructured) error {
	if !exempt(o) {
		if err := n.retype(o); err != nil {
			return err
		}
	}
	unstructured.RemoveNestedField(o.Object, "metadata", "creationTimestamp")
	if !controllers.VersionedIDOf(o.Object).IsCRD() {
		unstructured.RemoveNestedField(o.Object, "status")
	}
	return nil
}

// exempt reports whether an object is a role: encoding a role without rules sets rules to null,
// which removes rules that the cluster aggregates.
func exempt(o *unstructured.Unstructured) bool {
	kind := o.GetKind()
	return o.GetAPIVersion() == rbacv1.SchemeGroupVersion.String() && (kind == "Role" || kind == "ClusterRole")
}

func (n *normalizer) retype(o *unstructured.Unstructured) error {
	typed, err := n.types.New(o.GroupVersionKind())
	if err != nil {
		return nil // not a kind of Kubernetes
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed); err != nil {
		return nil // does not fit its type
	}
	complete(typed)
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", controllers.VersionedIDOf(o.Object), err)
	}
	o.Object = fields
	return nil
}

// complete sets the fields that an apply requires: the protocol of a port, which is part of its
// key, and the data from stringData.
func complete(typed runtime.Object) {
	switch o := typed.(type) {
	case *corev1.Pod:
		completePorts(&o.Spec)
	case *appsv1.Deployment:
		completePorts(&o.Spec.Template.Spec)
	case *appsv1.StatefulSet:
		completePorts(&o.Spec.Template.Spec)
	case *appsv1.DaemonSet:
		completePorts(&o.Spec.Template.Spec)
	case *appsv1.ReplicaSet:
		completePorts(&o.Spec.Template.Spec)
	case *batchv1.Job:
		completePorts(&o.Spec.Template.Spec)
	case *batchv1.CronJob:
		completePorts(&o.Spec.JobTemplate.Spec.Template.Spec)
	case *corev1.Service:
		for i := range o.Spec.Ports {
			completeProtocol(&o.Spec.Ports[i].Protocol)
		}
	case *corev1.Secret:
		completeData(o)
	}
}

func completePorts(pod *corev1.PodSpec) {
	for _, container := range pod.Containers {
		for i := range container.Ports {
			completeProtocol(&container.Ports[i].Protocol)
		}
	}
}

func completeProtocol(protocol *corev1.Protocol) {
	if *protocol == "" {
		*protocol = corev1.ProtocolTCP
	}
}

func completeData(secret *corev1.Secret) {
	for key, text := range secret.StringData {
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[key] = []byte(text)
	}
	secret.StringData = nil
}
