package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/sandbox/internal/process"
	"github.com/fluxkit/flux/sandbox/internal/simulate"
	"github.com/fluxkit/flux/sandbox/internal/state"
)

func TestControlPlane(t *testing.T) {
	s := &sandbox{t: t, dir: t.TempDir()}
	if _, stderr, code := s.run("status"); code != 1 || !strings.Contains(stderr, "is not running: start it with flux-sandbox up") {
		t.Errorf("status without a sandbox exits %d and prints %s", code, stderr)
	}
	if _, stderr, code := s.run("down"); code != 0 {
		t.Errorf("down without a sandbox exits %d and prints %s", code, stderr)
	}
	s.up()
	t.Cleanup(func() {
		cmd := exec.Command(os.Args[0], "down", "--dir", s.dir) // the context of the test is canceled by now
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("down: %v\n%s", err, out)
		}
	})
	for _, step := range []struct {
		name string
		run  func(*sandbox, *testing.T)
	}{
		{"is ready", (*sandbox).testReady},
		{"simulates pods", (*sandbox).testPods},
		{"reports a part that exits", (*sandbox).testExitedPart},
		{"recovers from a killed supervisor", (*sandbox).testRecovery},
		{"stops", (*sandbox).testDown},
	} {
		t.Run(step.name, func(t *testing.T) {
			now := *s
			now.t = t
			step.run(&now, t)
		})
	}
}

func (s *sandbox) testReady(t *testing.T) {
	body, err := s.client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
	if err != nil || string(body) != "ok" {
		t.Errorf("readyz returns %s, %v", body, err)
	}
	anonymous := rest.AnonymousClientConfig(s.config)
	stranger, err := kubernetes.NewForConfig(anonymous)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("an anonymous user may read Secrets")
	}
	if _, stderr, code := s.run("up", "--controllers=none"); code != 0 || !strings.Contains(stderr, "is already running") {
		t.Errorf("a second up exits %d and prints %s", code, stderr)
	}
	info, err := os.Stat(s.dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the mode of the directory is %v, %v", info.Mode(), err)
	}
}

func (s *sandbox) testPods(t *testing.T) {
	s.deploy("web", nil)
	s.deploy("absent", map[string]string{simulate.Annotation: simulate.ImagePullError})
	s.deploy("looping", map[string]string{simulate.Annotation: simulate.CrashLoop})
	s.deploy("stuck", map[string]string{simulate.Annotation: simulate.Pending})

	web := s.pod("web", isReady)
	log, err := s.log(web)
	if want := fmt.Sprintf("container app of pod default/%s is simulated by the sandbox\n", web.Name); err != nil || log != want {
		t.Errorf("the log is %q, %v", log, err)
	}
	if body, want := s.forward(web, 8080), fmt.Sprintf("pod default/%s is simulated: nothing runs behind port 8080\n", web.Name); body != want {
		t.Errorf("port 8080 returns %q", body)
	}
	absent := s.pod("absent", waitingFor("ImagePullBackOff"))
	if m := absent.Status.ContainerStatuses[0].State.Waiting.Message; !strings.Contains(m, `Back-off pulling image "registry.example/absent:1"`) {
		t.Errorf("message %q", m)
	}
	_, err = s.log(absent)
	if err == nil || !strings.Contains(err.Error(), "trying and failing to pull image") {
		t.Errorf("the log of a container that never ran: %v", err)
	}
	looping := s.pod("looping", waitingFor("CrashLoopBackOff"))
	if looping.Status.ContainerStatuses[0].RestartCount == 0 {
		t.Error("a crash loop without restarts")
	}
	stuck := s.pod("stuck", func(pod *corev1.Pod) bool { return len(pod.Status.Conditions) > 0 })
	if c := stuck.Status.Conditions[0]; c.Reason != corev1.PodReasonUnschedulable || stuck.Spec.NodeName != "" {
		t.Errorf("the pending pod is on %q: %+v", stuck.Spec.NodeName, c)
	}
	s.deploy("slow", map[string]string{simulate.Annotation: simulate.SlowStart, simulate.DelayAnnotation: "3s"})
	s.pod("slow", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning && !isReady(pod) })
	s.pod("slow", isReady)
}

