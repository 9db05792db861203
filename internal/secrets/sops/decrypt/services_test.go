package decrypt_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/getsops/sops/v3/azkv"
	"github.com/getsops/sops/v3/gcpkms"
	"github.com/getsops/sops/v3/hcvault"
	"github.com/getsops/sops/v3/keys"
	"github.com/getsops/sops/v3/kms"
	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/secrets/sops"
	"github.com/fluxkit/flux/test/support/testproxy"
)

// ciphertext is what the key services of these tests decrypt to the data key.
const ciphertext = "sealed by the key service"

// vaultServer decrypts like the transit engine of HashiCorp Vault.
type vaultServer struct {
	server   *httptest.Server
	token    string
	requests atomic.Int64
	tokens   sync.Map
}

func newVault(t *testing.T, dataKey []byte) *vaultServer {
	t.Helper()
	v := &vaultServer{token: "hvs.canary"}
	v.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v.requests.Add(1)
		v.tokens.Store(r.Header.Get("X-Vault-Token"), true)
		var body struct{ Ciphertext string }
		switch err := json.NewDecoder(r.Body).Decode(&body); {
		case err != nil || r.URL.Path != "/v1/transit/decrypt/team" || body.Ciphertext != ciphertext:
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintf(w, `{"errors":["unexpected %s %q"]}`, r.URL.Path, body.Ciphertext)
		case r.Header.Get("X-Vault-Token") != v.token:
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"errors":["permission denied"]}`)
		default:
			_, _ = fmt.Fprintf(w, `{"data":{"plaintext":%q}}`, encoded(dataKey))
		}
	}))
	t.Cleanup(v.server.Close)
	return v
}

// key returns the key of a document at an address.
func (v *vaultServer) key(t *testing.T, address string) keys.MasterKey {
	t.Helper()
	key := hcvault.NewMasterKey(address, "transit", "team")
	key.EncryptedKey = ciphertext
	return key
}

func TestVault(t *testing.T) {
	t.Parallel()
	dataKey := newDataKey(t)
	v := newVault(t, dataKey)
	sealed := seal(t, "yaml", secretYAML, dataKey, v.key(t, v.server.URL))
	allowed := "SOPS_HC_VAULT_ALLOWLIST=" + v.server.URL
	for name, d := range map[string]*decrypter{
		"token of the Secret": newDecrypter(t, sops.Keys{Vault: v.token}, allowed),
		"token of the user":   newDecrypter(t, sops.Keys{}, allowed, "VAULT_TOKEN="+v.token),
	} {
		got, err := d.Decrypt(t.Context(), sealed, "yaml")
		if diff := cmp.Diff(secretYAML, string(got)); err != nil || diff != "" {
			t.Errorf("%s: %v, document (-want +got):\n%s", name, err, diff)
		}
	}
	denied := newDecrypter(t, sops.Keys{Vault: "hvs.other"}, allowed)
	before := v.requests.Load()
	for range 3 {
		if _, err := denied.Decrypt(t.Context(), sealed, "yaml"); !errors.Is(err, sops.ErrNoKey) {
			t.Errorf("with another token: %v", err)
		}
	}
	if n := v.requests.Load() - before; n != 1 {
		t.Errorf("%d requests for one key that is denied, want 1", n)
	}
	if len(denied.warnings) != 3 || !strings.HasPrefix(denied.warnings[0], "Vault key "+v.server.URL+"/team (key group 1): ") {
		t.Errorf("warnings %q", denied.warnings)
	}
}

// TestVaultOfStranger checks that no token is sent to an address that only the document names.
func TestVaultOfStranger(t *testing.T) {
	t.Parallel()
	dataKey := newDataKey(t)
	v := newVault(t, dataKey)
	d := newDecrypter(t, sops.Keys{Vault: v.token}, "VAULT_TOKEN="+v.token, "SOPS_HC_VAULT_ALLOWLIST=https://vault.example.com")
	_, err := d.Decrypt(t.Context(), seal(t, "yaml", secretYAML, dataKey, v.key(t, v.server.URL)), "yaml")
	if !errors.Is(err, sops.ErrNoKey) || v.requests.Load() != 0 {
		t.Errorf("%v after %d requests", err, v.requests.Load())
	}
	if len(d.warnings) != 1 || !strings.Contains(d.warnings[0], "a token is only sent to the address in VAULT_ADDR") {
		t.Errorf("warnings %q", d.warnings)
	}
}

func TestAWS(t *testing.T) {
	t.Parallel()
	dataKey := newDataKey(t)
	const arn = "arn:aws:kms:eu-west-1:123456789012:key/12345678-1234-1234-1234-123456789012"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			KeyID          string `json:"KeyId"`
			CiphertextBlob []byte
			Context        map[string]string `json:"EncryptionContext"`
		}
		err := json.NewDecoder(r.Body).Decode(&body)
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		switch authorization := r.Header.Get("Authorization"); {
		case err != nil || r.Header.Get("X-Amz-Target") != "TrentService.Decrypt" || body.KeyID != arn || string(body.CiphertextBlob) != ciphertext || body.Context["team"] != "apps":
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintf(w, `{"__type":"ValidationException","message":"unexpected %s"}`, body.KeyID)
		case !strings.Contains(authorization, "Credential=AKIAFLUX/") || !strings.Contains(authorization, "/eu-west-1/kms/aws4_request"):
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"__type":"AccessDeniedException","message":"not allowed"}`)
		default:
			_, _ = fmt.Fprintf(w, `{"KeyId":%q,"Plaintext":%q}`, arn, encoded(dataKey))
		}
	}))
	t.Cleanup(server.Close)
	team := "apps"
	master := kms.NewMasterKey(arn, "", map[string]*string{"team": &team})
	master.EncryptedKey = encoded([]byte(ciphertext))
	sealed := seal(t, "yaml", secretYAML, dataKey, master)
	endpoint, offline := "AWS_ENDPOINT_URL_KMS="+server.URL, "AWS_EC2_METADATA_DISABLED=true"
	for name, d := range map[string]*decrypter{
		"credentials of the Secret": newDecrypter(t, sops.Keys{AWS: []byte("aws_access_key_id: AKIAFLUX\naws_secret_access_key: secret\n")}, endpoint, offline),
		"credentials of the user":   newDecrypter(t, sops.Keys{}, endpoint, offline, "AWS_ACCESS_KEY_ID=AKIAFLUX", "AWS_SECRET_ACCESS_KEY=secret"),
	} {
		got, err := d.Decrypt(t.Context(), sealed, "yaml")
		if diff := cmp.Diff(secretYAML, string(got)); err != nil || diff != "" {
			t.Errorf("%s: %v, %q, document (-want +got):\n%s", name, err, d.warnings, diff)
		}
	}
	for want, own := range map[string]sops.Keys{
		"AccessDeniedException": {AWS: []byte("aws_access_key_id: AKIAOTHER\naws_secret_access_key: canary\n")},
		"malformed sops.aws-kms in the Secret: requires aws_access_key_id and aws_secret_access_key": {AWS: []byte("canary")},
	} {
		d := newDecrypter(t, own, endpoint, offline)
		_, err := d.Decrypt(t.Context(), sealed, "yaml")
		if !errors.Is(err, sops.ErrNoKey) || len(d.warnings) != 1 || !strings.HasPrefix(d.warnings[0], "AWS KMS key "+arn+" (key group 1): ") ||
			!strings.Contains(d.warnings[0], want) || strings.Contains(d.warnings[0], "canary") {
			t.Errorf("%v, warnings %q, want %s", err, d.warnings, want)
		}
	}
}

