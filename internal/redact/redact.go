// Package redact keeps secrets out of what people and logs get to read.
package redact

import (
	"net/url"
	"regexp"
	"strings"
)

// Mask stands for a secret.
const Mask = "*****"

var userinfo = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/@\s"']+@`)

// Text masks the credentials of every URL in a text and each of the secrets.
func Text(s string, secrets ...string) string {
	s = userinfo.ReplaceAllStringFunc(s, maskUserinfo)
	for _, secret := range secrets {
		if secret != "" {
			s = strings.ReplaceAll(s, secret, Mask)
		}
	}
	return s
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
	return u.String()
}
