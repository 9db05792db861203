package e2e_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/controllers"
)

// event1 has the fields of a Kubernetes event that the test reads.
type event1 struct {
	Metadata struct {
		UID, ResourceVersion string
		Annotations          map[string]string
	}
	Type           string
	InvolvedObject struct{ APIVersion, Kind, Namespace, Name string }
	Reason         string
	Message        string
	Count          int
	LastTimestamp  string
	EventTime      string
	Series         struct {
		Count            int
		LastObservedTime string
	}
}

func (e event1) about() string { return e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name }

// concerns reports whether an event of a source is about the revision of its
// consumers. Each source has one revision here.
func (e event1) concerns() bool {
	return e.Type == "Warning" || e.Metadata.Annotations["source.toolkit.fluxcd.io/revision"] != ""
}

// said identifies an event: a repeated event has another value.
func (e event1) said() string {
	return fmt.Sprint(e.Metadata.UID, e.Count, e.LastTimestamp, e.EventTime, e.Series, e.Message)
}

func (e event1) version() uint64 {
	n, err := strconv.ParseUint(e.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// events compares events with those of the API, at the end while the API server is down.
func (s *story) events() {
	routine := 0 // events of a source that concern no revision of a release
	for release, chain := range map[string][]string{
		"hr-oci": {"HelmRelease/hr-oci", "OCIRepository/chart"}, "hr-chart": {"HelmRelease/hr-chart", "HelmChart/own", "HelmRepository/app"},
		"hr-git": {"HelmRelease/hr-git", "HelmChart/apps-hr-git", "GitRepository/app"},
	} {
		var got struct{ Items []event1 }
		s.read(&got, "flux", "events", "--namespace=apps", "--for=hr/"+release, "--output=json")
		want := slices.DeleteFunc(s.recorded(), func(e event1) bool {
			if e.InvolvedObject.Namespace != "apps" || !slices.Contains(chain, e.about()) {
				return true
			}
			if e.about() == chain[0] || e.concerns() {
				return false
			}
			routine++
			return true
		})
		slices.SortStableFunc(want, func(a, b event1) int { return strings.Compare(a.LastTimestamp, b.LastTimestamp) })
		shown := slices.Clone(got.Items)
		for _, events := range [][]event1{want, shown} { // within a second any order will do here
			slices.SortStableFunc(events, func(a, b event1) int {
				return strings.Compare(a.LastTimestamp+a.Metadata.UID, b.LastTimestamp+b.Metadata.UID)
			})
		}
		if diff := gocmp.Diff(want, shown); diff != "" || len(want) < len(chain) {
			s.Errorf("%s: -recorded +shown:\n%s", release, diff)
		}
		if !slices.IsSortedFunc(got.Items, func(a, b event1) int { return strings.Compare(a.LastTimestamp, b.LastTimestamp) }) {
			s.Errorf("%s: not in the order of time: %+v", release, got.Items)
		}
	}
	if routine == 0 {
		s.Errorf("no source has an event that --for omits")
	}
	s.outage()
}

func (s *story) read(into any, name string, args ...string) {
	s.Helper()
	if err := json.Unmarshal([]byte(s.run(name, args...)), into); err != nil {
		s.Fatal(err)
	}
}

// recorded returns the events about Flux objects from the API.
func (s *story) recorded() []event1 {
	s.Helper()
	var list struct{ Items []event1 }
	s.read(&list, "kubectl", "get", "events", "--all-namespaces", "--output=json")
	return slices.DeleteFunc(list.Items, func(e event1) bool {
		group, _, _ := strings.Cut(e.InvolvedObject.APIVersion, "/")
		_, ok := controllers.KindOf(group, e.InvolvedObject.Kind)
		return !ok
	})
}

// outage watches events while the API server is killed and the resource version of
// the watch is compacted: every event is printed once, in order.
func (s *story) outage() {
	s.Helper()
	first := len(s.recorded())
	kubeconfig, lists := s.lists()
	f := s.follow(kubeconfig, "events", "--all-namespaces", "--watch", "--output=json")
	f.waits("the events so far", func(lines []string) bool { return len(lines) >= first })
	s.run("flux", "reconcile", "kustomization", "ks-git", "--namespace=apps")
	f.waits("those of a reconciliation", func(lines []string) bool { return len(lines) > first })

	s.killServer()
	s.compact()
	s.cluster.Sandbox(s.T, "up", "--controllers=all")
	// The holders of these leases were killed without releasing them.
	s.run("kubectl", "delete", "leases", "--all", "--namespace=flux-system")
	s.run("flux", "suspend", "kustomization", "ks-git", "--namespace=apps")
	s.run("flux", "resume", "kustomization", "ks-git", "--namespace=apps")

	f.waits("all events", func(lines []string) bool {
		said := map[string]bool{}
		for _, e := range parsed(lines) {
			said[e.said()] = true
		}
		return !slices.ContainsFunc(s.recorded(), func(e event1) bool { return !said[e.said()] })
	})
	lines, code := f.interrupt()
	if code != 130 {
		s.Errorf("interrupted, flux events ends with %d", code)
	}
	if lists() < 2 {
		s.Error("the watch has continued from a compacted resource version")
	}
	s.once(parsed(lines), first)
}

func parsed(lines []string) []event1 {
	var all []event1
	for _, line := range lines {
		var e event1
		if json.Unmarshal([]byte(line), &e) == nil {
			all = append(all, e)
		}
	}
	return all
}

// once checks that no event was printed twice, and the order: the first ones by
// time, later ones in the order of arrival.
func (s *story) once(shown []event1, first int) {
	s.Helper()
	said, last := map[string]bool{}, uint64(0)
	for i, e := range shown {
		if said[e.said()] {
			s.Errorf("shown twice: %+v", e)
		}
		said[e.said()] = true
		if i < first {
			last = max(last, e.version())
			continue
		}
		if e.version() <= last {
			s.Errorf("shown too late: %+v", e)
		}
		last = e.version()
	}
	if !slices.IsSortedFunc(shown[:first], func(a, b event1) int { return strings.Compare(a.LastTimestamp, b.LastTimestamp) }) {
		s.Errorf("the first ones are not in the order of time: %+v", shown[:first])
	}
}

// lists returns a kubeconfig whose proxy counts the list requests for events.
func (s *story) lists() (kubeconfig string, count func() int64) {
	s.Helper()
	proxy := s.proxy()
	var n atomic.Int64
	proxy.Misbehave(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/events") && r.URL.Query().Get("watch") == "" {
			n.Add(1)
		}
		return false
	})
	return proxy.Kubeconfig, n.Load
}

