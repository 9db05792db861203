package faults_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/test/support/fakeapi"
	"github.com/fluxkit/flux/test/support/tier"
)

// passingFaults lists faults that affect a request once.
var passingFaults = map[string]func(*world, *testing.T, http.ResponseWriter, *http.Request){
	"429": status(http.StatusTooManyRequests, "TooManyRequests"),
	"500": status(http.StatusInternalServerError, "InternalError"),
	"502": func(_ *world, _ *testing.T, w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "<html>Bad Gateway</html>", http.StatusBadGateway)
	},
	"503":   status(http.StatusServiceUnavailable, "ServiceUnavailable"),
	"504":   status(http.StatusGatewayTimeout, "Timeout"),
	"reset": func(_ *world, t *testing.T, w http.ResponseWriter, _ *http.Request) { reset(t, w) },
	"closed": func(*world, *testing.T, http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	},
}

func status(code int, reason string) func(*world, *testing.T, http.ResponseWriter, *http.Request) {
	return func(_ *world, _ *testing.T, w http.ResponseWriter, _ *http.Request) {
		fakeapi.Status(w, code, reason, "for a moment")
	}
}

// reset resets a connection, like the exit of a killed process.
func reset(t *testing.T, w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		err = tcp.SetLinger(0)
	}
	if err != nil {
		t.Error(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// half responds with the first half of the server's response and closes the connection.
func half(w *world, t *testing.T, rw http.ResponseWriter, r *http.Request) {
	transport, err := rest.TransportFor(rest.CopyConfig(w.cluster.Client.Config))
	if err != nil {
		t.Error(err)
		return
	}
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, w.cluster.Client.Config.Host+r.URL.RequestURI(), nil)
	if err != nil {
		t.Error(err)
		return
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Error(err)
		return
	}
	body, err := io.ReadAll(response.Body)
	if err != nil || len(body) < 100 {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	rw.Header().Set("Content-Type", "application/json")
	if _, err := rw.Write(body[:len(body)/2]); err != nil {
		t.Error(err)
	}
	rw.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// enduring lists commands on a Kustomization app that must succeed despite a fault of any
// one of their requests. For those that wait, a controller is simulated.
var enduring = map[string]struct {
	args     []string
	answered bool
	stdout   string
}{
	"get":       {[]string{"get", "ks"}, false, "first of app"},
	"get all":   {[]string{"get", "all"}, false, "first of app"},
	"export":    {[]string{"export", "ks", "app"}, false, "name: app"},
	"tree":      {[]string{"tree", "ks", "app"}, false, "app"},
	"wait":      {[]string{"wait", "ks", "app"}, false, ""},
	"suspend":   {[]string{"suspend", "ks", "app"}, false, ""},
	"resume":    {[]string{"resume", "ks", "app"}, true, ""},
	"reconcile": {[]string{"reconcile", "ks", "app"}, true, ""},
}

// passing injects each fault once into each request of each command: the command must
// succeed and report the retry once.
func (w *world) passing(t *testing.T) {
	for what, fault := range passingFaults {
		for name, command := range enduring {
			if !tier.Nightly() && what != "502" && name != "reconcile" {
				continue
			}
			t.Run(what+" "+name, func(t *testing.T) {
				t.Parallel()
				namespace := "passing-" + strings.ToLower(strings.ReplaceAll(what+"-"+name, " ", "-"))
				w.seed(t, "", "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+namespace+"}\n")
				w.kustomizations(t, namespace, "app")
				if command.answered {
					w.answer(t, namespace, "app")
				}
				proxy := w.proxy(t)
				var mu sync.Mutex
				faulted := map[string]bool{}
				proxy.Misbehave(func(rw http.ResponseWriter, r *http.Request) bool {
					if spare(r) {
						return false
					}
					mu.Lock()
					id := sort(r) + " " + r.URL.Path
					first := !faulted[id]
					faulted[id] = true
					mu.Unlock()
					if first {
						fault(w, t, rw, r)
					}
					return first
				})
				p := w.start(t, proxy.Kubeconfig, append(command.args, "-n", namespace)...)
				p.exits(0)
				if !strings.Contains(p.stdout.String(), command.stdout) {
					p.fatalf("the output does not contain %q", command.stdout)
				}
				if !strings.Contains(p.stderr.String(), "retrying after ") {
					p.fatalf("the retry is not reported")
				}
				if len(faulted) == 0 {
					p.fatalf("no request was sent")
				}
			})
		}
	}
}

// cutLists checks that a list that is cut off once is read completely.
func (w *world) cutLists(t *testing.T, namespace string) {
	w.kustomizations(t, namespace, "app", "same")
	for _, args := range [][]string{{"get", "ks"}, {"get", "all"}, {"export", "ks", "--all"}, {"get", "ks", "--watch"}} {
		proxy := w.proxy(t)
		var once sync.Map
		proxy.Misbehave(func(rw http.ResponseWriter, r *http.Request) bool {
			if _, again := once.LoadOrStore(r.URL.Path, true); again || spare(r) || sort(r) != "list" {
				return false
			}
			half(w, t, rw, r)
			return true
		})
		p := w.start(t, proxy.Kubeconfig, append(args, "-n", namespace)...)
		if args[len(args)-1] == "--watch" {
			p.until(p.stdout, "first of same")
			p.interrupt()
		} else {
			p.exits(0)
		}
		for _, name := range []string{"app", "same"} {
			if n := strings.Count(p.stdout.String(), "first of "+name); args[0] == "get" && n != 1 {
				p.fatalf("%s is printed %d times", name, n)
			}
		}
		if !strings.Contains(p.stderr.String(), "retrying after the connection to the API server was lost while listing") {
			p.fatalf("the retry is not reported")
		}
	}
}

// permanent checks that a permanent 500 is reported once, and is the final error.
func (w *world) permanent(t *testing.T, namespace string) {
	w.kustomizations(t, namespace, "app")
	for _, args := range [][]string{{"get", "ks"}, {"get", "ks", "--watch"}, {"wait", "ks", "app"}, {"reconcile", "ks", "app"}, {"suspend", "ks", "app"}} {
		proxy := w.proxy(t)
		proxy.Misbehave(func(rw http.ResponseWriter, _ *http.Request) bool {
			fakeapi.Status(rw, http.StatusInternalServerError, "InternalError", "conversion webhook failed")
			return true
		})
		p := w.start(t, proxy.Kubeconfig, append(args, "-n", namespace)...)
		p.exits(1)
		if n := strings.Count(p.stderr.String(), "retrying after 500 Internal Server Error"); n != 1 {
			p.fatalf("the retry is reported %d times", n)
		}
		if n := strings.Count(p.stderr.String(), "conversion webhook failed"); n < 2 {
			p.fatalf("the error does not contain the server's message")
		}
	}
}

// refusedWatch checks that a failed watch after a successful list is reported, and that changes
// are printed as soon as the watch succeeds.
func (w *world) refusedWatch(t *testing.T, namespace string) {
	w.kustomizations(t, namespace, "app")
	proxy := w.proxy(t)
	proxy.Misbehave(func(rw http.ResponseWriter, r *http.Request) bool {
		if sort(r) != "watch" {
			return false
		}
		fakeapi.Status(rw, http.StatusInternalServerError, "InternalError", "no watch today")
		return true
	})
	p := w.start(t, proxy.Kubeconfig, "get", "ks", "-n", namespace, "--watch")
	p.until(p.stdout, "first of app")
	p.until(p.stderr, "retrying after 500 Internal Server Error")
	w.say(t, namespace, "app", "second of app")
	proxy.Misbehave(func(http.ResponseWriter, *http.Request) bool { return false })
	p.until(p.stdout, "second of app")
	p.interrupt()
	if n := strings.Count(p.stderr.String(), "no watch today"); n != 1 {
		p.fatalf("the cause is reported %d times", n)
	}
}

// expelled checks that a watch that is interrupted and then rejected with 401 ends with an error
// and a fix.
func (w *world) expelled(t *testing.T, namespace string) {
	w.kustomizations(t, namespace, "app")
	for _, args := range [][]string{{"get", "ks", "--watch"}, {"reconcile", "ks", "app"}} {
		proxy := w.proxy(t)
		var begun sync.Once
		proxy.Misbehave(func(rw http.ResponseWriter, r *http.Request) bool {
			if sort(r) != "watch" {
				return false
			}
			cut := false
			begun.Do(func() { cut = true })
			if cut { // the watch has started, and then the token has expired
				rw.Header().Set("Content-Type", "application/json")
				rw.(http.Flusher).Flush()
				return true
			}
			fakeapi.Status(rw, http.StatusUnauthorized, "Unauthorized", "Unauthorized")
			return true
		})
		p := w.start(t, proxy.Kubeconfig, append(args, "-n", namespace)...)
		p.exits(1)
		if !strings.Contains(p.stderr.String(), "the API server rejected the credentials") {
			p.fatalf("the remedy is missing")
		}
	}
}

// notTwice checks that a request that is not idempotent is sent once, and its failure reported.
func (w *world) notTwice(t *testing.T, namespace string) {
	w.kustomizations(t, namespace, "app")
	proxy := w.proxy(t)
	var mu sync.Mutex
	deletions := 0
	proxy.Misbehave(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodDelete {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		deletions++
		fakeapi.Status(rw, http.StatusInternalServerError, "InternalError", "no deletion today")
		return true
	})
	p := w.start(t, proxy.Kubeconfig, "delete", "ks", "app", "-n", namespace, "--silent")
	p.exits(1)
	if !strings.Contains(p.stderr.String(), "no deletion today") {
		p.fatalf("the server's message is missing")
	}
	if mu.Lock(); deletions != 1 {
		p.fatalf("%d deletions were requested", deletions)
	}
	mu.Unlock()
}
