package testcloud

import (
	"fmt"
	"net/http"
	"strings"
)

const googleScope = "https://www.googleapis.com/auth/cloud-platform"

// serveMetadata serves the metadata endpoints of machines.
func (c *Cloud) serveMetadata(w http.ResponseWriter, r *http.Request) {
	c.record(r)
	switch {
	case r.URL.Path == "/container" || strings.HasPrefix(r.URL.Path, "/latest/"):
		c.issue(w, r, amazon{c}.metadata)
	case strings.HasPrefix(r.URL.Path, "/azure"):
		c.issue(w, r, microsoft{c}.metadata)
	default:
		c.issue(w, r, google{c}.metadata)
	}
}

// machine enables the service account of the machine.
const machine = "service account of the machine"

// metadata is the metadata server of Google Cloud.
func (c google) metadata(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Metadata-Flavor") != "Google" {
		http.Error(w, "missing header Metadata-Flavor", http.StatusForbidden)
		return
	}
	w.Header().Set("Metadata-Flavor", "Google")
	_, err := c.valid(machine, machine)
	if err != nil || r.URL.Path != "/computeMetadata/v1/instance/service-accounts/default/token" || !strings.Contains(r.URL.Query().Get("scopes"), googleScope) {
		http.NotFound(w, r)
		return
	}
	c.respond(w, nil)
}

// key issues a token for an assertion of a service account.
func (c google) key(w http.ResponseWriter, r *http.Request) {
	err := c.account.verifyKey(r.PostFormValue("assertion"))
	if grant := r.PostFormValue("grant_type"); grant != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		err = fmt.Errorf("unexpected grant type %q", grant)
	}
	c.respond(w, err)
}

// exchange issues a token for a token of another identity provider.
func (c google) exchange(w http.ResponseWriter, r *http.Request) {
	err := c.account.verify(r.PostFormValue("subject_token"), pool)
	if audience := r.PostFormValue("audience"); audience != pool {
		err = fmt.Errorf("unexpected audience %q", audience)
	}
	c.respond(w, err)
}

func (c google) respond(w http.ResponseWriter, err error) {
	if err != nil {
		respond(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant", "error_description": err.Error()})
		return
	}
	token := secret("google-token")
	c.grant(token, grant{use: GAR})
	respond(w, http.StatusOK, map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": 3600, "issued_token_type": "urn:ietf:params:oauth:token-type:access_token"})
}
