package kubelet

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cri-client/pkg/logs"
)

func TestLogWriterAndReader(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "0.log")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)
	w := &logWriter{file: file, now: func() time.Time { now = now.Add(time.Second); return now }}
	long := strings.Repeat("x", maxLine+10)
	for _, chunk := range []string{"first\nsec", "ond\n\n", long + "\n", "last"} {
		if _, err := w.Write([]byte(chunk)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	read := func(o corev1.PodLogOptions) string {
		var out bytes.Buffer
		runtime := attempt{running: func() bool { return false }}
		if err := logs.ReadLogs(t.Context(), path, path, logOptions(&o, now), runtime, &out, &out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	two, since := int64(2), metav1.NewTime(time.Date(2026, 11, 1, 10, 0, 6, 0, time.UTC))
	for _, c := range []struct {
		name    string
		options corev1.PodLogOptions
		want    string
	}{
		{"all", corev1.PodLogOptions{}, "first\nsecond\n\n" + long + "\nlast\n"},
		{"follow to the end", corev1.PodLogOptions{Follow: true}, "first\nsecond\n\n" + long + "\nlast\n"},
		{"since", corev1.PodLogOptions{SinceTime: &since}, "last\n"},
		{"limit", corev1.PodLogOptions{LimitBytes: &two}, "fi"},
	} {
		if diff := cmp.Diff(c.want, read(c.options)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	if got := read(corev1.PodLogOptions{TailLines: new(int64)}); got != "" {
		t.Errorf("a tail of zero lines: %q", got)
	}
	if got := read(corev1.PodLogOptions{Timestamps: true}); !strings.HasPrefix(got, "2026-11-01T10:00:01.000000000Z first\n") {
		t.Errorf("with timestamps: %.40q", got)
	}
}

func TestSimulatedLine(t *testing.T) {
	t.Parallel()
	started := metav1.NewTime(time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "web-1"}, Status: corev1.PodStatus{StartTime: &started}}
	zero, one, later := int64(0), int64(1), metav1.NewTime(started.Add(time.Second))
	line := "container nginx of pod apps/web-1 is simulated by the sandbox\n"
	for _, c := range []struct {
		name    string
		options corev1.PodLogOptions
		want    string
	}{
		{"all", corev1.PodLogOptions{}, line},
		{"no lines", corev1.PodLogOptions{TailLines: &zero}, ""},
		{"too old", corev1.PodLogOptions{SinceTime: &later}, ""},
		{"long ago", corev1.PodLogOptions{SinceSeconds: &one}, ""},
		{"one byte", corev1.PodLogOptions{LimitBytes: &one}, "c"},
		{"times", corev1.PodLogOptions{Timestamps: true}, "2026-11-01T10:00:00Z " + line},
	} {
		var out bytes.Buffer
		if err := simulatedLine(pod, "nginx", &c.options, &out); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, out.String()); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}
