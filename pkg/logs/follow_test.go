package logs_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/logs"
	"github.com/fluxkit/flux/test/support/fakeapi"
	"github.com/fluxkit/flux/test/support/testlimit"
)

// following is a running Follow with its lines by pod.
type following struct {
	t      *testing.T
	cancel context.CancelFunc
	done   chan error
	mu     sync.Mutex
	shown  map[string][]string
	more   chan struct{}
}

func follow(t *testing.T, k *kubelet, o logs.Options) *following {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f := &following{t: t, cancel: cancel, done: make(chan error, 1), shown: map[string][]string{}, more: make(chan struct{}, 1)}
	go func() {
		f.done <- logs.Follow(ctx, k.server.Client, "flux-system", o, func(e *logs.Entry) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.shown[e.Pod] = append(f.shown[e.Pod], e.Message)
			select {
			case f.more <- struct{}{}:
			default:
			}
			return nil
		})
	}()
	t.Cleanup(cancel)
	return f
}

// waits waits for the last line of a pod.
func (f *following) waits(pod, last string) {
	f.t.Helper()
	deadline := time.NewTimer(testlimit.Wait)
	defer deadline.Stop()
	for {
		f.mu.Lock()
		lines := f.shown[pod]
		f.mu.Unlock()
		if len(lines) > 0 && lines[len(lines)-1] == last {
			return
		}
		select {
		case <-f.more:
		case err := <-f.done:
			f.t.Fatalf("Follow returned: %v", err)
		case <-deadline.C:
			f.t.Fatalf("%s printed %[3]q, not %[2]q", pod, last, lines)
		}
	}
}

func (f *following) ends(want map[string][]string) {
	f.t.Helper()
	f.cancel()
	if err := <-f.done; !errors.Is(err, context.Canceled) {
		f.t.Errorf("Follow returned %v", err)
	}
	if diff := cmp.Diff(want, f.shown); diff != "" {
		f.t.Errorf("-printed +shown:\n%s", diff)
	}
}

// say makes a pod print lines, and records them.
func say(k *kubelet, said map[string][]string, pod string, from, to int) string {
	var texts []string
	last := ""
	for i := from; i < to; i++ {
		last = fmt.Sprintf("%s says %d", pod, i)
		said[pod] = append(said[pod], last)
		texts = append(texts, record("info", "GitRepository", "app", "apps", last, time.Now()))
	}
	k.print(pod, texts...)
	return last
}

// TestFollowLosesNothing follows pods whose streams break in different ways, whose containers
// restart, and which are replaced by pods with other and with the same names.
func TestFollowLosesNothing(t *testing.T) {
	t.Parallel()
	k := newKubelet(t)
	said := map[string][]string{}
	for _, pod := range []string{"steady", "breaking", "ending", "restarted", "replaced", "again"} {
		k.run(pod, pod+"-1", &printing{})
		say(k, said, pod, 0, 10)
	}
	// Connections break during the first read and while following, within and
	// between lines.
	k.breaks["breaking"] = []int{5, 0, 8, 25, 3, 40}
	k.breaks["ending"] = []int{0, -13, -21, -30}
	f := follow(t, k, options(t))
	for _, pod := range []string{"steady", "breaking", "ending", "restarted", "replaced", "again"} {
		f.waits(pod, pod+" says 9")
	}
	for i := 10; i < 60; i += 10 {
		for _, pod := range []string{"steady", "breaking", "ending"} {
			f.waits(pod, say(k, said, pod, i, i+10))
		}
	}
	// The end of this run is not followed.
	k.change(func() { k.down["restarted"] = true })
	say(k, said, "restarted", 10, 20)
	k.end("restarted")
	k.run("restarted", "restarted-1", &printing{})
	k.change(func() { k.down["restarted"] = false })
	f.waits("restarted", say(k, said, "restarted", 20, 30))

	f.waits("replaced", say(k, said, "replaced", 10, 15))
	say(k, said, "replaced", 15, 20) // printed during termination
	k.remove("replaced")
	k.run("successor", "successor-1", &printing{})
	f.waits("successor", say(k, said, "successor", 0, 10))

	f.waits("again", say(k, said, "again", 10, 20))
	k.remove("again")
	k.run("again", "again-2", &printing{})
	f.waits("again", say(k, said, "again", 20, 30))

	for pod := range said {
		if pod != "replaced" {
			f.waits(pod, say(k, said, pod, 100, 101))
		}
	}
	f.waits("replaced", "replaced says 19")
	f.ends(said)
	for pod, left := range k.breaks {
		if len(left) > 0 {
			t.Errorf("connections of %s did not break: %v", pod, left)
		}
	}
}

// TestFollowReplacedAtOnce replaces a pod by one with the same name while Follow reads that the
// old one is gone: the event of the new pod arrives first.
func TestFollowReplacedAtOnce(t *testing.T) {
	t.Parallel()
	k := newKubelet(t)
	said := map[string][]string{}
	k.run("pod", "pod-1", &printing{})
	say(k, said, "pod", 0, 3)
	f := follow(t, k, options(t))
	f.waits("pod", "pod says 2")
	asked, replaced := make(chan struct{}), make(chan struct{})
	k.server.Handle("GET "+podPath+"/pod", func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		select {
		case <-replaced:
		case <-r.Context().Done():
		}
		fakeapi.Status(w, http.StatusNotFound, "NotFound", "there is no such pod")
	})
	k.end("pod")
	<-asked
	k.server.Handle("GET "+podPath+"/pod", nil)
	k.remove("pod")
	k.run("pod", "pod-2", &printing{})
	say(k, said, "pod", 3, 6)
	// When the log of a later pod is read, the events before it have arrived.
	k.run("later", "later", &printing{})
	f.waits("later", say(k, said, "later", 0, 1))
	close(replaced)
	f.waits("pod", "pod says 5")
	f.ends(said)
}

// TestFollowIsBounded checks the maximum number of streams: while all are in use, a new pod is
// read after another has ended.
func TestFollowIsBounded(t *testing.T) {
	t.Parallel()
	k := newKubelet(t)
	said := map[string][]string{}
	for _, pod := range []string{"one", "two"} {
		k.run(pod, pod, &printing{})
		say(k, said, pod, 0, 3)
	}
	o := options(t)
	o.Streams = 2
	f := follow(t, k, o)
	f.waits("one", "one says 2")
	f.waits("two", say(k, said, "two", 3, 4))
	k.run("three", "three", &printing{})
	say(k, said, "three", 0, 3)
	k.remove("one")
	f.waits("three", "three says 2")
	f.ends(said)
	if k.most > 2 {
		t.Errorf("%d streams at once", k.most)
	}

	o.Streams = 1
	var many *logs.ManyError
	err := logs.Follow(t.Context(), k.server.Client, "flux-system", o, nil)
	if !errors.As(err, &many) || many.Pods != 2 {
		t.Errorf("two pods and one stream: %v", err)
	}
}
