//go:build linux

package confine_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/fluxkit/flux/pkg/testrun"
	"github.com/fluxkit/flux/pkg/testrun/settle"
)

// TestOtherUsers uses the servers of a sandbox like another user of this machine: without the credentials in its directory.
func TestOtherUsers(t *testing.T) {
	t.Parallel()
	for _, network := range []bool{false, true} {
		t.Run(fmt.Sprintf("network allowed %t", network), func(t *testing.T) {
			t.Parallel()
			run, report := reconcile(t, map[string]string{}, network)
			if report.Result != settle.Ready {
				t.Errorf("the result is %s", report.Result)
			}
			repository := run.Sandbox.Remote(run.Address).URL
			for _, service := range []string{"git-upload-pack", "git-receive-pack"} {
				if code := get(t, repository+"/info/refs?service="+service); code != http.StatusUnauthorized {
					t.Errorf("%s returns %d without credentials", service, code)
				}
			}
			ref, err := name.ParseReference(run.Sandbox.Registry+"/web:1", name.Insecure)
			if err != nil {
				t.Fatal(err)
			}
			if err := remote.Write(ref, empty.Image, remote.WithContext(t.Context()), remote.WithAuth(authn.Anonymous)); err == nil {
				t.Error("the registry accepts an image without credentials")
			}
			user, password, _ := strings.Cut(run.Sandbox.Credentials(), ":")
			if err := remote.Write(ref, empty.Image, remote.WithContext(t.Context()), remote.WithAuth(&authn.Basic{Username: user, Password: password})); err != nil {
				t.Errorf("the registry rejects the credentials: %v", err)
			}
			if !network {
				unreachable(t, run)
			}
		})
	}
}

func get(t *testing.T, url string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode
}

// unreachable fails if a program on this machine can connect to a controller, with its artifacts, events, metrics and
// profiles, or to another component. All of them except the supervisor have a separate network.
func unreachable(t *testing.T, run *testrun.Run) {
	t.Helper()
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	same := 0
	all := processes(t, run.Sandbox.Dir(), "")
	for _, pid := range all {
		network, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
		if err != nil {
			t.Fatal(err)
		}
		if network == own {
			same++
		}
	}
	if len(all) != 14 || same != 1 {
		t.Errorf("%d of %d processes have the network of this machine", same, len(all))
	}
}
