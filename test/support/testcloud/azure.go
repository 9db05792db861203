package testcloud

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// registryScope and devOpsScope are the audiences of tokens for registries and for Azure DevOps.
const (
	registryScope = "https://containerregistry.azure.net"
	devOpsScope   = "499b84ac-1321-427f-aa17-267ca6975798"
)

// token implements the token endpoint of Microsoft Entra ID with its discovery documents.
func (c microsoft) token(w http.ResponseWriter, r *http.Request) {
	authority := "https://" + entra + "/" + tenant
	switch r.URL.Path {
	case "/common/discovery/instance":
		respond(w, http.StatusOK, map[string]any{
			"tenant_discovery_endpoint": authority + "/v2.0/.well-known/openid-configuration", "api-version": "1.1",
			"metadata": []any{map[string]any{"preferred_network": entra, "preferred_cache": "login.windows.net", "aliases": []string{entra}}},
		})
	case "/" + tenant + "/v2.0/.well-known/openid-configuration":
		respond(w, http.StatusOK, map[string]string{
			"token_endpoint": authority + "/oauth2/v2.0/token", "authorization_endpoint": authority + "/oauth2/v2.0/authorize", "issuer": authority + "/v2.0",
		})
	case "/" + tenant + "/oauth2/v2.0/token":
		if err := c.checkClient(r); err != nil {
			respond(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client", "error_description": "AADSTS7000215: " + err.Error()})
			return
		}
		respond(w, http.StatusOK, map[string]any{"access_token": c.accessToken(scoped(r)), "token_type": "Bearer", "expires_in": 3600})
	default:
		http.NotFound(w, r)
	}
}

func (c microsoft) checkClient(r *http.Request) error {
	switch {
	case r.PostFormValue("grant_type") != "client_credentials" || r.PostFormValue("client_id") != client:
		return fmt.Errorf("unexpected client %q", r.PostFormValue("client_id"))
	case scoped(r) == "":
		return fmt.Errorf("unexpected scope %q", r.PostFormValue("scope"))
	case r.PostFormValue("client_assertion") != "":
		return c.account.verify(r.PostFormValue("client_assertion"), "api://AzureADTokenExchange")
	case r.PostFormValue("client_secret") != c.account.clientSecret:
		return fmt.Errorf("invalid client secret provided")
	}
	return nil
}

// scoped returns the audience of the scope of a request, "" if there is no such audience.
func scoped(r *http.Request) string {
	for _, audience := range []string{registryScope, devOpsScope} {
		if strings.HasPrefix(r.PostFormValue("scope"), audience+"/.default") {
			return audience
		}
	}
	return ""
}

// accessToken issues an access token for an audience.
func (c microsoft) accessToken(audience string) string {
	token := secret("entra-token")
	c.grant(token, grant{use: audience})
	return token
}

// metadata implements the managed identity endpoint of App Service.
func (c microsoft) metadata(w http.ResponseWriter, r *http.Request) {
	resource := r.URL.Query().Get("resource")
	if r.Header.Get("X-Identity-Header") != c.account.metadata || resource != registryScope && resource != devOpsScope {
		respond(w, http.StatusUnauthorized, map[string]string{"message": "no managed identity"})
		return
	}
	respond(w, http.StatusOK, map[string]string{
		"access_token": c.accessToken(resource), "resource": resource, "token_type": "Bearer",
		"expires_on": fmt.Sprint(time.Now().Add(time.Hour).Unix()),
	})
}

// registryToken exchanges an Entra ID token for a refresh token of the registry, and the refresh
// token for an access token.
func (c microsoft) registryToken(w http.ResponseWriter, r *http.Request) {
	use, valid := "refresh "+ACR, error(nil)
	switch r.URL.Path {
	case "/oauth2/exchange":
		if _, valid = c.valid(r.PostFormValue("access_token"), registryScope); r.PostFormValue("grant_type") != "access_token" || r.PostFormValue("service") != ACR {
			valid = fmt.Errorf("unexpected grant for service %q", r.PostFormValue("service"))
		}
	case "/oauth2/token":
		user, password, _ := r.BasicAuth()
		if _, valid = c.valid(password, use); user != acrUser || r.URL.Query().Get("service") != ACR {
			valid = fmt.Errorf("unexpected user %q", user)
		}
	default:
		http.NotFound(w, r)
		return
	}
	switch {
	case valid != nil:
		refuse(w, http.StatusUnauthorized, "UNAUTHORIZED", valid.Error())
	case c.is(Denied):
		refuse(w, http.StatusForbidden, "DENIED", "the identity has no role in this registry")
	case r.URL.Path == "/oauth2/exchange":
		token := c.account.token(ACR + " " + secret("id"))
		c.grant(token, grant{use: use})
		respond(w, http.StatusOK, map[string]string{"refresh_token": token})
	default:
		token := secret("acr-token")
		c.grant(token, grant{use: ACR})
		respond(w, http.StatusOK, map[string]string{"access_token": token})
	}
}
