// Package credential checks keys, certificates and policies before they are
// put into Secrets, and encodes what controllers expect there.
package credential

import (
	"bytes"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
)

// Certificates refuses text that is anything but certificates in PEM form.
func Certificates(text []byte) error {
	found := 0
	for rest := text; ; found++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("there is a %s where a certificate is expected", block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("the certificate cannot be read: %w", err)
		}
	}
	if found == 0 {
		return errors.New("there is no certificate in PEM form")
	}
	return nil
}

// Pair refuses a certificate and a key that do not belong together.
func Pair(certificate, key []byte) error {
	_, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return fmt.Errorf("the certificate and the key do not go together: %w", err)
	}
	return nil
}

// RSAKey refuses what is no RSA key in PEM form, as GitHub hands them out to Apps.
func RSAKey(text []byte) error {
	block, rest := pem.Decode(text)
	if block == nil {
		return errors.New("there is no key in PEM form")
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return errors.New("there is more than one key")
	}
	if _, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return nil
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return fmt.Errorf("the %s cannot be read as an RSA key", block.Type)
	}
	if _, ok := key.(*rsa.PrivateKey); !ok {
		return errors.New("it is no RSA key")
	}
	return nil
}

// TrustPolicy refuses what is no trust policy of Notation.
func TrustPolicy(text []byte) error {
	var policy struct {
		Version       string `json:"version"`
		TrustPolicies []struct {
			Name                  string `json:"name"`
			SignatureVerification struct {
				Level string `json:"level"`
			} `json:"signatureVerification"`
			TrustStores []string `json:"trustStores"`
		} `json:"trustPolicies"`
	}
	if err := json.Unmarshal(text, &policy); err != nil {
		return fmt.Errorf("it is not JSON: %w", err)
	}
	switch {
	case policy.Version == "":
		return errors.New(`it has no "version"`)
	case len(policy.TrustPolicies) == 0:
		return errors.New(`it has no "trustPolicies"`)
	}
	for _, p := range policy.TrustPolicies {
		if p.Name == "" {
			return errors.New("a policy in it has no name")
		}
		if p.SignatureVerification.Level == "" {
			return fmt.Errorf("policy %q in it has no signatureVerification.level", p.Name)
		}
	}
	return nil
}

// dockerAuth has its fields in the order in which Flux has always written them.
type dockerAuth struct {
	Username string `json:"username"`
	Password string `json:"password"`
	Auth     string `json:"auth"`
}

// DockerConfig is the text of a Docker configuration that logs in to one registry.
func DockerConfig(registry, username, password string) (string, error) {
	auth := base64.StdEncoding.EncodeToString([]byte(username + ":" + password))
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(true)
	err := e.Encode(map[string]any{"auths": map[string]dockerAuth{registry: {username, password, auth}}})
	if err != nil {
		return "", fmt.Errorf("encoding the registry's credentials: %w", err)
	}
	return string(bytes.TrimRight(text.Bytes(), "\n")), nil
}

// WebhookPath is where notification-controller listens for a Receiver: nobody
// finds it who does not know the token.
func WebhookPath(token, name, namespace string) string {
	sum := sha256.Sum256([]byte(token + name + namespace))
	return "/hook/" + hex.EncodeToString(sum[:])
}
