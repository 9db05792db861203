package decrypt_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/getsops/sops/v3/azkv"
	"github.com/getsops/sops/v3/gcpkms"
	"github.com/getsops/sops/v3/hckms"
	"github.com/getsops/sops/v3/hcvault"
	"github.com/getsops/sops/v3/keys"
	"github.com/getsops/sops/v3/kms"
	"github.com/getsops/sops/v3/pgp"

	"github.com/fluxkit/flux/internal/secrets/sops"
)

const (
	awsARN    = "arn:aws:kms:eu-west-1:123456789012:key/12345678-1234-1234-1234-123456789012"
	gcpName   = "projects/flux/locations/global/keyRings/apps/cryptoKeys/team"
	azureTeam = "https://team.vault.azure.net"
)

// stranger is a key of a document that must not cause a request or run a program.
type stranger struct {
	key  keys.MasterKey
	own  sops.Keys
	env  []string
	want string
}

func vaultKey(address, engine, name string) keys.MasterKey {
	key := hcvault.NewMasterKey(address, engine, name)
	key.EncryptedKey = ciphertext
	return key
}

func awsKMSKey(arn, role, profile string) keys.MasterKey {
	key := kms.NewMasterKeyWithProfile(arn, role, nil, profile)
	key.EncryptedKey = encoded([]byte(ciphertext))
	return key
}

func azureKey(url, name string) keys.MasterKey {
	key := azkv.NewMasterKey(url, name, "1")
	key.EncryptedKey = base64.RawURLEncoding.EncodeToString([]byte(ciphertext))
	return key
}

func gcpKey(name string) keys.MasterKey {
	key := gcpkms.NewMasterKeyFromResourceID(name)
	key.EncryptedKey = encoded([]byte(ciphertext))
	return key
}

