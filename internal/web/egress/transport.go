package egress

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/fluxkit/flux/internal/web"
)

// NewTransport returns a transport with the settings of another one. It sends requests to public addresses and allowed
// hosts only: it checks the host of each request, redirects included, and the address that the host resolves to when it
// connects. A proxy of the user resolves the names of hosts itself.
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
				return settings.RoundTrip(r) // which reports the error, too
			}
		}
		return direct.RoundTrip(r)
	})
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
