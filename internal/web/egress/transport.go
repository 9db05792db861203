package egress

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/fluxkit/flux/internal/web"
)

// NewTransport returns a copy of a transport that sends requests only to public addresses and allowed hosts. It checks
// the host of each request, including redirects, and the resolved address when it connects. If the user has configured
// a proxy, the proxy resolves host names.
func NewTransport(settings *http.Transport, hosts Hosts) http.RoundTripper {
	direct := settings.Clone()
	direct.Proxy, direct.DialContext = nil, hosts.dial
	return web.Wrap(direct, func(r *http.Request, direct http.RoundTripper) (*http.Response, error) {
		host := r.URL.Hostname()
		if !hosts.Allows(host) {
			if err := publicName(host); err != nil {
				return nil, err
			}
		}
		if settings.Proxy != nil {
			if proxy, err := settings.Proxy(r); err != nil || proxy != nil {
				return settings.RoundTrip(r) // also returns the proxy error
			}
		}
		return direct.RoundTrip(r)
	})
}

// publicName returns an error for addresses that are not public and for host names that are never public.
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
