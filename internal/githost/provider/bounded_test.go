package provider

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fluxkit/flux/internal/ci"
	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/rest"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/test/support/testgithost"
)

// TestEndless checks that reading from a host that sends a response, or pages, without end stops at
// a limit that the error names. Package gitlab has the same test.
func TestEndless(t *testing.T) {
	t.Parallel()
	for how, serve := range testgithost.Endless() {
		for _, kind := range []string{ci.GitHub, ci.Gitea, ci.BitbucketServer} {
			t.Run(kind+" "+how, func(t *testing.T) {
				t.Parallel()
				h := githost.Hosted{Owner: "acme", Name: "fleet", Token: "t0ken"}
				h.Hostname, h.CABundle = testgithost.StartHandler(t, serve)
				client, err := rest.Caller{Now: time.Now}.Client(h)
				if err != nil {
					t.Fatal(err)
				}
				host, err := Hosts()[kind].Open(h, client)
				if err != nil {
					t.Fatal(err)
				}
				err = host.DeployKey(t.Context(), githost.DeployKey{Title: "title", Public: testgithost.KeyOne})
				var known *hint.Error
				if !errors.As(err, &known) || !strings.Contains(err.Error(), how) {
					t.Errorf("got %v, want %q and a remedy", err, how)
				}
			})
		}
	}
}