// strangers are keys of documents by name. Each names a server, or needs one that answers.
func strangers(t *testing.T, server, secure string) map[string]stranger {
	t.Helper()
	huawei, err := hckms.NewMasterKey("cn-north-4:key")
	if err != nil {
		t.Fatal(err)
	}
	huawei.EncryptedKey = ciphertext
	gpg := pgp.NewMasterKeyFromFingerprint("85D77543B3D624B63CEA9E6DBC17301B491B3F21")
	gpg.EncryptedKey = "-----BEGIN PGP MESSAGE-----\n\nhello\n-----END PGP MESSAGE-----\n"
	host := strings.TrimPrefix(server, "http://")
	token := []string{"VAULT_TOKEN=hvs.canary"}
	named := append(token, "VAULT_ADDR="+server)
	aws := []string{"AWS_ACCESS_KEY_ID=AKIAFLUX", "AWS_SECRET_ACCESS_KEY=secret", "AWS_SESSION_TOKEN=canary"}
	stolen := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(stolen, []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	external := encodeJSON(t, map[string]any{
		"type": "external_account", "audience": "x", "subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": server + "/token",
		"credential_source": map[string]string{"file": stolen},
	})
	elsewhere := "a token is only sent to the address in VAULT_ADDR"
	return map[string]stranger{
		"Vault that the user did not name":      {vaultKey(server, "transit", "team"), sops.Keys{}, token, elsewhere},
		"Vault, with the token of a Secret":     {vaultKey(server, "transit", "team"), sops.Keys{Vault: "hvs.canary"}, nil, elsewhere},
		"Vault, where all addresses are named":  {vaultKey(server, "transit", "team"), sops.Keys{}, append(token, "SOPS_HC_VAULT_ALLOWLIST=all"), elsewhere},
		"Vault, where none is named":            {vaultKey(server, "transit", "team"), sops.Keys{}, append(named, "SOPS_HC_VAULT_ALLOWLIST=none"), elsewhere},
		"Vault on a port that begins alike":     {vaultKey(server, "transit", "team"), sops.Keys{}, append(token, "VAULT_ADDR="+server[:len(server)-1]), elsewhere},
		"Vault with a user in the address":      {vaultKey("http://vault.example.com:80@"+host, "transit", "team"), sops.Keys{}, append(token, "VAULT_ADDR=http://vault.example.com"), elsewhere},
		"Vault behind a socket":                 {vaultKey("unix:///var/run/docker.sock", "transit", "team"), sops.Keys{}, named, elsewhere},
		"another part of Vault's API":           {vaultKey(server, "../..", "../../sys/seal"), sops.Keys{}, named, `invalid element ".." in the key path`},
		"another part, by the name of the key":  {vaultKey(server, "transit", "../../secret/team"), sops.Keys{}, named, `invalid element "../../secret/team" in the key path`},
		"AWS with a host as its region":         {awsKMSKey("arn:aws:kms:x@"+host+"/?:1:key/x", "", ""), sops.Keys{}, aws, "not an AWS KMS key ARN"},
		"AWS with a region of two ARNs":         {awsKMSKey("arn:aws:kms:eu-west-1:1:key/x:kms:x@"+host+"/:1:key/x", "", ""), sops.Keys{}, aws, "not an AWS KMS key ARN"},
		"AWS with a role":                       {awsKMSKey(awsARN, "arn:aws:iam::999:role/evil", ""), sops.Keys{}, append(aws, "AWS_ENDPOINT_URL="+server), "set AWS_ROLE_ARN to allow it"},
		"AWS with a profile":                    {awsKMSKey(awsARN, "", "prod"), sops.Keys{}, append(aws, "AWS_ENDPOINT_URL="+server), "set AWS_PROFILE to allow it"},
		"AWS without credentials":               {awsKMSKey(awsARN, "", ""), sops.Keys{}, []string{"AWS_ENDPOINT_URL=" + server, "AWS_EC2_METADATA_SERVICE_ENDPOINT=" + server}, "no EC2 IMDS role found"},
		"Azure on another host":                 {azureKey(secure, "key"), sops.Keys{}, []string{"AZURE_TOKEN_CREDENTIALS=AzureCLICredential"}, "not an Azure Key Vault domain"},
		"Azure on a host that ends alike":       {azureKey("https://x@"+strings.TrimPrefix(secure, "https://")+"/.vault.azure.net", "key"), sops.Keys{}, []string{"AZURE_TOKEN_CREDENTIALS=AzureCLICredential"}, "not an Azure Key Vault domain"},
		"Azure with a path as a name":           {azureKey(azureTeam, "../secrets/x"), sops.Keys{}, []string{"AZURE_TOKEN_CREDENTIALS=AzureCLICredential"}, "malformed key name or version"},
		"Azure without credentials":             {azureKey(azureTeam, "key"), sops.Keys{}, nil, "set AZURE_TOKEN_CREDENTIALS"},
		"Azure, with an authority of a Secret":  {azureKey(azureTeam, "key"), sops.Keys{Azure: encodeJSON(t, map[string]any{"tenantId": "t", "clientId": "c", "clientSecret": "s", "authorityHost": secure})}, nil, "set AZURE_AUTHORITY_HOST to allow it"},
		"Azure, with an identity of a Secret":   {azureKey(azureTeam, "key"), sops.Keys{Azure: []byte("clientId: c\n")}, nil, "set AZURE_TOKEN_CREDENTIALS to use managed identities"},
		"Google Cloud without credentials":      {gcpKey(gcpName), sops.Keys{}, nil, "no credentials: set GOOGLE_APPLICATION_CREDENTIALS"},
		"Google Cloud with another name":        {gcpKey("projects/x/locations/x/keyRings/x/cryptoKeys/x?y"), sops.Keys{}, []string{"GOOGLE_OAUTH_ACCESS_TOKEN=t"}, "not a Google Cloud KMS key name"},
		"Google Cloud, to which files are sent": {gcpKey(gcpName), sops.Keys{GCP: external}, nil, `unsupported credentials type "external_account" in sops.gcp-kms`},
		"Google Cloud, tokens elsewhere":        {gcpKey(gcpName), sops.Keys{GCP: serviceAccount(t, server+"/token")}, []string{"SOPS_GCP_KMS_ENDPOINT=https://cloudkms.googleapis.com"}, "token_uri of sops.gcp-kms is not in a Google domain"},
		"Huawei Cloud without credentials":      {huawei, sops.Keys{}, nil, "set HUAWEICLOUD_SDK_AK and HUAWEICLOUD_SDK_SK"},
		"a PGP key, which gpg may have":         {gpg, sops.Keys{}, nil, "gpg was not run: set SOPS_GPG_EXEC or GNUPGHOME"},
	}
}

// TestDocumentsOfStrangers checks that a document sends no request to a host that the user has not
// named, and runs no program: a server of the test, which is also the proxy of the process, and
// programs of the names that the libraries run, count what reaches them.
func TestDocumentsOfStrangers(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	count := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.WriteHeader(http.StatusForbidden)
	})
	plain, secure := httptest.NewServer(count), httptest.NewTLSServer(count)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	authority := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	bin, ran := t.TempDir(), filepath.Join(t.TempDir(), "ran")
	for _, name := range []string{"az", "azd", "pwsh", "gpg", "gcloud", "age-plugin-x"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho $0 >> '"+ran+"'\n"), 0o700); err != nil { // a program
			t.Fatal(err)
		}
	}
	dataKey := newDataKey(t)
	for name, s := range strangers(t, plain.URL, secure.URL) {
		env := append([]string{"PATH=" + bin, "HTTP_PROXY=" + plain.URL, "HTTPS_PROXY=" + plain.URL, "SSL_CERT_FILE=" + authority}, s.env...)
		d := newDecrypter(t, s.own, env...)
		_, err := d.Decrypt(t.Context(), seal(t, "yaml", secretYAML, dataKey, s.key), "yaml")
		if !errors.Is(err, sops.ErrNoKey) || len(d.warnings) != 1 || !strings.Contains(d.warnings[0], s.want) || !strings.Contains(d.warnings[0], " (key group 1): ") {
			t.Errorf("%s: %v, warnings %q, want %s", name, err, d.warnings, s.want)
		}
		if n := requests.Swap(0); n != 0 {
			t.Errorf("%s: %d requests", name, n)
		}
		if programs, err := os.ReadFile(ran); err == nil {
			t.Fatalf("%s: ran %s", name, programs)
		}
	}
}

