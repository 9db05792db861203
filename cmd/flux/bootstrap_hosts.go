package main

import (
	"net/http"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/pkg/bootstrap/githost"
)

// hostRow is a Git host with an API: all that its command is made of.
type hostRow struct {
	// word is the command's, name the host's.
	word, name string
	// tokenEnv is the variable with the token, scopes what the token has to allow.
	tokenEnv, scopes string
	// hostname is the default one, "" where it has to be given.
	hostname string
	// owner says what owns a repository; nested says that slashes lead to subgroups.
	owner  string
	nested bool
	// visibilities are the words of --visibility, visibility its default; nil
	// where there is --private only.
	visibilities []string
	visibility   string
	teams        teamWords
	// extra adds the flags that no other host has; nil for none.
	extra   func(*hostedFlags, *pflag.FlagSet)
	example string
	// host makes the row's Host.
	host func(githost.Hosted, *http.Client, *hostedFlags) (githost.Host, error)
}

// hostRows are the Git hosts with an API.
func hostRows() []hostRow {
	return []hostRow{}
}
