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

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// manyLines is large enough that a pod is deleted while it writes them.
const manyLines = 1000

// follows deletes a busy controller's pod while its log is followed, and compares
// the output with the log files of the pods' processes.
func (s *story) follows() {
	const busy = "notification-controller"
	files := s.logFiles()
	proxy, most := s.watched()
	f := s.follow(proxy, "logs", "--all-namespaces", "--follow", "--output=json", fmt.Sprintf("--max-log-requests=%d", len(files)))
	old := s.controllerPod(busy)
	// The controller logs each request until it exits.
	var calling sync.WaitGroup
	calling.Go(func() {
		address, failed := s.webhook(old), error(nil)
		for i := 0; failed == nil; i++ {
			failed = s.calls404(address, i)
		}
	})
	f.waits("the first lines", func(lines []string) bool { return len(of(lines, old)) > manyLines })
	s.run("kubectl", "delete", "pod", old, "--namespace=flux-system", "--wait=false")
	s.eventually("another pod", pods, kube.Selection{Namespace: "flux-system", Labels: "app=" + busy}, func(e kube.Event) bool {
		ready, _ := controllers.FindCondition(e.Object, "Ready")
		return !e.Deleted && controllers.Name(e.Object) != old && ready.Status == "True"
	})
	calling.Wait()
	for name, file := range s.logFiles() {
		files[name] = file
	}
	young := s.controllerPod(busy)
	for address, i := s.webhook(young), 0; i < manyLines; i++ {
		if err := s.calls404(address, i); err != nil {
			s.Fatal(err)
		}
	}
	f.waits("the new pod's lines", func(lines []string) bool { return len(of(lines, young)) > manyLines })
	written := map[string][]string{}
	for name, file := range files {
		written[name] = s.written(file)
	}
	f.waits("all that has been written", func(lines []string) bool {
		for name := range files {
			if len(of(lines, name)) < len(written[name]) {
				return false
			}
		}
		return true
	})
	lines, code := f.interrupt()
	if code != 130 {
		s.Errorf("interrupted, flux logs ends with %d", code)
	}
	if strings.Contains(f.stderr.String(), "interrupted") {
		s.Errorf("flux logs reports its interruption as an error: %s", f.stderr.String())
	}
	for name, file := range files {
		s.same(name, s.written(file), of(lines, name))
	}
	if n := most(); n > len(files)-1 {
		s.Errorf("%d logs were read at once, %d are allowed", n, len(files)-1)
	}
	delete(files, old)
	s.about(files)
}

// webhook returns the address of the webhook server of a notification-controller.
func (s *story) webhook(pod string) string {
	s.Helper()
	for _, record := range s.podRecords() {
		if record.Name == pod {
			return fmt.Sprintf("http://127.0.0.1:%d/hook/", record.Ports["9292"])
		}
	}
	s.Fatalf("the sandbox has no record of pod %s", pod)
	return ""
}

// calls404 calls a webhook that does not exist. The controller suppresses repeated
// messages, so each call uses another name.
func (s *story) calls404(address string, number int) error {
	request, err := http.NewRequestWithContext(s.Context(), http.MethodPost, address+strconv.Itoa(number), http.NoBody)
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

// podRecord is the record of the sandbox about a pod that is a process.
type podRecord struct {
	Name    string
	LogFile string
	Ports   map[string]int
}

func (s *story) podRecords() []podRecord {
	s.Helper()
	paths, err := filepath.Glob(filepath.Join(s.cluster.Dir, "pods", "*", "pod.json"))
	if err != nil {
		s.Fatal(err)
	}
	var all []podRecord
	for _, path := range paths {
		var record podRecord
		data, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(data, &record)
		}
		if err != nil {
			s.Fatal(err)
		}
		all = append(all, record)
	}
	return all
}

// logFiles links the log file of each pod, by the name of the pod, so that it is kept
// when the pod is deleted.
func (s *story) logFiles() map[string]string {
	s.Helper()
	kept := filepath.Join(s.cluster.Dir, "kept")
	if err := os.MkdirAll(kept, 0o700); err != nil {
		s.Fatal(err)
	}
	files := map[string]string{}
	for _, record := range s.podRecords() {
		files[record.Name] = filepath.Join(kept, record.Name)
		if err := os.Link(record.LogFile, files[record.Name]); err != nil && !errors.Is(err, os.ErrExist) {
			s.Fatal(err)
		}
	}
	return files
}

// written returns the lines of a log file in the format of container runtimes: a time,
// a stream, whether the line is complete, and the text.
func (s *story) written(file string) []string {
	s.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		s.Fatal(err)
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

// same compares the log of a pod with the printed lines: records must be equal except
// for the prefix of the pod, unstructured lines must have the same message.
func (s *story) same(pod string, written, shown []string) {
	s.Helper()
	if len(shown) > len(written) {
		s.Errorf("%s: %d lines are shown of %d", pod, len(shown), len(written))
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
				s.Fatal(err)
			}
			line = r.Msg
		}
		want, got = append(want, text), append(got, line)
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		s.Errorf("%s: -written +shown:\n%s", pod, diff)
	}
}

func (s *story) controllerPod(app string) string {
	s.Helper()
	newest, name := "", ""
	_, err := s.cluster.Client.List(s.Context(), pods, kube.Selection{Namespace: "flux-system", Labels: "app=" + app}, func(o controllers.Object) error {
		if created := text(o, "metadata.creationTimestamp"); text(o, "metadata.deletionTimestamp") == "" && created > newest {
			newest, name = created, controllers.Name(o)
		}
		return nil
	})
	if err != nil || name == "" {
		s.Fatalf("looking for the pod of %s: %v", app, err)
	}
	return name
}

// watched returns a kubeconfig whose proxy records the maximum number of concurrent log requests.
func (s *story) watched() (kubeconfig string, most func() int) {
	s.Helper()
	proxy := s.proxy()
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