// TestNamedByTheUser decrypts with keys that are near those of strangers, because the user has named
// the server, the role, or the path of the engine.
func TestNamedByTheUser(t *testing.T) {
	t.Parallel()
	dataKey := newDataKey(t)
	var paths atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths.Store(r.URL.Path)
		if r.URL.Path == "/" { // AWS
			w.Header().Set("Content-Type", "application/x-amz-json-1.1")
			_ = json.NewEncoder(w).Encode(map[string]string{"KeyId": awsARN, "Plaintext": encoded(dataKey)})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]string{"plaintext": encoded(dataKey)}})
	}))
	t.Cleanup(server.Close)
	aws := []string{"AWS_ACCESS_KEY_ID=AKIAFLUX", "AWS_SECRET_ACCESS_KEY=secret", "AWS_ENDPOINT_URL=" + server.URL}
	profiles := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(profiles, []byte("[prod]\naws_access_key_id = AKIAFLUX\naws_secret_access_key = secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]stranger{
		"VAULT_ADDR":                  {vaultKey(server.URL, "transit", "team"), sops.Keys{Vault: "t"}, []string{"VAULT_ADDR=" + server.URL + "/"}, "/v1/transit/decrypt/team"},
		"a list":                      {vaultKey(server.URL+"/", "transit", "team"), sops.Keys{Vault: "t"}, []string{"SOPS_HC_VAULT_ALLOWLIST=https://vault.example.com, " + server.URL}, "/v1/transit/decrypt/team"},
		"all, with VAULT_ADDR":        {vaultKey(server.URL, "transit", "team"), sops.Keys{Vault: "t"}, []string{"SOPS_HC_VAULT_ALLOWLIST=all", "VAULT_ADDR=" + server.URL}, "/v1/transit/decrypt/team"},
		"an engine below a namespace": {vaultKey(server.URL, "teams/apps/transit", "team_1.prod-eu"), sops.Keys{Vault: "t"}, []string{"VAULT_ADDR=" + server.URL}, "/v1/teams/apps/transit/decrypt/team_1.prod-eu"},
		"AWS by an alias":             {awsKMSKey("arn:aws-us-gov:kms:us-gov-west-1:123456789012:alias/team/apps_1", "", ""), sops.Keys{}, aws, "/"},
		"AWS with AWS_PROFILE":        {awsKMSKey(awsARN, "", "prod"), sops.Keys{}, append(aws, "AWS_PROFILE=prod", "AWS_SHARED_CREDENTIALS_FILE="+profiles), "/"},
	} {
		d := newDecrypter(t, s.own, s.env...)
		got, err := d.Decrypt(t.Context(), seal(t, "yaml", secretYAML, dataKey, s.key), "yaml")
		if err != nil || string(got) != secretYAML {
			t.Errorf("%s: %v, %q", name, err, d.warnings)
		}
		if path := paths.Swap(""); path != s.want {
			t.Errorf("%s: request of %v, want %s", name, path, s.want)
		}
	}
}

func encodeJSON(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
