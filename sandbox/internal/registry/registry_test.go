package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/fluxkit/flux/sandbox/internal/credentials"
)

// bound limits a test that hangs; no test comes near it.
const bound = time.Minute

// start runs a registry and returns its address and a function that stops it.
func start(t *testing.T, root string) (address string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan string, 1), make(chan error, 1)
	go func() {
		done <- Run(ctx, Config{Root: root, Addr: "127.0.0.1:0", Ready: func(a string) { ready <- a }})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(bound):
			t.Error("Run does not return after its context is canceled")
		}
	})
	select {
	case address = <-ready:
	case err := <-done:
		t.Fatalf("Run ended before it was ready: %v", err)
	}
	t.Cleanup(stop)
	return address, stop
}

// artifact returns an image like those of flux push: one layer with a custom media type.
func artifact(t *testing.T, content string) v1.Image {
	t.Helper()
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, "application/vnd.cncf.flux.config.v1+json")
	image, err := mutate.AppendLayers(image, static.NewLayer([]byte(content), "application/vnd.cncf.flux.content.v1.tar+gzip"))
	check(t, err)
	return image
}

func reference(t *testing.T, format string, args ...any) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(fmt.Sprintf(format, args...), name.Insecure)
	check(t, err)
	return ref
}

// content pulls an artifact and returns the content of its layer.
func content(t *testing.T, ref name.Reference, options ...remote.Option) (string, error) {
	t.Helper()
	image, err := remote.Image(ref, append(options, remote.WithContext(t.Context()))...)
	if err != nil {
		return "", err
	}
	layers, err := image.Layers()
	check(t, err)
	reader, err := layers[0].Compressed()
	check(t, err)
	data, err := io.ReadAll(reader)
	check(t, errors.Join(err, reader.Close()))
	return string(data), nil
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestContentSurvivesARestart(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	address, stop := start(t, root)
	first, second, left := artifact(t, "first"), artifact(t, "second"), artifact(t, "left")
	push := func(tag string, image v1.Image) {
		check(t, remote.Write(reference(t, "%s/acme/app:%s", address, tag), image, remote.WithContext(t.Context())))
	}
	push("v1", first)
	push("latest", left)
	push("latest", second) // moves the tag
	push("gone", second)
	check(t, remote.Delete(reference(t, "%s/acme/app:gone", address), remote.WithContext(t.Context())))
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: first}, mutate.IndexAddendum{Add: second})
	nested := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: index})
	check(t, remote.WriteIndex(reference(t, "%s/acme/app:index", address), nested, remote.WithContext(t.Context())))
	digest, err := left.Digest()
	check(t, err)

	for _, life := range []string{"before", "after"} {
		if life == "after" {
			stop()
			address, _ = start(t, root)
		}
		for ref, want := range map[string]string{":v1": "first", ":latest": "second", "@" + digest.String(): "left"} {
			got, err := content(t, reference(t, "%s/acme/app%s", address, ref))
			check(t, err)
			if got != want {
				t.Errorf("%s the restart %s is %q, want %q", life, ref, got, want)
			}
		}
		tags, err := remote.List(reference(t, "%s/acme/app", address).Context(), remote.WithContext(t.Context()))
		check(t, err)
		if got, want := fmt.Sprint(tags), "[index latest v1]"; got != want {
			t.Errorf("%s the restart the tags are %s, want %s", life, got, want)
		}
		got, err := remote.Index(reference(t, "%s/acme/app:index", address), remote.WithContext(t.Context()))
		check(t, err)
		gotDigest, err := got.Digest()
		check(t, err)
		if wantDigest, err := nested.Digest(); err != nil || gotDigest != wantDigest {
			t.Errorf("%s the restart the index is %s, want %s (%v)", life, gotDigest, wantDigest, err)
		}
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	address, _ := start(t, root)
	image := artifact(t, "secret")
	check(t, remote.Write(reference(t, "%s/app:old", address), image)) // no credentials are configured yet
	file := credentials.In(root)
	check(t, file.SetPassword("ada", "correct-horse", false))
	check(t, file.SetPassword("bob", "look-only", true))

	tests := []struct {
		name, user, password string
		pull, push           int
	}{
		{"no credentials", "", "", http.StatusUnauthorized, http.StatusUnauthorized},
		{"wrong password", "ada", "look-only", http.StatusUnauthorized, http.StatusUnauthorized},
		{"reader", "bob", "look-only", http.StatusOK, http.StatusForbidden},
		{"writer", "ada", "correct-horse", http.StatusOK, http.StatusOK},
	}
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			login := remote.WithAuth(authn.Anonymous)
			if test.user != "" {
				login = remote.WithAuth(&authn.Basic{Username: test.user, Password: test.password})
			}
			_, err := content(t, reference(t, "%s/app:old", address), login)
			if got := status(err); got != test.pull {
				t.Errorf("pull: status %d, want %d: %v", got, test.pull, err)
			}
			err = remote.Write(reference(t, "%s/new:%d", address, i), artifact(t, test.name), login)
			if got := status(err); got != test.push {
				t.Errorf("push: status %d, want %d: %v", got, test.push, err)
			}
		})
	}
}

func status(err error) int {
	if err == nil {
		return http.StatusOK
	}
	var refused *transport.Error
	if errors.As(err, &refused) {
		return refused.StatusCode
	}
	return 0
}

func TestRunStopsWithAnOpenUpload(t *testing.T) {
	t.Parallel()
	address, stop := start(t, t.TempDir())
	body, unfinished := io.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+address+"/v2/app/manifests/v1", body)
	check(t, err)
	ended := make(chan error, 1)
	go func() {
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			err = response.Body.Close()
		}
		ended <- err
	}()
	_, err = unfinished.Write([]byte("{"))
	check(t, err)
	stop()
	_ = unfinished.Close()
	if err := <-ended; err == nil {
		t.Error("the interrupted upload succeeded")
	}
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	damaged := t.TempDir()
	check(t, os.Mkdir(filepath.Join(damaged, "manifests"), 0o700))
	broken := filepath.Join(damaged, "manifests", "x.json")
	check(t, os.WriteFile(broken, []byte("{"), 0o600))
	tests := []struct{ name, root, address, want string }{
		{"address of another interface", t.TempDir(), "0.0.0.0:0", `registry: listen address "0.0.0.0:0" is reachable from other machines: use 127.0.0.1, [::1] or localhost`},
		{"damaged manifest", damaged, "127.0.0.1:0", "reading stored manifest " + broken + ": unexpected end of JSON input"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), bound)
			defer cancel()
			err := Run(ctx, Config{Root: test.root, Addr: test.address})
			if got := fmt.Sprint(err); got != test.want {
				t.Errorf("Run: %s\nwant: %s", got, test.want)
			}
		})
	}
}

func TestDamagedCredentialsAllowNoAccess(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	address, _ := start(t, root)
	check(t, os.WriteFile(filepath.Join(root, "credentials.json"), []byte("{"), 0o600))
	response, err := http.Get("http://" + address + "/v2/")
	check(t, err)
	var body bytes.Buffer
	_, err = body.ReadFrom(response.Body)
	check(t, errors.Join(err, response.Body.Close()))
	want := `{"errors":[{"code":"UNKNOWN","message":"the registry's credentials cannot be read: see its log"}]}` + "\n"
	if response.StatusCode != http.StatusInternalServerError || body.String() != want {
		t.Errorf("got %d %s, want 500 %s", response.StatusCode, &body, want)
	}
}
