package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// manyLines is large enough that a pod is deleted while it writes the lines.
const manyLines = 1000

// followLogs deletes a busy controller's pod while its log is followed, and compares
// the output with the log files of the pods' processes.
func followLogs(f *fixture) {
	const busy = "notification-controller"
	files := logFiles(f)
	proxy, most := countLogRequests(f)
	command := follow(f.shell.with("KUBECONFIG="+proxy), "logs", "--all-namespaces", "--follow", "--output=json", fmt.Sprintf("--max-log-requests=%d", len(files)))
	old := controllerPod(f, busy)
	// The controller logs each request until it exits.
	var calling sync.WaitGroup
	calling.Go(func() {
		address, failed := webhookAddress(f, old), error(nil)
		for i := 0; failed == nil; i++ {
			failed = postUnknown(f, address, i)
		}
	})
	command.waits("the first lines", func(lines []string) bool { return len(of(lines, old)) > manyLines })
	f.shell.run("kubectl", "delete", "pod", old, "--namespace=flux-system", "--wait=false")
	f.eventually("another pod", pods, kube.Selection{Namespace: "flux-system", Labels: "app=" + busy}, func(e kube.Event) bool {
		ready, _ := controllers.FindCondition(e.Object, "Ready")
		return !e.Deleted && controllers.Name(e.Object) != old && ready.Status == "True"
	})
	calling.Wait()
	for name, file := range logFiles(f) {
		files[name] = file
	}
	young := controllerPod(f, busy)
	for address, i := webhookAddress(f, young), 0; i < manyLines; i++ {
		if err := postUnknown(f, address, i); err != nil {
			f.t.Fatal(err)
		}
	}
	command.waits("the new pod's lines", func(lines []string) bool { return len(of(lines, young)) > manyLines })
	written := map[string][]string{}
	for name, file := range files {
		written[name] = logLines(f.t, file)
	}
	command.waits("all that has been written", func(lines []string) bool {
		for name := range files {
			if len(of(lines, name)) < len(written[name]) {
				return false
			}
		}
		return true
	})
	lines, code := command.interrupt()
	if code != 130 {
		f.t.Errorf("interrupted, flux logs ends with %d", code)
	}
	if strings.Contains(command.stderr.String(), "interrupted") {
		f.t.Errorf("flux logs reports its interruption as an error: %s", command.stderr.String())
	}
	for name, file := range files {
		compareLines(f.t, name, logLines(f.t, file), of(lines, name))
	}
	if n := most(); n > len(files)-1 {
		f.t.Errorf("%d logs were read at once, %d are allowed", n, len(files)-1)
	}
	delete(files, old)
	compareFilters(f, files)
}

// webhookAddress returns the address of the webhook server of a notification-controller.
func webhookAddress(f *fixture, pod string) string {
	f.t.Helper()
	for _, record := range podRecords(f.t, f.cluster) {
		if record.Name == pod {
			return fmt.Sprintf("http://127.0.0.1:%d/hook/", record.Ports["9292"])
		}
	}
	f.t.Fatalf("the sandbox has no record of pod %s", pod)
	return ""
}

// postUnknown calls a webhook that does not exist. The controller suppresses repeated
// messages, so each call uses another name.
func postUnknown(f *fixture, address string, number int) error {
	request, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, address+strconv.Itoa(number), http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, response.Body.Close())
}

// logFiles links the log file of each pod, by the name of the pod, so that it is kept
// when the pod is deleted.
func logFiles(f *fixture) map[string]string {
	f.t.Helper()
	kept := filepath.Join(f.cluster.Dir, "kept")
	if err := os.MkdirAll(kept, 0o700); err != nil {
		f.t.Fatal(err)
	}
	files := map[string]string{}
	for _, record := range podRecords(f.t, f.cluster) {
		files[record.Name] = filepath.Join(kept, record.Name)
		if err := os.Link(record.LogFile, files[record.Name]); err != nil && !errors.Is(err, os.ErrExist) {
			f.t.Fatal(err)
		}
	}
	return files
}

// logLines returns the lines of a log file in the container runtime log format: a time, a stream, whether
// the line is complete, and the text.
func logLines(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	part := ""
	for line := range strings.Lines(string(data)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 4)
		if len(fields) < 4 || !strings.HasSuffix(line, "\n") {
			break // the line is incomplete
		}
		if part += fields[3]; fields[2] == "F" {
			lines, part = append(lines, part), ""
		}
	}
	return lines
}

// of returns the printed lines of a pod.
func of(lines []string, pod string) []string {
	var mine []string
	for _, line := range lines {
		if strings.HasPrefix(line, fmt.Sprintf("{%q:%q", "pod", pod)) {
			mine = append(mine, line)
		}
	}
	return mine
}

// compareLines compares the log of a pod with the printed lines: records must be equal except
// for the prefix of the pod, unstructured lines must have the same message.
func compareLines(t *testing.T, pod string, written, shown []string) {
	t.Helper()
	if len(shown) > len(written) {
		t.Errorf("%s: %d lines are shown of %d", pod, len(shown), len(written))
		return
	}
	var want, got []string
	for i, line := range shown {
		text := written[i]
		if rest, ok := strings.CutPrefix(text, "{"); ok {
			text = fmt.Sprintf("{%q:%q,", "pod", pod) + rest
		} else {
			var r struct{ Msg string }
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			line = r.Msg
		}
		want, got = append(want, text), append(got, line)
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("%s: -written +shown:\n%s", pod, diff)
	}
}

func controllerPod(f *fixture, app string) string {
	f.t.Helper()
	newest, name := "", ""
	_, err := f.cluster.Client.List(f.t.Context(), pods, kube.Selection{Namespace: "flux-system", Labels: "app=" + app}, func(o controllers.Object) error {
		if created := text(o, "metadata.creationTimestamp"); text(o, "metadata.deletionTimestamp") == "" && created > newest {
			newest, name = created, controllers.Name(o)
		}
		return nil
	})
	if err != nil || name == "" {
		f.t.Fatalf("looking for the pod of %s: %v", app, err)
	}
	return name
}

// countLogRequests returns a kubeconfig whose proxy records the maximum number of concurrent log requests.
func countLogRequests(f *fixture) (kubeconfig string, most func() int) {
	f.t.Helper()
	proxy := startProxy(f)
	var mu sync.Mutex
	open, peak := 0, 0
	proxy.OnServe(func(r *http.Request) func() {
		if !strings.HasSuffix(r.URL.Path, "/log") {
			return func() {}
		}
		mu.Lock()
		defer mu.Unlock()
		open++
		peak = max(peak, open)
		return func() {
			mu.Lock()
			defer mu.Unlock()
			open--
		}
	})
	return proxy.Kubeconfig, func() int {
		mu.Lock()
		defer mu.Unlock()
		return peak
	}
}
