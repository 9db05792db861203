// Package clienttls configures TLS for servers that have their own certificate authority or ask for a
// client certificate.
package clienttls

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// Config returns a configuration that trusts only the certificate authority ca, or those of the system
// without one, and presents the client certificate cert with its key, if any. All are PEM-encoded. The
// errors name the server, such as "the bucket".
func Config(server string, ca, cert, key []byte) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(ca) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, errors.New("reading the certificate authority of " + server + ": there is no certificate in it")
		}
	}
	if len(cert) > 0 {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("reading the certificate for %s: %w", server, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
