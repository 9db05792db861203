package egress_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/fluxkit/flux/internal/web/egress"
)

// rebinding is a name server. It answers the first question about each name with a public address,
// and later ones with an address of this machine.
type rebinding struct {
	conn  net.PacketConn
	mu    sync.Mutex
	asked map[string]int
}

// publicAddress is an address for documentation, which nothing listens at.
const publicAddress = "203.0.113.7"

func (r *rebinding) serve() {
	for buffer := make([]byte, 1500); ; {
		n, from, err := r.conn.ReadFrom(buffer)
		if err != nil {
			return // the test has ended
		}
		var message dnsmessage.Message
		if message.Unpack(buffer[:n]) != nil || len(message.Questions) != 1 {
			continue
		}
		question := message.Questions[0]
		message.Response, message.Additionals = true, nil
		if question.Type == dnsmessage.TypeA {
			r.mu.Lock()
			address := publicAddress
			if r.asked[question.Name.String()]++; r.asked[question.Name.String()] > 1 {
				address = "127.0.0.1"
			}
			r.mu.Unlock()
			message.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: question.Name, Type: question.Type, Class: question.Class},
				Body:   &dnsmessage.AResource{A: [4]byte(net.ParseIP(address).To4())},
			}}
		}
		if packed, err := message.Pack(); err == nil {
			_, _ = r.conn.WriteTo(packed, from)
		}
	}
}

// TestMain resolves the names of the tests with a name server that changes its answers.
func TestMain(m *testing.M) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server := &rebinding{conn: conn, asked: map[string]int{}}
	go server.serve()
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	os.Exit(m.Run())
}

// TestRebinding checks that a host whose name resolves to a public address when it is checked, and
// to an address of this machine when the connection is opened, is refused, and gets no request.
func TestRebinding(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	proxied := func(host string) *http.Transport {
		proxy, err := egress.Listen(t.Context(), egress.Hosts{host})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if refused := proxy.Refused(); refused == nil || !strings.Contains(refused.Error(), "the address 127.0.0.1 is not public") {
				t.Errorf("the proxy refused %v", refused)
			}
			if err := proxy.Close(); err != nil {
				t.Error(err)
			}
		})
		through, err := url.Parse(proxy.URL())
		if err != nil {
			t.Fatal(err)
		}
		return &http.Transport{Proxy: http.ProxyURL(through)}
	}
	for host, c := range map[string]struct {
		server    *httptest.Server
		transport func(host string) http.RoundTripper
	}{
		"chart.example":       {plain, func(string) http.RoundTripper { return egress.NewTransport(&http.Transport{}, nil) }},
		"artifact.example":    {secure, func(string) http.RoundTripper { return egress.NewTransport(&http.Transport{}, nil) }},
		"named.example":       {plain, func(host string) http.RoundTripper { return egress.NewTransport(&http.Transport{}, egress.Hosts{host}) }},
		"base.example":        {plain, func(host string) http.RoundTripper { return proxied(host) }},
		"secure-base.example": {secure, func(host string) http.RoundTripper { return proxied(host) }},
	} {
		first, err := net.DefaultResolver.LookupHost(t.Context(), host)
		if err != nil || len(first) != 1 || first[0] != publicAddress {
			t.Fatalf("%s resolves to %v first: %v", host, first, err)
		}
		at, err := url.Parse(c.server.URL)
		if err != nil {
			t.Fatal(err)
		}
		at.Host = host + ":" + at.Port()
		response, err := (&http.Client{Transport: c.transport(host)}).Get(at.String())
		status := 0
		if err == nil {
			status = response.StatusCode
			_ = response.Body.Close()
		}
		if refused := status == http.StatusForbidden || err != nil && (strings.Contains(err.Error(), "is not public") || strings.Contains(err.Error(), "Forbidden")); !refused {
			t.Errorf("%s: status %d, %v", host, status, err)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("%d requests were made", n)
	}
	// The name server leads to the listener: without the restriction, the request is made.
	at, _ := url.Parse(plain.URL)
	response, err := http.Get("http://chart.example:" + at.Port())
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if n := asked.Load(); n != 1 {
		t.Errorf("%d requests were made without the restriction, want 1", n)
	}
}
