package container

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxkit/flux/sandbox/internal/controller"
)

// fakeHost returns addresses that show the arguments of the call.
func fakeHost() Host {
	return Host{
		Listen: func(port int32) (string, error) { return fmt.Sprintf("127.0.0.1:1%d", port), nil },
		Service: func(ns, name string, port int32) (string, error) {
			return fmt.Sprintf("<%s/%s:%d>", ns, name, port), nil
		},
		Volume: func(name string) string { return "/pod/volumes/" + name },
		ConfigMap: func(name string) (map[string]string, error) {
			if name != "settings" {
				return nil, errors.New("configmap " + name + " not found")
			}
			return map[string]string{"level": "debug"}, nil
		},
		Secret: func(string) (map[string]string, error) { return map[string]string{"token": "s3cret"}, nil },
	}
}

func TestTranslateFluxContainer(t *testing.T) {
	t.Parallel()
	c := corev1.Container{
		Name: "manager",
		Args: []string{
			"--events-addr=http://notification-controller.$(RUNTIME_NAMESPACE).svc.cluster.local.",
			"--storage-path=/data", "--storage-adv-addr=source-controller.$(RUNTIME_NAMESPACE).svc.cluster.local.",
			"--enable-leader-election", "--metrics-addr", ":8081",
		},
		Env: []corev1.EnvVar{
			{Name: "RUNTIME_NAMESPACE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}},
			{Name: "GOMEMLIMIT", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{ContainerName: "manager", Resource: "limits.memory"}}},
			{Name: "TUF_ROOT", Value: "/tmp/.sigstore"},
			{Name: "GREETING", Value: "from $(RUNTIME_NAMESPACE) and $(UNDEFINED)"},
			{Name: "LEVEL", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Key: "level"}}},
		},
		Resources:    corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}},
		VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "temp", MountPath: "/tmp"}},
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "source-1"}}
	source, _ := controller.Get("source-controller")
	got, err := Translate(pod, &c, source, fakeHost())
	if err != nil {
		t.Fatal(err)
	}
	want := Command{
		Args: []string{
			"--events-addr=http://<flux-system/notification-controller:80>",
			"--storage-adv-addr=<flux-system/source-controller:80>", "--enable-leader-election",
			"--storage-path=/pod/volumes/data",
			"--metrics-addr=127.0.0.1:18081", "--health-addr=127.0.0.1:19440", "--storage-addr=127.0.0.1:19090",
		},
		Env: []string{
			"RUNTIME_NAMESPACE=flux-system", "GOMEMLIMIT=1073741824", "TUF_ROOT=/pod/volumes/temp/.sigstore",
			"GREETING=from flux-system and $(UNDEFINED)", "LEVEL=debug",
		},
		Ports: map[int32]string{8081: "127.0.0.1:18081", 9440: "127.0.0.1:19440", 9090: "127.0.0.1:19090"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDefaultFoldersAreNotOnThisMachine(t *testing.T) {
	t.Parallel()
	reflector, _ := controller.Get("image-reflector-controller")
	reflector.Listens = nil
	for _, c := range []struct {
		mounts []corev1.VolumeMount
		want   string
	}{
		{[]corev1.VolumeMount{{Name: "data", MountPath: "/data"}}, "--storage-path=/pod/volumes/data"},
		{nil, "--storage-path=/pod/volumes/unmounted-data"},
	} {
		got, err := Translate(&corev1.Pod{}, &corev1.Container{VolumeMounts: c.mounts}, reflector, fakeHost())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{c.want}, got.Args); diff != "" {
			t.Error(diff)
		}
	}
}

func TestTranslateAddresses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"--a=http://one.two.svc/path":               "--a=http://<two/one:80>/path",
		"--a=one.two.svc.cluster.local:9292":        "--a=<two/one:9292>",
		"one.two.svc.corp.example.:8080/x":          "<two/one:8080>/x",
		"--a=https://example.com/svc":               "--a=https://example.com/svc",
		"--watch-label-selector=!sharding.flux/key": "--watch-label-selector=!sharding.flux/key",
		"--storage-path=/database":                  "--storage-path=/database",
	} {
		tr := translator{host: fakeHost(), mounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}
		got, err := tr.translate(in)
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("translate(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestLongestMountWins(t *testing.T) {
	t.Parallel()
	tr := translator{host: fakeHost(), mounts: []corev1.VolumeMount{
		{Name: "all", MountPath: "/"}, {Name: "deep", MountPath: "/data/deep", SubPath: "sub"}, {Name: "data", MountPath: "/data"},
	}}
	for in, want := range map[string]string{
		"/data/deep/x": "/pod/volumes/deep/sub/x",
		"/data/other":  "/pod/volumes/data/other",
		"/etc/x":       "/pod/volumes/all/etc/x",
	} {
		if got := tr.mounted(in); got != want {
			t.Errorf("mounted(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestMissingReference(t *testing.T) {
	t.Parallel()
	ref := &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "absent"}, Key: "k"}
	c := corev1.Container{Env: []corev1.EnvVar{{Name: "X", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: ref}}}}
	_, err := Translate(&corev1.Pod{}, &c, controller.Controller{}, fakeHost())
	if err == nil || !strings.Contains(err.Error(), "resolving variable X: configmap absent not found") {
		t.Errorf("error = %v", err)
	}
	yes := true
	ref.Optional = &yes
	got, err := Translate(&corev1.Pod{}, &c, controller.Controller{}, fakeHost())
	if err != nil || len(got.Env) != 0 {
		t.Errorf("an optional reference returns %v, %v", got.Env, err)
	}
}
