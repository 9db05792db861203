package kube

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// node serves the streams of a forwarded port: it writes reason to the error stream, and resets
// the data stream before or after it accepts that stream.
func node(t *testing.T, reason string, beforeReply bool) httpstream.Connection {
	t.Helper()
	near, far := net.Pipe()
	var failure httpstream.Stream
	var refusals sync.WaitGroup
	server, err := spdy.NewServerConnection(far, func(s httpstream.Stream, replied <-chan struct{}) error {
		if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
			failure = s
			return nil
		}
		refuse := func() error {
			_, err := io.WriteString(failure, reason)
			return errors.Join(s.Reset(), err, failure.Close())
		}
		if beforeReply {
			return refuse()
		}
		refusals.Go(func() {
			<-replied
			if err := refuse(); err != nil {
				t.Error(err)
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	client, err := spdy.NewClientConnection(near)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		refusals.Wait() // the client may have the last frame before the node's write has returned
		_ = client.Close()
		_ = server.Close()
	})
	return client
}

// TestForwardedRefusal connects to ports which the node refuses at different times, with and
// without a reason.
func TestForwardedRefusal(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"connection refused", ""} {
		for _, beforeReply := range []bool{true, false} {
			f, err := newForwarded(t.Context(), node(t, reason, beforeReply), 80)
			if !beforeReply {
				if err != nil {
					t.Fatal(err)
				}
				_, err = f.Read(make([]byte, 1))
			}
			want := reason
			switch {
			case reason != "":
			case beforeReply:
				want = "Stream reset"
			default:
				want = io.EOF.Error()
			}
			if err == nil || err.Error() != want {
				t.Errorf("before the reply: %v: got %v, want %s", beforeReply, err, want)
			}
		}
	}
}
