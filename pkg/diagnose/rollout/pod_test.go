package rollout

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func pod(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "app-1"},
		Spec:       corev1.PodSpec{NodeName: "node-a", Containers: []corev1.Container{{Name: "manager", Image: "ghcr.io/org/app:v1"}}},
	}
	change(p)
	return p
}

func waits(reason, message string, restarts int32, last *corev1.ContainerStateTerminated) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "manager", RestartCount: restarts,
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
			LastTerminationState: corev1.ContainerState{Terminated: last},
		}}
	}
}

func condition(typ corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: typ, Status: status, Reason: reason, Message: message}}
	}
}

const pulling = "check the image name and the pull Secret, and that the nodes can reach the registry"

func TestPod(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want *Problem
	}{
		"ready": {pod(condition(corev1.PodReady, corev1.ConditionTrue, "", "")), nil},
		"invalid image name": {pod(waits("InvalidImageName", "couldn't parse", 0, nil)),
			&Problem{Message: `the image name "ghcr.io/org/app:v1" is not valid`, Remedy: "correct the image name", Flags: "--registry", Final: true}},
		"image that is not there": {pod(waits("ImagePullBackOff", `Back-off pulling image "ghcr.io/org/app:v1": ErrImagePull: rpc error: code = NotFound desc = ghcr.io/org/app:v1: not found`, 0, nil)),
			&Problem{Message: `the image "ghcr.io/org/app:v1" cannot be pulled: not found`, Remedy: pulling, Flags: "--registry and --image-pull-secret", Final: true}},
		"registry that is slow": {pod(waits("ErrImagePull", `rpc error: code = Unknown desc = dial tcp 10.0.0.1:443: i/o timeout`, 0, nil)),
			&Problem{Message: `the image "ghcr.io/org/app:v1" cannot be pulled: dial tcp 10.0.0.1:443: i/o timeout`, Remedy: pulling, Flags: "--registry and --image-pull-secret"}},
		"registry that limits the rate": {pod(waits("ErrImagePull", `toomanyrequests: You have reached your pull rate limit`, 0, nil)),
			&Problem{Message: `the image "ghcr.io/org/app:v1" cannot be pulled: toomanyrequests: You have reached your pull rate limit`, Remedy: pulling, Flags: "--registry and --image-pull-secret"}},
		"first crash": {pod(waits("CrashLoopBackOff", "back-off 10s", 1, &corev1.ContainerStateTerminated{ExitCode: 2, Reason: "Error"})),
			&Problem{Message: "container manager of pod app-1 terminated with exit code 2 (1 restart)"}},
		"crash loop": {pod(waits("CrashLoopBackOff", "back-off 40s", 3, &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "no such\nflag"})),
			&Problem{Message: "container manager of pod app-1 terminated with exit code 1 (3 restarts): no such flag", Final: true}},
		"out of memory": {pod(waits("CrashLoopBackOff", "", 1, &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"})),
			&Problem{Message: "container manager of pod app-1 terminated with exit code 137 (1 restart): it exceeded its memory limit", Remedy: "raise the memory limit of the container"}},
		"missing secret": {pod(waits("CreateContainerConfigError", `secret "registry" not found`, 0, nil)),
			&Problem{Message: `container manager cannot be configured: secret "registry" not found`, Remedy: "create the object named in the message, in the pod's namespace", Final: true}},
		"unschedulable": {pod(func(p *corev1.Pod) {
			condition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")(p)
			p.Spec.NodeName = ""
		}), &Problem{Message: "pod app-1 is unschedulable: 0/1 nodes are available: 1 Insufficient cpu.", Remedy: "add a node, free resources on one, or tolerate its taints", Flags: "--toleration-keys"}},
		"evicted": {pod(func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "the node was low on memory"
		}), &Problem{Message: "pod app-1 has failed: Evicted: the node was low on memory"}},
		"creating": {pod(waits("ContainerCreating", "", 0, nil)), &Problem{Message: "pod app-1 is starting on node node-a", Vague: true}},
		"no scheduler": {pod(func(p *corev1.Pod) { p.Spec.NodeName = "" }),
			&Problem{Message: "pod app-1 is not assigned to a node yet", Remedy: "check that the scheduler is running", Vague: true}},
		"probing": {pod(func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "manager", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		}), &Problem{Message: "pod app-1 is running but not ready: its readiness probe has not succeeded", Vague: true}},
		"between two crashes": {pod(func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "manager", RestartCount: 1, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2, Reason: "Error"}},
			}}
		}), &Problem{Message: "container manager of pod app-1 terminated with exit code 2 (1 restart); it has not been ready since its restart"}},
		"restarted after a clean end": {pod(func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "manager", RestartCount: 1, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}},
			}}
		}), &Problem{Message: "pod app-1 is running but not ready: its readiness probe has not succeeded", Vague: true}},
		"ending": {pod(func(p *corev1.Pod) {
			waits("CrashLoopBackOff", "", 9, nil)(p)
			p.DeletionTimestamp = &metav1.Time{}
		}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, found := Pod(c.pod)
			if found != (c.want != nil) {
				t.Fatalf("found %t: %+v", found, got)
			}
			if c.want == nil {
				return
			}
			if diff := cmp.Diff(*c.want, got, cmpopts.IgnoreUnexported(Problem{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestPullIsFinal checks that the error of a registry is final; the same words in an image name or
// a host are not.
func TestPullIsFinal(t *testing.T) {
	t.Parallel()
	const pulled = `Back-off pulling image "IMAGE": ErrImagePull: rpc error: code = CODE desc = failed to pull and unpack image "IMAGE": failed to resolve reference "IMAGE": `
	for message, want := range map[string]bool{
		`IMAGE: not found`: true,
		`pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed`:                 true,
		`failed to authorize: failed to fetch anonymous token: unexpected status from GET request to https://ghcr.io/token: 403 Forbidden`:                     true,
		`unexpected status from HEAD request to https://registry.example.com/v2/app/manifests/v1: 401 Unauthorized`:                                            true,
		`failed to do request: Head "https://registry.example.com/v2/": dial tcp: lookup registry.example.com: i/o timeout`:                                    false,
		`failed to do request: Head "https://not-found.example.com:40111/v2/manifest-unknown": dial tcp 10.0.0.1:40111: connect: connection refused`:           false,
		`failed to do request: Head "https://registry/v2/denied/unauthorized": EOF`:                                                                            false,
		`unexpected status from HEAD request to https://registry.example.com/v2/401/manifests/404: 503 Service Unavailable`:                                    false,
		`unexpected status from HEAD request to https://registry.example.com/v2/not-found/manifests/v1: 429 Too Many Requests`:                                 false,
		`toomanyrequests: You have reached your pull rate limit of a repository that was not found`:                                                            false,
		`failed to do request: Head "https://registry/v2/": net/http: TLS handshake timeout`:                                                                   false,
		`failed to do request: Head "https://registry/v2/": tls: failed to verify certificate: x509: certificate is valid for unauthorized, not for not-found`: false,
	} {
		for _, image := range []string{"ghcr.io/org/app:v1", "registry:40111/not-found/denied:401-unauthorized"} {
			text := strings.NewReplacer("IMAGE", image, "CODE", "Unknown").Replace(pulled + message)
			p := pod(waits("ImagePullBackOff", text, 0, nil))
			p.Spec.Containers[0].Image = image
			if got, found := Pod(p); !found || got.Final != want {
				t.Errorf("%s\n is final: %t, want %t", text, got.Final, want)
			}
		}
	}
}

// TestHeldPods checks which pods that are being deleted wait only for a finalizer.
func TestHeldPods(t *testing.T) {
	t.Parallel()
	running := corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	ended := corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}
	for name, c := range map[string]struct {
		finalizers []string
		states     []corev1.ContainerStatus
		held       bool
	}{
		"a finalizer of others":          {[]string{"example.com/hold"}, []corev1.ContainerStatus{ended}, true},
		"a container still runs":         {[]string{"example.com/hold"}, []corev1.ContainerStatus{ended, running}, false},
		"no finalizer":                   {nil, []corev1.ContainerStatus{ended}, false},
		"a pod of a Job":                 {[]string{"batch.kubernetes.io/job-tracking"}, []corev1.ContainerStatus{ended}, false},
		"a pod of a Job and a finalizer": {[]string{"batch.kubernetes.io/job-tracking", "example.com/hold"}, []corev1.ContainerStatus{ended}, true},
	} {
		p := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: c.states}}
		p.Name, p.Finalizers = "app-1", c.finalizers
		p.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 11, 25, 14, 0, 0, 0, time.UTC)}
		if got, held := Pod(p); held != c.held || held && strings.Contains(got.Message, "job-tracking") {
			t.Errorf("%s: %t %q", name, held, got.Message)
		}
	}
}
