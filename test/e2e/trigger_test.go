package e2e_test

import (
	"bufio"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/web/webhook"
	"github.com/fluxkit/flux/pkg/controllers"
)

// payloads lists the payloads of Receivers that validate them.
var payloads = map[string]string{"cdevents": `{
  "context": {"version": "0.4.1", "id": "1", "source": "/test", "type": "dev.cdevents.change.merged.0.2.0", "timestamp": "2026-11-01T10:00:00Z"},
  "subject": {"id": "1", "source": "/test", "type": "change", "content": {"repository": {"id": "1", "source": "/test"}}}
}`}

// TestTrigger calls webhooks of every type like the services, and checks that the
// source fetches the pushed commit.
func TestTrigger(t *testing.T) {
	t.Parallel()
	f := newTeam(t)
	f.git.commit("Run app", map[string]string{"deploy/app.yaml": configMapFrom(f, "git")})
	createGitRepository(f)
	token := tempFile(t, "token", "not to be seen\n")
	for _, t := range webhook.Types() {
		if t.Bears {
			continue // requires a token issuer
		}
		f.shell.run("flux", "create", "secret", "receiver", t.Name, "--type="+t.Name, "--hostname=flux.example.com", "--token-file="+token)
		f.shell.run("flux", "create", "receiver", t.Name, "--type="+t.Name, "--secret-ref="+t.Name, "--resource=GitRepository/app")
		payload := "{}"
		if p, ok := payloads[t.Name]; ok {
			payload = p
		}
		trigger(f, t.Name, "--payload="+payload)
		if t.Signs {
			triggerFails(f, "400 Bad Request", t.Name, "--token=guessed", "--payload="+payload)
		}
	}

	f.git.commit("Change app", map[string]string{"deploy/app.yaml": configMapFrom(f, "push")})
	trigger(f, "github", "--event=push")
	waitFetched(f, f.git.revision())

	f.git.commit("Change app again", map[string]string{"deploy/app.yaml": configMapFrom(f, "ci")})
	triggerWithoutCluster(f, token)
	waitFetched(f, f.git.revision())

	triggerOpenID(f)
}

// trigger triggers a Receiver, which must request the reconciliation of the source.
func trigger(f *fixture, name string, more ...string) {
	f.t.Helper()
	before := requestedAt(f)
	stdout, stderr, err := f.shell.try("flux", append([]string{"trigger", "receiver", name, "--flux-namespace=flux-system"}, more...)...)
	if err != nil {
		f.t.Fatalf("calling Receiver %s: %v\n%s%s", name, err, stdout, stderr)
	}
	if strings.Contains(stdout+stderr, "not to be seen") {
		f.t.Errorf("the token is printed:\n%s%s", stdout, stderr)
	}
	if requestedAt(f) == before {
		f.t.Errorf("the webhook of Receiver %s has requested nothing", name)
	}
}

// triggerFails triggers a Receiver with invalid arguments.
func triggerFails(f *fixture, why, name string, more ...string) {
	f.t.Helper()
	before := requestedAt(f)
	_, stderr, err := f.shell.try("flux", append([]string{"trigger", "receiver", name, "--flux-namespace=flux-system"}, more...)...)
	if err == nil || !strings.Contains(stderr, "✗ the webhook responded with "+why) || requestedAt(f) != before {
		f.t.Errorf("calling Receiver %s with invalid arguments: %v\n%s", name, err, stderr)
	}
}

// requestedAt returns the time of the last reconciliation request of the source.
func requestedAt(f *fixture) string {
	f.t.Helper()
	k, _ := controllers.FindKind("GitRepository")
	o, err := f.cluster.Client.Get(f.t.Context(), kube.Of(k), f.namespace, "app")
	if err != nil {
		f.t.Fatal(err)
	}
	return controllers.Annotation(o, "reconcile.fluxcd.io/requestedAt")
}

// waitFetched waits until the source has a revision; its interval is an hour.
func waitFetched(f *fixture, revision string) {
	f.t.Helper()
	f.eventually("the source to fetch "+revision, resource(f.t, "GitRepository"), kube.Selection{Namespace: f.namespace, Name: "app"}, func(e kube.Event) bool {
		return text(e.Object, "status.artifact.revision") == revision
	})
}

// triggerWithoutCluster calls a webhook by its URL, like a CI job without access to the
// cluster.
func triggerWithoutCluster(f *fixture, token string) {
	f.t.Helper()
	forward := f.shell.command(f.t.Context(), "kubectl", "port-forward", "--namespace=flux-system", "deployment/notification-controller", ":9292")
	forward.Stderr = os.Stderr
	stdout, err := forward.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := forward.Start(); err != nil {
		f.t.Fatal(err)
	}
	defer func() {
		_ = forward.Process.Kill() // kubectl does not exit by itself
		_ = forward.Wait()
	}()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		f.t.Fatalf("reading the address that kubectl forwards from: %v", err)
	}
	address, _, _ := strings.Cut(strings.TrimPrefix(line, "Forwarding from "), " ")
	f.shell.with("KUBECONFIG="+tempFile(f.t, "kubeconfig", "")).run(
		"flux", "trigger", "receiver", "gitlab", "--type=gitlab", "--url=http://"+strings.TrimSpace(address), "--token-file="+token)
}

const openIDReceiver = `apiVersion: notification.toolkit.fluxcd.io/v1
kind: Receiver
metadata: {name: oidc, namespace: %s}
spec:
  type: generic-oidc
  resources: [{kind: GitRepository, name: app}]
  oidcProviders:
  - issuerURL: %s
    validations: [{expression: "claims.repository == 'org/app'", message: "another repository"}]
`

// triggerOpenID calls a Receiver that accepts OpenID Connect tokens, which a server issues
// like a CI system.
func triggerOpenID(f *fixture) {
	f.t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		f.t.Fatal(err)
	}
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	defer server.Close()
	encode := base64.RawURLEncoding.EncodeToString
	answer := func(w http.ResponseWriter, v any) {
		_ = json.NewEncoder(w).Encode(v) // the client detects missing content
	}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{
			"issuer": server.URL, "jwks_uri": server.URL + "/keys", "authorization_endpoint": server.URL + "/none",
			"id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1",
			"n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		claims := fmt.Sprintf(`{"iss":%q,"aud":%q,"sub":"job","repository":"org/app","iat":%d,"exp":%d}`,
			server.URL, r.URL.Query().Get("audience"), time.Now().Unix(), time.Now().Add(time.Hour).Unix())
		signed := encode([]byte(`{"alg":"RS256","kid":"1"}`)) + "." + encode([]byte(claims))
		sum := sha256.Sum256([]byte(signed))
		signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
		if err != nil || r.Header.Get("Authorization") != "Bearer runner" {
			http.Error(w, fmt.Sprint("no token for you: ", err), http.StatusForbidden)
			return
		}
		answer(w, map[string]any{"value": signed + "." + encode(signature)})
	})
	f.shell.run("kubectl", "apply", "--filename="+tempFile(f.t, "oidc.yaml", fmt.Sprintf(openIDReceiver, f.namespace, server.URL)))
	f.shell.run("flux", "wait", "receiver", "oidc")
	f.shell = f.shell.with("ACTIONS_ID_TOKEN_REQUEST_URL="+server.URL+"/token?v=1", "ACTIONS_ID_TOKEN_REQUEST_TOKEN=runner")
	trigger(f, "oidc", "--oidc-provider=github")
	triggerFails(f, "400 Bad Request", "oidc", "--oidc-provider=github", "--oidc-audience=another-audience")
}
