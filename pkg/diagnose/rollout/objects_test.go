package rollout

import (
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestBudgets checks which PodDisruptionBudgets never allow an eviction.
func TestBudgets(t *testing.T) {
	t.Parallel()
	number := func(n int) *intstr.IntOrString { v := intstr.FromInt32(int32(n)); return &v }
	percent := func(text string) *intstr.IntOrString { v := intstr.FromString(text); return &v }
	for _, c := range []struct {
		name                    string
		min, max                *intstr.IntOrString
		expected, healthy, left int32
		says                    string
	}{
		{"all must be available", number(2), nil, 2, 2, 0, ".spec.minAvailable is 2"},
		{"none may be unavailable", nil, number(0), 3, 3, 0, ".spec.maxUnavailable is 0"},
		{"all by percentage", percent("100%"), nil, 2, 2, 0, ".spec.minAvailable is 100%"},
		{"one may be unavailable", number(1), nil, 2, 2, 1, ""},
		{"a pod is not healthy at present", number(1), nil, 2, 1, 0, ""},
		{"no pods", number(2), nil, 0, 0, 0, ""},
		{"an eviction is in progress", nil, number(1), 2, 2, 0, ""},
	} {
		b := &policyv1.PodDisruptionBudget{
			Spec:   policyv1.PodDisruptionBudgetSpec{MinAvailable: c.min, MaxUnavailable: c.max},
			Status: policyv1.PodDisruptionBudgetStatus{ExpectedPods: c.expected, CurrentHealthy: c.healthy, DisruptionsAllowed: c.left},
		}
		p, found := budgetOf(b)
		if found != (c.says != "") || !strings.Contains(p.Message, c.says) {
			t.Errorf("%s: %t %q", c.name, found, p.Message)
		}
	}
}
