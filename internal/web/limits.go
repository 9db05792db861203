package web

import (
	"io"
	"net/http"
	"sync/atomic"

	"github.com/fluxkit/flux/internal/budget"
)

// Limits bounds the responses of a server. 0 means no limit.
type Limits struct {
	// Response is the maximum size of a response, Total the maximum size of all responses, and Requests the maximum
	// number of requests.
	Response, Total, Requests int64
	// TooLarge and TooMany are the errors for exceeded limits.
	TooLarge, TooMany error
}

// Transport returns a transport that enforces the limits.
func (l Limits) Transport(next http.RoundTripper) http.RoundTripper {
	if l == (Limits{}) {
		return next
	}
	var sent, total atomic.Int64
	return Wrap(next, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if n := sent.Add(1); l.Requests > 0 && n > l.Requests {
			return nil, l.TooMany
		}
		response, err := next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		size := int64(0)
		response.Body = budget.Closing(budget.Checked(io.Reader(response.Body), func(read []byte, _ error) error {
			size += int64(len(read))
			all := total.Add(int64(len(read)))
			if l.Response > 0 && size > l.Response || l.Total > 0 && all > l.Total {
				return l.TooLarge
			}
			return nil
		}), response.Body)
		return response, nil
	})
}
