package rollout

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxkit/flux/pkg/controllers"
)

// TestNeverComplete checks that an undo is only offered if there is an earlier template and the
// current one has never run: an earlier template does not fix a lost node or a deleted Secret.
func TestNeverComplete(t *testing.T) {
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
		"one of the same second":             {number: "2", reason: "NewReplicaSetAvailable", pod: "web-2", want: true},
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
		if got := NeverComplete(d, pods); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestNotable(t *testing.T) {
	t.Parallel()
	lines := strings.Split("1,2,3,4,5,6,7", ",")
	for name, c := range map[string]struct{ log, want []string }{
		"short":                 {lines[:2], lines[:2]},
		"long":                  {lines, lines[2:]},
		"a panic":               {append([]string{"0", "panic: a"}, lines...), []string{"panic: a", "1", "2", "3", "4"}},
		"the last panic":        {[]string{"panic: a", "1", "panic: b", "2"}, []string{"panic: b", "2"}},
		"a panic in a record":   {append([]string{`{"msg":"panic: a"}`}, lines...), lines[2:]},
		"a fatal error":         {append([]string{"fatal error: concurrent map writes"}, lines...), []string{"fatal error: concurrent map writes", "1", "2", "3", "4"}},
		"nothing":               {nil, nil},
		"the word in a message": {append([]string{"do not panic: all is well"}, lines...), lines[2:]},
	} {
		if got := notable(c.log); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestLastStart checks that only running containers of the workload count.
func TestLastStart(t *testing.T) {
	t.Parallel()
	at := func(minute int) time.Time { return time.Date(2026, 11, 25, 14, minute, 0, 0, time.UTC) }
	pod := func(name string, states ...corev1.ContainerState) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, s := range states {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{State: s})
		}
		return p
	}
	running := func(minute int) corev1.ContainerState {
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at(minute))}}
	}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: metav1.NewTime(at(50))}}
	pods := []*corev1.Pod{pod("app", running(1), running(7), ended), pod("other", running(30))}
	if got := LastStart(controllers.ID{Kind: "Pod", Name: "app"}, pods); !got.Equal(at(7)) {
		t.Errorf("the last start is %s", got)
	}
	if got := LastStart(controllers.ID{Kind: "Pod", Name: "none"}, pods); !got.IsZero() {
		t.Errorf("the last start without pods is %s", got)
	}
}
