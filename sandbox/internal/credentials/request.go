package credentials

import (
	"net/http"
	"strings"
)

// Request returns the access of an HTTP request with Basic or Bearer authorization.
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
	if r.Header.Get("Authorization") == "" && s.Public {
		return Read
	}
	return None
}

// Basic is the challenge for a username and password.
const Basic = `Basic realm="flux-sandbox", charset="UTF-8"`

// Challenge adds the headers with the accepted authorization schemes.
func Challenge(w http.ResponseWriter) {
	w.Header().Add("WWW-Authenticate", Basic)
	w.Header().Add("WWW-Authenticate", `Bearer realm="flux-sandbox"`)
}