func TestGoogleCloud(t *testing.T) {
	t.Parallel()
	dataKey := newDataKey(t)
	const resource = "projects/flux/locations/global/keyRings/apps/cryptoKeys/team"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/token" {
			if err := r.ParseForm(); err != nil || r.Form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || strings.Count(r.Form.Get("assertion"), ".") != 2 {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			_, _ = io.WriteString(w, `{"access_token":"gcp-token","token_type":"Bearer","expires_in":3600}`)
			return
		}
		var body struct{ Ciphertext []byte }
		err := json.NewDecoder(r.Body).Decode(&body)
		if err != nil || r.URL.Path != "/v1/"+resource+":decrypt" || string(body.Ciphertext) != ciphertext || r.Header.Get("Authorization") != "Bearer gcp-token" {
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprintf(w, `{"error":{"code":403,"message":"unexpected %s","status":"PERMISSION_DENIED"}}`, r.URL.Path)
			return
		}
		_, _ = fmt.Fprintf(w, `{"plaintext":%q}`, encoded(dataKey))
	}))
	t.Cleanup(server.Close)
	master := gcpkms.NewMasterKeyFromResourceID(resource)
	master.EncryptedKey = encoded([]byte(ciphertext))
	sealed := seal(t, "yaml", secretYAML, dataKey, master)
	env := []string{"SOPS_GCP_KMS_CLIENT_TYPE=rest", "SOPS_GCP_KMS_ENDPOINT=" + server.URL}
	for name, d := range map[string]*decrypter{
		"service account of the Secret": newDecrypter(t, sops.Keys{GCP: serviceAccount(t, server.URL+"/token")}, env...),
		"token of the user":             newDecrypter(t, sops.Keys{}, append(env, "GOOGLE_OAUTH_ACCESS_TOKEN=gcp-token")...),
	} {
		got, err := d.Decrypt(t.Context(), sealed, "yaml")
		if diff := cmp.Diff(secretYAML, string(got)); err != nil || diff != "" {
			t.Errorf("%s: %v, %q, document (-want +got):\n%s", name, err, d.warnings, diff)
		}
	}
	d := newDecrypter(t, sops.Keys{}, append(env, "GOOGLE_OAUTH_ACCESS_TOKEN=other")...)
	if _, err := d.Decrypt(t.Context(), sealed, "yaml"); !errors.Is(err, sops.ErrNoKey) || len(d.warnings) != 1 || !strings.HasPrefix(d.warnings[0], "Google Cloud KMS key "+resource+" (key group 1): ") {
		t.Errorf("%v, warnings %q", err, d.warnings)
	}
}

