// Package redact keeps secrets out of what people and logs get to read.
package redact

import (
	"net/url"
	"regexp"
	"strings"
)

// Mask stands for a secret.
const Mask = "*****"

var (
	userinfo = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/@\s"']+@`)
	query    = regexp.MustCompile(`([?&])([\w.-]+)=([^&#\s"'<>]+)`)
	ageKey   = regexp.MustCompile(`AGE-SECRET-KEY-(PQ-)?1[0-9A-Za-z]+`)
	pemKey   = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`)
)

// Text masks the credentials of every URL in a text, private keys, and each of
// the secrets.
func Text(s string, secrets ...string) string {
	if strings.Contains(s, "://") {
		s = userinfo.ReplaceAllStringFunc(s, maskUserinfo)
		s = query.ReplaceAllStringFunc(s, maskParameter)
	}
	if strings.Contains(s, "AGE-SECRET-KEY-") {
		s = ageKey.ReplaceAllString(s, Mask)
	}
	if strings.Contains(s, "PRIVATE KEY-----") {
		s = pemKey.ReplaceAllString(s, Mask)
	}
	for _, secret := range secrets {
		if secret != "" {
			s = strings.ReplaceAll(s, secret, Mask)
		}
	}
	return s
}

// maskParameter masks the value of a parameter of a query that is named like credentials.
func maskParameter(match string) string {
	name, _, _ := strings.Cut(match[1:], "=")
	if !Named(name) {
		return match
	}
	return match[:1] + name + "=" + Mask
}

// maskUserinfo keeps a user name that comes without a password, which is no
// secret and which SSH addresses need ("ssh://git@host").
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

// URL returns an address without its credentials, to be shown to people.
func URL(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil || u.Scheme == "ssh" {
		return Text(address)
	}
	u.User = nil
	return Text(u.String())
}
