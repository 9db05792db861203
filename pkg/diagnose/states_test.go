package diagnose

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxkit/flux/pkg/controllers"
)

// TestBrokenByChange checks that an undo is only offered if there is an earlier template and the
// current one has never run: an earlier template does not fix a lost node or a deleted Secret.
func TestBrokenByChange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		number, reason string
		want           bool
	}{
		"a new template that does not start": {"2", "ReplicaSetUpdated", true},
		"one past its deadline":              {"7", "ProgressDeadlineExceeded", true},
		"one that ran until its node failed": {"2", "NewReplicaSetAvailable", false},
		"the first one":                      {"1", "ProgressDeadlineExceeded", false},
		"without a revision":                 {"", "ReplicaSetUpdated", false},
		"without a condition":                {"2", "", false},
	} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{revision: c.number}}}
		if c.reason != "" {
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: c.reason}}
		}
		if got := brokenByChange(d); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestRemediesNameTheNamespaceOfTheControllers checks that remedies name the namespace of the
// controllers.
func TestRemediesNameTheNamespaceOfTheControllers(t *testing.T) {
	t.Parallel()
	o := failing(t, "GitRepository", "StorageOperationFailed", "failed to create artifact directory: no space left on device", "").object
	s := diagnosisOf([]controllers.Object{o}, nil)
	s.Home = "gitops"
	f, _ := s.local(controllers.Target{Kind: "GitRepository", Namespace: "apps", Name: "app"})
	if f == nil || f.Code != "controller-storage" {
		t.Fatalf("finding %+v", f)
	}
	if text := strings.Join(f.Remedies, "\n"); strings.Contains(text, "flux-system") || !strings.Contains(text, "kubectl -n gitops describe pods -l app=source-controller") {
		t.Error(text)
	}
}
