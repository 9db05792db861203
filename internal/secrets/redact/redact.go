// Package redact masks secrets in output and logs.
package redact

import (
	"net/url"
	"strings"

	"github.com/fluxkit/flux/internal/lazy"
)

// Mask replaces a secret.
const Mask = "*****"

var (
	userinfo = lazy.Regexp(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/@\s"']+@`)
	// In JSON, an escaped quote ends the value, and Go's encoder writes & as \u0026.
	query  = lazy.Regexp(`(?i)([?&]|\\u0026)((?:[\w.-]*[-_.])?` + credentialNames + `)=(?:[^&#\s"'<>\\]|\\[^"])+`)
	ageKey = lazy.Regexp(`AGE-SECRET-KEY-(PQ-)?1[0-9A-Za-z]+`)
	pemKey = lazy.Regexp(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`)
)

// Text masks the credentials of every URL in a text, private keys, and the given secrets.
func Text(s string, secrets ...string) string {
	if strings.Contains(s, "://") {
		s = userinfo().ReplaceAllStringFunc(s, maskUserinfo)
		s = query().ReplaceAllString(s, "${1}${2}="+Mask)
	}
	if strings.Contains(s, "AGE-SECRET-KEY-") {
		s = ageKey().ReplaceAllString(s, Mask)
	}
	if strings.Contains(s, "PRIVATE KEY-----") {
		s = pemKey().ReplaceAllString(s, Mask)
	}
	for _, secret := range secrets {
		if secret != "" {
			s = strings.ReplaceAll(s, secret, Mask)
		}
	}
	return s
}

// maskUserinfo masks the password of a URL or, without a password, the user name, except in
// SSH URLs such as ssh://git@host, where the user name is not a secret.
func maskUserinfo(match string) string {
	scheme, rest, _ := strings.Cut(match, "://")
	user, _, hasPassword := strings.Cut(strings.TrimSuffix(rest, "@"), ":")
	if !hasPassword && scheme == "ssh" {
		return match
	}
	if !hasPassword {
		return scheme + "://" + Mask + "@"
	}
	return scheme + "://" + user + ":" + Mask + "@"
}

// URL returns a URL without its credentials.
func URL(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil || u.Scheme == "ssh" {
		return Text(address)
	}
	u.User = nil
	return Text(u.String())
}
