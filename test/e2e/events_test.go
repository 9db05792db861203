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
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// event1 contains the fields of a Kubernetes event that the test reads.
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

// said identifies an event; a repeated event has a different identity.
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

// compareEvents compares events with the events in the API, at the end while the API server is
// down.
func compareEvents(f *fixture) {
	// A source without a new revision has an event without one.
	f.shell.run("flux", "reconcile", "source", "git", "app", "--namespace=apps")
	f.eventually("an event about an unchanged source", kube.ResourceFor(schema.GroupVersionKind{Version: "v1", Kind: "Event"}), kube.Selection{Namespace: "apps"}, func(e kube.Event) bool {
		return text(e.Object, "involvedObject.kind") == "GitRepository" && text(e.Object, "type") == "Normal" &&
			controllers.Annotation(e.Object, "source.toolkit.fluxcd.io/revision") == ""
	})
	routine := 0 // events of a source that are unrelated to the revisions of a release
	for release, chain := range map[string][]string{
		"hr-oci": {"HelmRelease/hr-oci", "OCIRepository/chart"}, "hr-chart": {"HelmRelease/hr-chart", "HelmChart/own", "HelmRepository/app"},
		"hr-git": {"HelmRelease/hr-git", "HelmChart/apps-hr-git", "GitRepository/app"},
	} {
		var got struct{ Items []event1 }
		readJSON(f, &got, "flux", "events", "--namespace=apps", "--for=hr/"+release, "--output=json")
		want := slices.DeleteFunc(listEvents(f), func(e event1) bool {
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
		for _, events := range [][]event1{want, shown} { // within a second, any order is accepted
			slices.SortStableFunc(events, func(a, b event1) int {
				return strings.Compare(a.LastTimestamp+a.Metadata.UID, b.LastTimestamp+b.Metadata.UID)
			})
		}
		if diff := gocmp.Diff(want, shown); diff != "" || len(want) < len(chain) {
			f.t.Errorf("%s: -recorded +shown:\n%s", release, diff)
		}
		if !slices.IsSortedFunc(got.Items, func(a, b event1) int { return strings.Compare(a.LastTimestamp, b.LastTimestamp) }) {
			f.t.Errorf("%s: not in the order of time: %+v", release, got.Items)
		}
	}
	if routine == 0 {
		f.t.Errorf("no source has an event that --for omits")
	}
	watchThroughOutage(f)
}

func readJSON(f *fixture, into any, name string, args ...string) {
	f.t.Helper()
	if err := json.Unmarshal([]byte(f.shell.run(name, args...)), into); err != nil {
		f.t.Fatal(err)
	}
}

// listEvents returns the events about Flux objects from the API.
func listEvents(f *fixture) []event1 {
	f.t.Helper()
	var list struct{ Items []event1 }
	readJSON(f, &list, "kubectl", "get", "events", "--all-namespaces", "--output=json")
	return slices.DeleteFunc(list.Items, func(e event1) bool {
		group, _, _ := strings.Cut(e.InvolvedObject.APIVersion, "/")
		_, ok := controllers.KindOf(group, e.InvolvedObject.Kind)
		return !ok
	})
}

// watchThroughOutage watches events while the API server is killed and the resource version of
// the watch is compacted: every event is printed once, in order.
func watchThroughOutage(f *fixture) {
	f.t.Helper()
	first := len(listEvents(f))
	kubeconfig, lists := countLists(f)
	command := follow(f.shell.with("KUBECONFIG="+kubeconfig), "events", "--all-namespaces", "--watch", "--output=json")
	command.waits("the events so far", func(lines []string) bool { return len(lines) >= first })
	f.shell.run("flux", "reconcile", "kustomization", "ks-git", "--namespace=apps")
	command.waits("those of a reconciliation", func(lines []string) bool { return len(lines) > first })

	killAPIServer(f)
	compactEtcd(f)
	f.cluster.Sandbox(f.t, "up", "--controllers=all")
	// The holders of these leases were killed without releasing them.
	f.shell.run("kubectl", "delete", "leases", "--all", "--namespace=flux-system")
	f.shell.run("flux", "suspend", "kustomization", "ks-git", "--namespace=apps")
	f.shell.run("flux", "resume", "kustomization", "ks-git", "--namespace=apps")

	command.waits("all events", func(lines []string) bool {
		said := map[string]bool{}
		for _, e := range parsed(lines) {
			said[e.said()] = true
		}
		return !slices.ContainsFunc(listEvents(f), func(e event1) bool { return !said[e.said()] })
	})
	lines, code := command.interrupt()
	if code != 130 {
		f.t.Errorf("interrupted, flux events ends with %d", code)
	}
	if lists() < 2 {
		f.t.Error("the watch has continued from a compacted resource version")
	}
	checkOnce(f.t, parsed(lines), first)
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

// checkOnce checks that no event was printed twice, and that the first events are sorted by
// time, and later ones by their arrival.
func checkOnce(t *testing.T, shown []event1, first int) {
	t.Helper()
	said, last := map[string]bool{}, uint64(0)
	for i, e := range shown {
		if said[e.said()] {
			t.Errorf("shown twice: %+v", e)
		}
		said[e.said()] = true
		if i < first {
			last = max(last, e.version())
			continue
		}
		if e.version() <= last {
			t.Errorf("shown too late: %+v", e)
		}
		last = e.version()
	}
	if !slices.IsSortedFunc(shown[:first], func(a, b event1) int { return strings.Compare(a.LastTimestamp, b.LastTimestamp) }) {
		t.Errorf("the first ones are not in the order of time: %+v", shown[:first])
	}
}

// countLists returns a kubeconfig whose proxy counts the list requests for events.
func countLists(f *fixture) (kubeconfig string, count func() int64) {
	f.t.Helper()
	proxy := startProxy(f)
	var n atomic.Int64
	proxy.Misbehave(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/events") && r.URL.Query().Get("watch") == "" {
			n.Add(1)
		}
		return false
	})
	return proxy.Kubeconfig, n.Load
}

// killAPIServer kills the API server with SIGKILL.
func killAPIServer(f *fixture) {
	f.t.Helper()
	process := sandboxProcess(f, "kube-apiserver")
	if err := syscall.Kill(process.PID, syscall.SIGKILL); err != nil {
		f.t.Fatal(err)
	}
	late := deadline(f.t)
	for server := process; server.State == "ready"; server = sandboxProcess(f, "kube-apiserver") {
		select {
		case <-late:
			f.t.Fatalf("the API server does not exit: %+v", server)
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

func sandboxProcesses(f *fixture) []sandboxPart {
	f.t.Helper()
	var status struct{ Processes []sandboxPart }
	out, _, err := f.shell.try("flux-sandbox", "status", "--output=json", "--dir", f.cluster.Dir)
	if jsonErr := json.Unmarshal([]byte(out), &status); jsonErr != nil { // the command fails if a component has exited
		f.t.Fatalf("%v: %v\n%s", err, jsonErr, out)
	}
	return status.Processes
}

func sandboxProcess(f *fixture, name string) sandboxPart {
	f.t.Helper()
	all := sandboxProcesses(f)
	i := slices.IndexFunc(all, func(p sandboxPart) bool { return p.Name == name })
	if i < 0 {
		f.t.Fatalf("the sandbox has no part %s: %+v", name, all)
	}
	return all[i]
}

// compactEtcd removes all old versions from etcd, after a change that no watch has
// received.
func compactEtcd(f *fixture) {
	f.t.Helper()
	pki := filepath.Join(f.cluster.Dir, "pki")
	pair, err := tls.LoadX509KeyPair(filepath.Join(pki, "apiserver-etcd.crt"), filepath.Join(pki, "apiserver-etcd.key"))
	if err != nil {
		f.t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(pki, "ca.crt"))
	if err != nil {
		f.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	defer client.CloseIdleConnections()
	ask := func(path string, question any) (answer struct{ Header struct{ Revision string } }) {
		body, err := json.Marshal(question)
		if err != nil {
			f.t.Fatal(err)
		}
		request, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, fmt.Sprintf("https://127.0.0.1:%d/v3/kv/%s", sandboxProcess(f, "etcd").Ports["client"], path), bytes.NewReader(body))
		if err != nil {
			f.t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			f.t.Fatal(err)
		}
		err = json.NewDecoder(response.Body).Decode(&answer)
		if closed := response.Body.Close(); err != nil || closed != nil || response.StatusCode != http.StatusOK {
			f.t.Fatalf("etcd returns %s: %v, %v", response.Status, err, closed)
		}
		return answer
	}
	var now string
	for range 3 {
		now = ask("put", map[string]string{"key": "dGVzdA==", "value": "dGVzdA=="}).Header.Revision
	}
	ask("compaction", map[string]any{"revision": now, "physical": true})
}