// killServer kills the API server with SIGKILL.
func (s *story) killServer() {
	s.Helper()
	process := s.part("kube-apiserver")
	if err := syscall.Kill(process.PID, syscall.SIGKILL); err != nil {
		s.Fatal(err)
	}
	for late := s.deadline(); s.part("kube-apiserver").State == "ready"; {
		select {
		case <-late:
			s.Fatal("the API server does not exit")
		default:
		}
	}
}

// sandboxPart is a process of the sandbox.
type sandboxPart struct {
	Name  string
	PID   int
	State string
	Ports map[string]int
}

func (s *story) parts() []sandboxPart {
	s.Helper()
	var status struct{ Processes []sandboxPart }
	out, _, err := s.try("flux-sandbox", "status", "--output=json", "--dir", s.cluster.Dir)
	if jsonErr := json.Unmarshal([]byte(out), &status); jsonErr != nil { // the command fails if a part has exited
		s.Fatalf("%v: %v\n%s", err, jsonErr, out)
	}
	return status.Processes
}

func (s *story) part(name string) sandboxPart {
	s.Helper()
	all := s.parts()
	i := slices.IndexFunc(all, func(p sandboxPart) bool { return p.Name == name })
	if i < 0 {
		s.Fatalf("the sandbox has no part %s: %+v", name, all)
	}
	return all[i]
}

// compact removes all old versions from etcd, after a change that no watch has
// received.
func (s *story) compact() {
	s.Helper()
	pki := filepath.Join(s.cluster.Dir, "pki")
	pair, err := tls.LoadX509KeyPair(filepath.Join(pki, "apiserver-etcd.crt"), filepath.Join(pki, "apiserver-etcd.key"))
	if err != nil {
		s.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(pki, "ca.crt"))
	if err != nil {
		s.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	defer client.CloseIdleConnections()
	ask := func(path string, question any) (answer struct{ Header struct{ Revision string } }) {
		body, err := json.Marshal(question)
		if err != nil {
			s.Fatal(err)
		}
		request, err := http.NewRequestWithContext(s.Context(), http.MethodPost, fmt.Sprintf("https://127.0.0.1:%d/v3/kv/%s", s.part("etcd").Ports["client"], path), bytes.NewReader(body))
		if err != nil {
			s.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			s.Fatal(err)
		}
		err = json.NewDecoder(response.Body).Decode(&answer)
		if closed := response.Body.Close(); err != nil || closed != nil || response.StatusCode != http.StatusOK {
			s.Fatalf("etcd returns %s: %v, %v", response.Status, err, closed)
		}
		return answer
	}
	var now string
	for range 3 {
		now = ask("put", map[string]string{"key": "dGVzdA==", "value": "dGVzdA=="}).Header.Revision
	}
	ask("compaction", map[string]any{"revision": now, "physical": true})
}
