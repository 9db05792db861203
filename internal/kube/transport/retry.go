// Package transport sends requests to the API server: it bounds responses, retries idempotent requests, does not follow
// redirects to other servers, and does not wait for hanging credential plugins.
package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/web"
)

// Notifier is a rest.WarningHandler that also receives messages of the client, such as the
// reasons for retries. Notice may be called concurrently.
type Notifier interface {
	Notice(text string)
}

const (
	// firstBackoff is doubled with each retry up to lastBackoff. A longer
	// Retry-After from the server is respected, up to longestBackoff.
	firstBackoff   = 250 * time.Millisecond
	lastBackoff    = 4 * time.Second
	longestBackoff = 30 * time.Second
	// restartBackoff is the maximum backoff while a server restarts, when requests do not add to its load.
	restartBackoff = time.Second
	// statusBytes is the maximum size of an error response that is read for its message.
	statusBytes = 64 << 10
)

// retriesAfter returns the maximum number of retries for a status code; 0 means a lost connection. A 500 is often
// permanent, for example if a conversion webhook fails, so it is reported after two seconds. The responses of a
// restarting server or of its load balancer are temporary.
func retriesAfter(code int) int {
	switch code {
	case http.StatusTooManyRequests:
		return 10
	case http.StatusInternalServerError:
		return 3
	case 0, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return 6
	default:
		return 0
	}
}

// NotifierOf returns the function that receives the messages of a client.
func NotifierOf(cfg *rest.Config) func(string) {
	if n, ok := cfg.WarningHandler.(Notifier); ok {
		return n.Notice
	}
	return func(string) {}
}

// Retrying adds retries to the transport of a configuration, around another wrapper, unless it already has retries.
// No other layer retries. Requests that are safe to repeat (see idempotent) are retried if the server is busy or
// restarting, or if the connection is lost.
func Retrying(cfg *rest.Config, inner func(http.RoundTripper) http.RoundTripper) {
	retry := web.Retry{Plan: plan, Notify: NotifierOf(cfg)}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		if web.Repeats(next) {
			return next
		}
		return retry.Transport(inner(next))
	})
}

// plan returns the function that decides after each attempt of a request whether to retry it.
func plan(r *http.Request) web.Decide {
	retries := map[bool]int{} // the key is true while the server restarts
	return func(response *http.Response, err error) web.Step {
		f := failureOf(r, response, err)
		if len(retries) > 0 && f == nil && utilnet.IsConnectionRefused(err) {
			f = &failure{cause: refusedConnection, refused: true}
		}
		if f == nil {
			if err == nil {
				dropDeprecation(r, response)
			}
			return web.Step{}
		}
		n := retries[f.restarting()]
		retries[f.restarting()]++
		step := web.Step{Again: f.again(r, n), Pause: f.pause(n), Cause: f.cause}
		switch {
		case f.refused:
		case err != nil:
			step.Err = lostError{err}
		default:
			response.Header.Del("Retry-After") // client-go would repeat the request again
		}
		step.Notice = fmt.Sprintf("retrying after %s (%s)", f.cause, web.Target(r))
		if message := peek(response); message != "" {
			step.Notice += ": " + message
		}
		return step
	}
}

// failure is a failed request that may be retried.
type failure struct {
	code  int // 0 for a lost connection
	cause string
	asked time.Duration
	// refused is set if the server refused a connection after another one was lost, which means that it restarts.
	// starting is set for the response of a server that is still starting.
	refused, starting bool
}

// restarting reports whether the server restarts.
func (f *failure) restarting() bool { return f.refused || f.starting }

const refusedConnection = "the API server refused the connection"

// restartRetries is the maximum number of retries while a server restarts: about
// half a minute.
const restartRetries = 40

// failureOf returns the failure of an attempt, or nil if a retry would not change the result.
func failureOf(r *http.Request, response *http.Response, err error) *failure {
	switch {
	case r.Context().Err() != nil:
		return nil
	case err != nil && Lost(err):
		return &failure{cause: lostError{err}.Error()}
	case err != nil || retriesAfter(response.StatusCode) == 0 || invalidForSchema(r, response):
		return nil
	}
	code := response.StatusCode
	f := &failure{code: code, cause: fmt.Sprintf("%d %s from the API server", code, http.StatusText(code))}
	if f.starting = code == http.StatusServiceUnavailable && strings.HasPrefix(peek(response), pathsMissing); f.starting {
		return f // the Retry-After of the server exceeds its startup time
	}
	if pause, ok := web.RetryAfter(response.Header); ok {
		f.asked = min(pause, longestBackoff+time.Second)
	}
	return f
}

