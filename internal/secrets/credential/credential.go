// Package credential validates keys, certificates and policies for Secrets, and
// encodes credentials in the formats that the controllers read.
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

// Certificates returns an error unless text is a list of certificates in PEM format.
func Certificates(text []byte) error {
	found := 0
	for rest := text; ; found++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("unexpected PEM block %s: want CERTIFICATE", block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("invalid certificate: %w", err)
		}
	}
	if found == 0 {
		return errors.New("no certificate in PEM format")
	}
	return nil
}

// Pair returns an error unless a certificate and a key match.
func Pair(certificate, key []byte) error {
	_, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return fmt.Errorf("the certificate and the key do not match: %w", err)
	}
	return nil
}

// RSAKey returns an error unless text is a single RSA key in PEM format, such as the key of a GitHub App.
func RSAKey(text []byte) error {
	block, rest := pem.Decode(text)
	if block == nil {
		return errors.New("no key in PEM format")
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return errors.New("more than one key")
	}
	if _, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return nil
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return fmt.Errorf("the %s is not a valid RSA key", block.Type)
	}
	if _, ok := key.(*rsa.PrivateKey); !ok {
		return errors.New("not an RSA key")
	}
	return nil
}

// TrustPolicy returns an error unless text is a Notation trust policy.
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
		return fmt.Errorf("invalid JSON: %w", err)
	}
	switch {
	case policy.Version == "":
		return errors.New(`missing field "version"`)
	case len(policy.TrustPolicies) == 0:
		return errors.New(`missing field "trustPolicies"`)
	}
	for _, p := range policy.TrustPolicies {
		if p.Name == "" {
			return errors.New("a trust policy has no name")
		}
		if p.SignatureVerification.Level == "" {
			return fmt.Errorf("trust policy %q has no signatureVerification.level", p.Name)
		}
	}
	return nil
}

// dockerAuth declares its fields in the order in which Flux 2 writes them.
type dockerAuth struct {
	Username string `json:"username"`
	Password string `json:"password"`
	Auth     string `json:"auth"`
}

// DockerConfig returns a Docker configuration with the credentials of one registry.
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

// WebhookPath returns the path on which notification-controller serves a
// Receiver. It is a hash that includes the token.
func WebhookPath(token, name, namespace string) string {
	sum := sha256.Sum256([]byte(token + name + namespace))
	return "/hook/" + hex.EncodeToString(sum[:])
}
