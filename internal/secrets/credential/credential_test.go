package credential_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/secrets/credential"
)

func encode(t *testing.T, typ string, der []byte, err error) []byte {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: typ, Bytes: der})
}

func pair(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Unix(1<<33, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	certificate = encode(t, "CERTIFICATE", der, err)
	der, err = x509.MarshalPKCS8PrivateKey(private)
	return certificate, encode(t, "PRIVATE KEY", der, err)
}

func join(parts ...[]byte) []byte {
	var all []byte
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	certificate, key := pair(t)
	for _, good := range [][]byte{certificate, join(certificate, certificate), join([]byte("a comment\n"), certificate)} {
		if err := credential.Certificates(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range [][]byte{nil, []byte("text"), key, join(certificate, key), encode(t, "CERTIFICATE", []byte("x"), nil)} {
		if credential.Certificates(bad) == nil {
			t.Errorf("%q is accepted as certificates", bad)
		}
	}
}

func TestPair(t *testing.T) {
	t.Parallel()
	certificate, key := pair(t)
	_, other := pair(t)
	if err := credential.Pair(certificate, key); err != nil {
		t.Error(err)
	}
	for _, bad := range [][]byte{other, nil, certificate} {
		if credential.Pair(certificate, bad) == nil {
			t.Errorf("%q is accepted as the key", bad)
		}
	}
}

func TestRSAKey(t *testing.T) {
	t.Parallel()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	old := encode(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(private), nil)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	modern := encode(t, "PRIVATE KEY", der, err)
	for _, good := range [][]byte{old, modern, join(old, []byte("\n\n"))} {
		if err := credential.RSAKey(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	certificate, elliptic := pair(t)
	for _, bad := range [][]byte{nil, []byte("text"), certificate, elliptic, join(old, old)} {
		if credential.RSAKey(bad) == nil {
			t.Errorf("%q is accepted as an RSA key", bad)
		}
	}
}

func TestTrustPolicy(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{
		`{"version":"1.0","trustPolicies":[{"name":"a","signatureVerification":{"level":"strict"}}]}`: true,
		`{"version":"1.0","trustPolicies":[{"name":"a"}]}`:                                            false,
		`{"version":"1.0","trustPolicies":[{"signatureVerification":{"level":"strict"}}]}`:            false,
		`{"version":"1.0"}`: false, `{"trustPolicies":[{}]}`: false, `x`: false, ``: false,
	} {
		if err := credential.TrustPolicy([]byte(text)); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestDockerConfig(t *testing.T) {
	t.Parallel()
	got, err := credential.DockerConfig("ghcr.io", "me", `a"b`)
	want := "{\n  \"auths\": {\n    \"ghcr.io\": {\n      \"username\": \"me\",\n      \"password\": \"a\\\"b\",\n      \"auth\": \"bWU6YSJi\"\n    }\n  }\n}"
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestWebhookPath(t *testing.T) {
	t.Parallel()
	// The path that Flux 2.9 returned for this Receiver.
	const want = "/hook/b27a783f1581591b1c8ed74339b651fc92948c38aed6e2f765c53e3fe2d4bc2e"
	if got := credential.WebhookPath("abc", "hook", "flux-system"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// FuzzFiles runs every check on arbitrary text. No text passes the checks of two
// formats.
func FuzzFiles(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"))
	f.Add([]byte("-----BEGIN RSA PRIVATE KEY-----\nMAA=\n-----END RSA PRIVATE KEY-----\n"))
	f.Add([]byte(`{"version":"1.0","trustPolicies":[{"name":"a","signatureVerification":{"level":"strict"}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		taken := 0
		for _, err := range []error{credential.Certificates(text), credential.RSAKey(text), credential.TrustPolicy(text)} {
			if err == nil {
				taken++
			}
		}
		if taken > 1 {
			t.Errorf("%q is accepted as several formats", text)
		}
	})
}

// FuzzDockerConfig decodes the encoded configuration.
func FuzzDockerConfig(f *testing.F) {
	f.Add("ghcr.io", "me", `p<a>s"s`)
	f.Fuzz(func(t *testing.T, registry, username, password string) {
		text, err := credential.DockerConfig(registry, username, password)
		if err != nil {
			t.Fatal(err)
		}
		var config struct {
			Auths map[string]struct{ Auth []byte }
		}
		if err := json.Unmarshal([]byte(text), &config); err != nil {
			t.Fatal(err)
		}
		for _, auth := range config.Auths {
			if got := string(auth.Auth); got != username+":"+password {
				t.Errorf("the credentials are %q, want %q and %q", got, username, password)
			}
		}
		if len(config.Auths) != 1 {
			t.Errorf("there are %d registries", len(config.Auths))
		}
	})
}
