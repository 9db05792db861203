package testcloud

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	tenant   = "11111111-2222-3333-4444-555555555555"
	client   = "66666666-7777-8888-9999-000000000000"
	role     = "arn:aws:iam::123456789012:role/flux"
	pool     = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/flux/providers/ci"
	email    = "flux@fluxtest.iam.gserviceaccount.com"
	accessID = "AKIAFLUXTEST"
)

// account contains the secrets of the identities.
type account struct {
	// accessKey is the secret access key of AWS.
	accessKey string
	// clientSecret is the secret of a service principal of Azure.
	clientSecret string
	// metadata is the secret header of metadata endpoints.
	metadata string
	// issuer signs the tokens of workloads.
	issuer string
	// key is the key of a service account of Google Cloud.
	key *rsa.PrivateKey
}

func newAccount() (account, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	return account{accessKey: secret("access-key"), clientSecret: secret("client-secret"), metadata: secret("metadata"), issuer: secret("issuer"), key: key}, err
}

func (a account) secrets() []string { return []string{a.accessKey, a.clientSecret, a.metadata} }

// secret returns a new secret that names its purpose.
func secret(purpose string) string { return purpose + "-" + rand.Text() }

// Identities of the environment.
const (
	AWSKeys        = "aws-keys"
	AWSContainer   = "aws-container"
	AWSInstance    = "aws-instance"
	AWSWebIdentity = "aws-web-identity"
	AzureSecret    = "azure-secret"
	AzureWorkload  = "azure-workload"
	AzureManaged   = "azure-managed"
	AzureCLI       = "azure-cli"
	GCPMetadata    = "gcp-metadata"
	GCPKey         = "gcp-key"
	GCPFederated   = "gcp-federated"
	GitHubApp      = "github-app"
	// None is an environment without identities.
	None = "none"
)

// Environment returns the environment variables with which clients connect to the cloud with an
// identity. They prevent requests to metadata endpoints outside of the cloud.
func (c *Cloud) Environment(identity string) (map[string]string, error) {
	env := map[string]string{
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_EC2_METADATA_SERVICE_ENDPOINT": c.plain.URL,
		"GCE_METADATA_HOST":       strings.TrimPrefix(c.plain.URL, "http://"),
		"AZURE_TOKEN_CREDENTIALS": "ManagedIdentityCredential", "IDENTITY_ENDPOINT": c.plain.URL + "/azure", "IDENTITY_HEADER": "unknown",
	}
	maps.Copy(env, c.proxy.Environment())
	own, err := c.identity(identity)
	for name, value := range own {
		env[name] = value
	}
	return env, err
}

func (c *Cloud) identity(identity string) (map[string]string, error) {
	a := c.account
	if env := (systems{c}).environment(identity); env != nil {
		return env, nil
	}
	switch identity {
	case None:
		return nil, nil
	case AWSKeys:
		c.grant(accessID, grant{use: "aws", secret: a.accessKey})
		return map[string]string{"AWS_ACCESS_KEY_ID": accessID, "AWS_SECRET_ACCESS_KEY": a.accessKey}, nil
	case AWSContainer:
		return map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": c.plain.URL + "/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN": a.metadata}, nil
	case AWSInstance:
		return map[string]string{"AWS_EC2_METADATA_DISABLED": "false"}, nil
	case AWSWebIdentity:
		file, err := c.write("aws.jwt", a.token("sts.amazonaws.com"))
		return map[string]string{"AWS_ROLE_ARN": role, "AWS_WEB_IDENTITY_TOKEN_FILE": file, "AWS_REGION": "eu-west-1"}, err
	case AzureSecret:
		return azure("EnvironmentCredential", "AZURE_CLIENT_SECRET", a.clientSecret), nil
	case AzureWorkload:
		file, err := c.write("azure.jwt", a.token("api://AzureADTokenExchange"))
		return azure("WorkloadIdentityCredential", "AZURE_FEDERATED_TOKEN_FILE", file), err
	case AzureManaged:
		return map[string]string{"IDENTITY_HEADER": a.metadata}, nil
	case AzureCLI:
		return c.azureCLI()
	case GitHubApp:
		_, err := c.write("app.pem", privateKey(a.key))
		return nil, err
	case GCPMetadata:
		c.grant(machine, grant{use: machine})
		return nil, nil
	case GCPKey:
		file, err := c.writeJSON("key.json", map[string]any{
			"type": "service_account", "project_id": "fluxtest", "private_key_id": "1", "client_email": email,
			"token_uri": "https://" + googleTokens + "/token", "private_key": privateKey(a.key),
		})
		return map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": file}, err
	case GCPFederated:
		token, err := c.write("google.jwt", a.token(pool))
		if err != nil {
			return nil, err
		}
		file, err := c.writeJSON("federated.json", map[string]any{
			"type": "external_account", "audience": pool, "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
			"token_url": "https://" + googleSTS + "/v1/token", "credential_source": map[string]string{"file": token},
		})
		return map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": file}, err
	}
	return nil, fmt.Errorf("unknown identity %q", identity)
}

