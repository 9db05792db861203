package manifests

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Objects returns the objects as types of k8s.io/api, except for CRDs, which stay
// unstructured.
func (s *Set) Objects() ([]runtime.Object, error) {
	objects := make([]runtime.Object, len(s.objects))
	for i, object := range s.objects {
		typed, known := typed(object.GetKind())
		if !known {
			objects[i] = object.DeepCopy()
			continue
		}
		// Strict, because a misspelled field would be dropped silently.
		err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true)
		if err != nil {
			return nil, fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		objects[i] = typed
	}
	return objects, nil
}

func typed(kind string) (runtime.Object, bool) {
	switch kind {
	case "Namespace":
		return &corev1.Namespace{}, true
	case "ResourceQuota":
		return &corev1.ResourceQuota{}, true
	case "ServiceAccount":
		return &corev1.ServiceAccount{}, true
	case "Service":
		return &corev1.Service{}, true
	case "NetworkPolicy":
		return &networkingv1.NetworkPolicy{}, true
	case "ClusterRole":
		return &rbacv1.ClusterRole{}, true
	case "ClusterRoleBinding":
		return &rbacv1.ClusterRoleBinding{}, true
	case "Deployment":
		return &appsv1.Deployment{}, true
	}
	return nil, false
}