// invalidForSchema reports whether the API server rejected a server-side apply with a 500 because the object does not
// match the schema of its kind: a field is not declared or has a different type. A retry would not change the result.
func invalidForSchema(r *http.Request, response *http.Response) bool {
	if r.Method != http.MethodPatch || response.StatusCode != http.StatusInternalServerError {
		return false
	}
	return strings.HasPrefix(peek(response), "failed to create typed ")
}

// pathsMissing is the beginning of the message of an API server that is still starting.
const pathsMissing = "the request has been made before all known HTTP paths have been installed"

// peek returns the message of an error response. The body can still be read afterwards.
func peek(response *http.Response) string {
	if response == nil {
		return ""
	}
	body, err := budget.Head(response.Body, statusBytes)
	response.Body = budget.Closing(io.MultiReader(bytes.NewReader(body), response.Body), response.Body)
	if err != nil {
		return ""
	}
	return messageIn(body)
}

// messageIn returns the message of a Status, "" for other response bodies.
func messageIn(body []byte) string {
	var status struct{ Kind, Message string }
	if json.Unmarshal(body, &status) != nil || status.Kind != "Status" {
		return ""
	}
	return status.Message
}

// again reports whether a request is retried after n retries. After a 429, any request may be
// retried, because the server has not processed it.
func (f *failure) again(r *http.Request, n int) bool {
	most := retriesAfter(f.code)
	if f.restarting() {
		most = restartRetries
	}
	return n < most && f.asked <= longestBackoff && (f.code == http.StatusTooManyRequests || idempotent(r))
}

// pause returns the time before the next attempt. It is a random time between half and the
// full backoff, so that clients do not retry at the same time.
func (f *failure) pause(n int) time.Duration {
	if f.asked > 0 {
		return f.asked
	}
	last := lastBackoff
	if f.restarting() {
		last = restartBackoff
	}
	whole := min(firstBackoff<<min(n, 10), last)
	return whole/2 + rand.N(whole/2) // not for secrets
}

// Reconnect returns the time to wait before requesting a response again after the connection was lost for the nth time,
// counted from 0. It returns false after too many attempts.
func Reconnect(n int) (time.Duration, bool) {
	f := failure{}
	return f.pause(n), n < retriesAfter(f.code)
}

// lostError is returned if a connection ended before the response.
type lostError struct{ err error }

func (e lostError) Error() string {
	if utilnet.IsConnectionReset(e.err) {
		return "the API server reset the connection"
	}
	return "the API server closed the connection without a response"
}

// Lost reports whether an established connection has ended.
func Lost(err error) bool {
	var stream http2.StreamError
	return web.Lost(err) || web.Unreachable(err) == nil &&
		(errors.As(err, &stream) || utilnet.IsHTTP2ConnectionLost(err) || utilnet.IsProbableEOF(err))
}

// idempotent reports whether a request that may have been processed can be sent again. Reads are idempotent (lists,
// the start of a watch), and so are server-side apply and merge patches, which set fields to given values: a repeated
// patch changes nothing (with a resourceVersion, it is a conflict, which the caller handles). A reconcile request is
// a merge patch with a token that the controller handles once. Access reviews and dry runs store nothing. JSON
// patches, creation and deletion are not idempotent: the repeated request may affect a different object with the same
// name.
func idempotent(r *http.Request) bool {
	if r.Header.Get("Upgrade") != "" {
		return false
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return true
	case http.MethodPatch:
		media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if media == string(types.ApplyPatchType) || media == string(types.MergePatchType) {
			return true
		}
	case http.MethodPost:
		if strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") || strings.HasSuffix(r.URL.Path, "/selfsubjectreviews") {
			return true
		}
	}
	return r.URL.Query().Get("dryRun") == "All"
}