func (s *sandbox) testExitedPart(t *testing.T) {
	victim := s.identities()["kube-scheduler"]
	if err := syscall.Kill(victim.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := victim.End(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	_, stderr, code := s.run("status")
	if code != 1 || !strings.Contains(stderr, "kube-scheduler ") || !strings.Contains(stderr, "the end of its log:\n") {
		t.Errorf("status exits %d and prints %s", code, stderr)
	}
	s.up()
	s.pod("web", isReady)
}

func (s *sandbox) testRecovery(t *testing.T) {
	before := s.identities()
	if err := syscall.Kill(before["supervisor"].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := before["supervisor"].End(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	s.up()
	for name, id := range before {
		if id.Alive() {
			t.Errorf("%s, process %d, of the previous run is still running", name, id.PID)
		}
	}
	s.pod("web", isReady)
}

func (s *sandbox) testDown(t *testing.T) {
	before := s.identities()
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "kubelet", "git", "registry"} {
		if !before[name].Alive() {
			t.Errorf("%s is not running", name)
		}
	}
	if _, stderr, code := s.run("down"); code != 0 {
		t.Fatalf("down exits %d and prints %s", code, stderr)
	}
	for name, id := range before {
		if id.Alive() {
			t.Errorf("%s, process %d, is still running", name, id.PID)
		}
	}
	for _, lock := range []string{"command.lock", "supervisor.lock", "status.json"} {
		if _, err := os.Stat(s.dir + "/" + lock); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s still exists: %v", lock, err)
		}
	}
	if _, stderr, code := s.run("down", "--purge"); code != 0 {
		t.Errorf("down --purge exits %d and prints %s", code, stderr)
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory still exists: %v", err)
	}
}

func TestInterruptedUpLeavesNoProcesses(t *testing.T) {
	s := &sandbox{t: t, dir: t.TempDir()}
	cmd := s.command("up", "--controllers=none")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	folder, err := state.Open(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	var seen strings.Builder
	buffer, ids := make([]byte, 1024), map[string]process.Identity{}
	for {
		n, err := stderr.Read(buffer)
		seen.Write(buffer[:n])
		if len(ids) == 0 && strings.Contains(seen.String(), "◎ waiting for kube-apiserver") {
			status, err := folder.LoadStatus()
			if err != nil {
				t.Fatal(err)
			}
			ids["supervisor"] = status.Supervisor
			for _, p := range status.Parts {
				ids[p.Name] = p.Identity
			}
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil {
			break
		}
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != exitInterrupted {
		t.Errorf("up returns %v:\n%s", err, &seen)
	}
	if len(ids) == 0 || !strings.Contains(seen.String(), "stopping its processes") {
		t.Errorf("up prints:\n%s", &seen)
	}
	for name, id := range ids {
		if id.Alive() {
			t.Errorf("%s, process %d, is still running", name, id.PID)
		}
	}
}

// TestDamagedData checks that up suggests to remove the data with which a sandbox does not start, and
// that the suggestion works.
func TestDamagedData(t *testing.T) {
	t.Parallel()
	s := &sandbox{t: t, dir: filepath.Join(t.TempDir(), "it's")}
	folder, err := state.Open(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(folder.Create(), os.WriteFile(folder.Path("sandbox.json"), []byte("{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	remedy := "\n  if the data of the previous run is damaged, remove it and start the sandbox again: flux sandbox down --purge --dir " + quote(s.dir) + "\n"
	if _, stderr, code := s.run("up", "--controllers=none"); code != 1 || !strings.HasSuffix(stderr, remedy) {
		t.Errorf("up exits %d and prints:\n%s", code, stderr)
	}
	_, stderr, code := s.run("down", "--purge")
	if _, err := os.Stat(s.dir); code != 0 || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("down exits %d, the directory: %v\n%s", code, err, stderr)
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"plain", "with space", "it's", `$HOME "x" \`, "a\nb"} {
		out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", "printf %s "+quote(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("the shell evaluates %q as %q, %v", text, out, err)
		}
	}
}
