package workspace

import (
	"strings"
)

// ComparableAddress returns the address of a repository without the parts that depend on the
// protocol: it is the same for ssh://git@example.com/a/b.git and git@example.com:a/b.
func ComparableAddress(address string) string {
	_, rest, hasScheme := strings.Cut(address, "://")
	if !hasScheme {
		rest = strings.Replace(address, ":", "/", 1)
	}
	host, path, _ := strings.Cut(rest, "/")
	host = host[strings.LastIndex(host, "@")+1:]
	host, _, _ = strings.Cut(host, ":")
	return strings.ToLower(host) + "/" + strings.TrimSuffix(strings.Trim(path, "/"), ".git")
}
