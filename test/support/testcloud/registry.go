package testcloud

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// acrUser is the user name of a token in a registry of Azure.
const acrUser = "00000000-0000-0000-0000-000000000000"

// serveRegistry serves a registry to clients with the credentials that its provider has issued.
func (c *Cloud) serveRegistry(w http.ResponseWriter, r *http.Request) {
	serve := c.registries[r.Host]
	if serve == nil {
		http.Error(w, "unknown host "+r.Host, http.StatusMisdirectedRequest)
		return
	}
	if challenge, err := c.authorize(r); err != nil {
		w.Header().Set("Www-Authenticate", challenge)
		refuse(w, http.StatusUnauthorized, "UNAUTHORIZED", err.Error())
		return
	}
	if c.is(Forbidden) && r.URL.Path != "/v2/" {
		refuse(w, http.StatusForbidden, "DENIED", "the identity has no permission in this repository")
		return
	}
	serve.ServeHTTP(w, r)
}

// authorize checks the credentials of a request, and returns the challenge for clients without
// credentials.
func (c *Cloud) authorize(r *http.Request) (challenge string, err error) {
	user, password, _ := r.BasicAuth()
	want := ""
	switch r.Host {
	case Stranger:
		return "", nil
	case ACR:
		token := bearer(r)
		_, err := c.valid(token, ACR)
		return fmt.Sprintf(`Bearer realm="https://%s/oauth2/token",service="%s"`, ACR, ACR), err
	case GHCR, GitLabRegistry:
		realm := map[string]string{GHCR: GHCR + "/token", GitLabRegistry: gitlab + "/jwt/auth"}[r.Host]
		_, err := c.valid(bearer(r), "bearer "+r.Host)
		return fmt.Sprintf(`Bearer realm="https://%s",service="%s"`, realm, r.Host), err
	case ECR, PublicECR:
		want = "AWS"
	case GAR:
		want = "oauth2accesstoken"
	}
	challenge = fmt.Sprintf(`Basic realm="https://%s/"`, r.Host)
	if user != want {
		return challenge, fmt.Errorf("the user is not %s", want)
	}
	_, err = c.valid(password, r.Host)
	return challenge, err
}

func bearer(r *http.Request) string {
	const scheme = "Bearer "
	if authorization := r.Header.Get("Authorization"); len(authorization) > len(scheme) {
		return authorization[len(scheme):]
	}
	return ""
}

// refuse sends an error like a registry.
func refuse(w http.ResponseWriter, status int, code, message string) {
	respond(w, status, map[string]any{"errors": []any{map[string]string{"code": code, "message": message}}})
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have disconnected
}
