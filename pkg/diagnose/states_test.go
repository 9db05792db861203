package diagnose

import (
	"cmp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxkit/flux/pkg/controllers"
)

// TestBrokenByChange checks that an undo is only offered if there is an earlier template and the
// current one has never run: an earlier template does not fix a lost node or a deleted Secret.
func TestBrokenByChange(t *testing.T) {
	t.Parallel()
	const completed = `ReplicaSet "web-1" has successfully progressed.`
	at := time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		number, reason string
		pod, message   string
		created        time.Duration
		want           bool
	}{
		"a new template that does not start": {number: "2", reason: "ReplicaSetUpdated", want: true},
		"one past its deadline":              {number: "7", reason: "ProgressDeadlineExceeded", want: true},
		"one that ran until its node failed": {number: "2", reason: "NewReplicaSetAvailable"},
		"its new pod":                        {number: "2", reason: "NewReplicaSetAvailable", pod: "web-1", created: time.Hour},
		"an old pod of the earlier one":      {number: "2", reason: "NewReplicaSetAvailable", pod: "web-0", created: -time.Hour},
		"one whose condition is outdated":    {number: "2", reason: "NewReplicaSetAvailable", pod: "web-2", created: time.Hour, want: true},
		"one that was scaled to zero":        {number: "2", reason: "NewReplicaSetAvailable", pod: "web-2", created: time.Hour, message: `Deployment "web" has successfully progressed.`},
		"a pod of another Deployment":        {number: "2", reason: "NewReplicaSetAvailable", pod: "api-2", created: time.Hour},
		"the first one":                      {number: "1", reason: "ProgressDeadlineExceeded"},
		"without a revision":                 {reason: "ReplicaSetUpdated"},
		"without a condition":                {number: "2"},
	} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{revision: c.number}}}
		if c.reason != "" {
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: c.reason, Message: cmp.Or(c.message, completed), LastUpdateTime: metav1.NewTime(at)}}
		}
		pods := []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{
			CreationTimestamp: metav1.NewTime(at.Add(c.created)), Labels: map[string]string{hash: c.pod[strings.IndexByte(c.pod, '-')+1:]},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: c.pod, Controller: new(true)}},
		}}}
		if got := brokenByChange(d, pods); got != c.want {
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
	f, _ := s.local(controllers.FluxID("GitRepository", "apps", "app"))
	if f == nil || f.Code != "controller-storage" {
		t.Fatalf("finding %+v", f)
	}
	if text := strings.Join(f.Remedies, "\n"); strings.Contains(text, "flux-system") || !strings.Contains(text, "kubectl -n gitops describe pods -l app=source-controller") {
		t.Error(text)
	}
}