// serviceAccount returns the credentials of a service account of Google Cloud.
func serviceAccount(t *testing.T, tokens string) []byte {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	account, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "flux", "client_email": "flux@flux.iam.gserviceaccount.com", "private_key_id": "1", "token_uri": tokens,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return account
}

// TestAzure decrypts with the managed identity of a machine. A proxy leads the requests for the
// Key Vault to a server of the test, because the client sends tokens only to Azure's domains.
func TestAzure(t *testing.T) {
	t.Parallel()
	dataKey := newDataKey(t)
	identity := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Identity-Header") != "header" || r.URL.Query().Get("resource") != "https://vault.azure.net" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"azure-token","expires_on":"4102444800","resource":"https://vault.azure.net","token_type":"Bearer"}`)
	}))
	t.Cleanup(identity.Close)
	var stolen atomic.Bool
	vault := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "team.vault.azure.net" && r.Header.Get("Authorization") != "" {
			stolen.Store(true)
		}
		if r.Header.Get("Authorization") != "Bearer azure-token" {
			w.Header().Set("WWW-Authenticate", `Bearer authorization="https://login.windows.net/tenant", resource="https://vault.azure.net"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var body struct{ Value string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/keys/key/1/decrypt" || body.Value != base64.RawURLEncoding.EncodeToString([]byte(ciphertext)) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"kid":"https://team.vault.azure.net/keys/key/1","value":%q}`, base64.RawURLEncoding.EncodeToString(dataKey))
	})
	proxy, err := testproxy.Start(filepath.Join(t.TempDir(), "ca.crt"), []string{"team.vault.azure.net", "evil.example.com"}, vault)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	env := []string{"IDENTITY_ENDPOINT=" + identity.URL, "IDENTITY_HEADER=header", "AZURE_TOKEN_CREDENTIALS=ManagedIdentityCredential"}
	for name, value := range proxy.Environment() {
		env = append(env, name+"="+value)
	}
	sealed := func(url string) []byte {
		master := azkv.NewMasterKey(url, "key", "1")
		master.EncryptedKey = base64.RawURLEncoding.EncodeToString([]byte(ciphertext))
		return seal(t, "yaml", secretYAML, dataKey, master)
	}
	d := newDecrypter(t, sops.Keys{}, env...)
	got, err := d.Decrypt(t.Context(), sealed("https://team.vault.azure.net"), "yaml")
	if diff := cmp.Diff(secretYAML, string(got)); err != nil || diff != "" {
		t.Errorf("%v, %q, document (-want +got):\n%s", err, d.warnings, diff)
	}
	d = newDecrypter(t, sops.Keys{}, env...)
	if _, err := d.Decrypt(t.Context(), sealed("https://evil.example.com"), "yaml"); !errors.Is(err, sops.ErrNoKey) || len(d.warnings) != 1 || stolen.Load() {
		t.Errorf("a server outside of Azure: %v, warnings %q, got the token: %v", err, d.warnings, stolen.Load())
	}
}
