package egress_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fluxkit/flux/internal/web/egress"
)

func TestPublic(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"140.82.121.3": true, "2606:50c0:8000::153": true,
		"127.0.0.1": false, "::1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false,
		"fe80::1": false, "fd00:ec2::254": false, "100.64.0.1": false, "0.0.0.0": false, "::": false, "224.0.0.1": false,
		"::ffff:127.0.0.1": false, "64:ff9b::a9fe:a9fe": false, "2002:7f00:1::": false, "255.255.255.255": false,
	} {
		if got := egress.Public(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: public %v, want %v", address, got, want)
		}
	}
}

func TestHosts(t *testing.T) {
	t.Parallel()
	hosts := egress.Hosts{"github.com", "10.0.0.0/8", "127.0.0.1"}
	for host, want := range map[string]bool{
		"github.com": true, "GitHub.com": true, "github.com.": true, "10.2.3.4": true, "127.0.0.1": true, "[::ffff:127.0.0.1]": true,
		"api.github.com": false, "github.com.evil.example": false, "evilgithub.com": false, "127.0.0.2": false, "11.0.0.1": false, "": false,
	} {
		if got := hosts.Allows(host); got != want {
			t.Errorf("%s: %v, want %v", host, got, want)
		}
	}
	for _, bad := range []string{"", "https://github.com", "github.com/org", "*.github.com", "github.com:443", "user@host"} {
		if err := (egress.Hosts{bad}).Check(); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	if err := hosts.Check(); err != nil {
		t.Error(err)
	}
}

// TestProxy checks that a host that is allowed by its name is still not asked at an address that is
// not public, and a redirect is a request of its own.
func TestProxy(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusFound)
		}
	}))
	defer target.Close()
	for _, c := range []struct {
		hosts    egress.Hosts
		path     string
		status   int
		requests int64
		refused  string
	}{
		{egress.Hosts{"127.0.0.1"}, "/", http.StatusOK, 1, ""},
		{egress.Hosts{"localhost"}, "/", http.StatusOK, 1, ""},
		{egress.Hosts{"github.com"}, "/", http.StatusForbidden, 0, "host 127.0.0.1 is not allowed"},
		{egress.Hosts{"127.0.0.1"}, "/away", http.StatusForbidden, 1, "host 169.254.169.254 is not allowed"},
	} {
		before := asked.Load()
		proxy, err := egress.Listen(t.Context(), c.hosts)
		if err != nil {
			t.Fatal(err)
		}
		through, err := url.Parse(proxy.URL())
		if err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(through), DisableKeepAlives: true}}
		response, err := client.Get(target.URL + c.path)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != c.status || asked.Load()-before != c.requests {
			t.Errorf("%v %s: status %d after %d requests", c.hosts, c.path, response.StatusCode, asked.Load()-before)
		}
		if refused := proxy.Refused(); (refused == nil) != (c.refused == "") || refused != nil && !strings.Contains(refused.Error(), c.refused) {
			t.Errorf("%v %s: refused %v", c.hosts, c.path, refused)
		}
		through.User = nil
		if response, err := client.Get("http://127.0.0.1:" + through.Port() + "/"); err == nil {
			_ = response.Body.Close()
		}
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestProxyChecksResolvedAddresses checks that a name that resolves to an address of this machine
// is not connected to.
func TestProxyChecksResolvedAddresses(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer target.Close()
	at, err := url.Parse(target.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := egress.Listen(t.Context(), egress.Hosts{"LOCALHOST"})
	if err != nil {
		t.Fatal(err)
	}
	through, err := url.Parse(proxy.URL())
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return through, nil }}}
	response, err := client.Get("http://localhost:" + at.Port())
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if refused := proxy.Refused(); response.StatusCode != http.StatusForbidden || asked.Load() != 0 || refused == nil || !strings.Contains(refused.Error(), "is not public: allow it with --allow-remote-bases") {
		t.Errorf("status %d after %d requests: %v", response.StatusCode, asked.Load(), refused)
	}
	if err := proxy.Close(); err != nil {
		t.Error(err)
	}
}
