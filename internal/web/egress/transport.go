package egress

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// Transport sends requests to public addresses and allowed hosts only. It checks the host of each
// request, redirects included, and the address that the host resolves to when it connects. A proxy
// of the user resolves the names of hosts itself.
type Transport struct {
	hosts  Hosts
	direct *http.Transport
	proxy  *http.Transport
}

// NewTransport returns a transport with the settings of another one.
func NewTransport(settings *http.Transport, hosts Hosts) *Transport {
	direct := settings.Clone()
	direct.Proxy = nil
	direct.DialContext = (&net.Dialer{Timeout: 10 * time.Second, Control: hosts.control}).DialContext
	return &Transport{hosts, direct, settings}
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	host := r.URL.Hostname()
	if !t.hosts.Allows(host) {
		if err := publicName(host); err != nil {
			return nil, err
		}
	}
	if t.proxy.Proxy != nil {
		if proxy, err := t.proxy.Proxy(r); err != nil || proxy != nil {
			return t.proxy.RoundTrip(r) // which reports the error, too
		}
	}
	return t.direct.RoundTrip(r)
}

// publicName returns an error for a host that is an address, if it is not public, and for names that
// never are public.
func publicName(host string) error {
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	address, err := netip.ParseAddr(name)
	switch last := name[strings.LastIndexByte(name, '.')+1:]; {
	case err == nil && Public(address.WithZone("")):
		return nil
	case err == nil, last == "localhost", last == "internal", last != "" && strings.Trim(last, "0123456789abcdefx") == "" && last[0] <= '9':
		return fmt.Errorf("the host %s is not public: allow it with --allow-remote-bases %s", host, host)
	}
	return nil
}
