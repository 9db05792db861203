package credentials

import (
	"net/http"
	"strings"
)

// Request is the access of an HTTP request, by its Basic or Bearer authorization.
func (s Set) Request(r *http.Request) Access {
	if s.Open() {
		return Write
	}
	if name, password, ok := r.BasicAuth(); ok {
		return s.Password(name, password)
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") {
		return s.Token(strings.TrimSpace(token))
	}
	return None
}

// Challenge tells a client which authorization to send.
func Challenge(w http.ResponseWriter) {
	w.Header().Add("WWW-Authenticate", `Basic realm="flux-sandbox", charset="UTF-8"`)
	w.Header().Add("WWW-Authenticate", `Bearer realm="flux-sandbox"`)
}