func azure(credential, name, value string) map[string]string {
	return map[string]string{
		"AZURE_TOKEN_CREDENTIALS": credential, "AZURE_TENANT_ID": tenant, "AZURE_CLIENT_ID": client,
		"AZURE_AUTHORITY_HOST": "https://" + entra + "/", name: value,
	}
}

// azureCLI writes a program az that prints a registry token like the Azure CLI, and returns its
// directory for PATH.
func (c *Cloud) azureCLI() (map[string]string, error) {
	token := microsoft{c}.accessToken(registryScope)
	text := fmt.Sprintf(`#!/bin/sh
case "$*" in
*get-access-token*containerregistry.azure.net*) echo '{"accessToken":"%s","expires_on":%d,"tenant":"%s"}' ;;
*) echo "unexpected $*" >&2; exit 1 ;;
esac
`, token, time.Now().Add(time.Hour).Unix(), tenant)
	bin := filepath.Join(c.dir, "az-bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		return nil, err
	}
	err := os.WriteFile(filepath.Join(bin, "az"), []byte(text), 0o700)
	return map[string]string{"AZURE_TOKEN_CREDENTIALS": "AzureCLICredential", "PATH": bin}, err
}

// token returns a token of a workload for an audience.
func (a account) token(audience string) string {
	claims, _ := json.Marshal(map[string]any{"aud": audience, "sub": "flux", "exp": time.Now().Add(time.Hour).Unix()}) // a map of strings and numbers
	body := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + base64.RawURLEncoding.EncodeToString(claims)
	return body + "." + a.sign(body)
}

func (a account) sign(body string) string {
	sum := hmac.New(sha256.New, []byte(a.issuer))
	_, _ = sum.Write([]byte(body)) // never fails
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

// verify checks the signature, the audience and the time of a token of a workload.
func (a account) verify(token, audience string) error {
	i := strings.LastIndex(token, ".")
	if i < 0 || !hmac.Equal([]byte(a.sign(token[:i])), []byte(token[i+1:])) {
		return errors.New("the signature of the token is invalid")
	}
	claims, err := claimsOf(token)
	switch {
	case err != nil:
		return err
	case claims.Audience != audience:
		return fmt.Errorf("the audience of the token is %q, not %q", claims.Audience, audience)
	case claims.Expires < time.Now().Unix():
		return errExpired
	}
	return nil
}

type claims struct {
	Audience string `json:"aud"`
	Issuer   string `json:"iss"`
	Scope    string `json:"scope"`
	Expires  int64  `json:"exp"`
}

func claimsOf(token string) (claims, error) {
	var c claims
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, errors.New("not a JWT")
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal(text, &c)
}

// verifyKey checks an assertion that the key of the service account signed.
func (a account) verifyKey(assertion string) error {
	claims, err := a.claimsOfKey(assertion)
	if err == nil && (claims.Issuer != email || claims.Audience != "https://"+googleTokens+"/token" || claims.Expires < time.Now().Unix()) {
		err = fmt.Errorf("unexpected claims %+v", claims)
	}
	return err
}

// verifyApp checks a token that the key of the GitHub App signed.
func (a account) verifyApp(token string) error {
	claims, err := a.claimsOfKey(token)
	if now := time.Now(); err == nil && (claims.Issuer != appID || claims.Expires < now.Unix() || claims.Expires > now.Add(10*time.Minute).Unix()) {
		err = fmt.Errorf("unexpected claims %+v", claims)
	}
	return err
}

// claimsOfKey returns the claims of a token that the key signed.
func (a account) claimsOfKey(token string) (claims, error) {
	i := strings.LastIndex(token, ".")
	if i < 0 {
		return claims{}, errors.New("not a JWT")
	}
	signature, err := base64.RawURLEncoding.DecodeString(token[i+1:])
	if err != nil {
		return claims{}, err
	}
	sum := sha256.Sum256([]byte(token[:i]))
	if err := rsa.VerifyPKCS1v15(&a.key.PublicKey, crypto.SHA256, sum[:], signature); err != nil {
		return claims{}, err
	}
	return claimsOf(token)
}

func privateKey(key *rsa.PrivateKey) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

func (c *Cloud) write(name, text string) (string, error) {
	file := filepath.Join(c.dir, name)
	return file, os.WriteFile(file, []byte(text), 0o600)
}

func (c *Cloud) writeJSON(name string, content any) (string, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	return c.write(name, string(text))
}
