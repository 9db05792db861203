//go:build linux

package confine_test

import (
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fluxkit/flux/internal/secrets/sshkey"
)

// server counts the connections to a port of this machine, which it closes.
type server struct {
	address     string
	connections atomic.Int32
}

func listen(t *testing.T) *server {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, done := &server{address: l.Addr().String()}, make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.connections.Add(1)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
	return s
}

// login is a Secret for Git over SSH.
func login(t *testing.T) string {
	t.Helper()
	key, err := sshkey.Generate(sshkey.Kind{Algorithm: "ed25519"})
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("---\napiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: flux-system}\ndata: {identity: %s, known_hosts: %s}\n",
		encode(key.Private), encode([]byte("127.0.0.1 "+string(key.Public))))
}

// ofEachKind returns a source of each kind, each with a separate server.
func ofEachKind(t *testing.T) (manifests string, servers map[string]*server) {
	t.Helper()
	servers = map[string]*server{}
	for _, s := range []struct{ kind, name, spec string }{
		{"GitRepository", "http", `url: "http://%s/fleet.git"`},
		{"GitRepository", "ssh", `url: "ssh://git@%s/fleet.git", secretRef: {name: login}`},
		{"OCIRepository", "oci", `url: "oci://%s/fleet", insecure: true`},
		{"HelmRepository", "helm", `url: "http://%s/charts"`},
		{"Bucket", "bucket", `endpoint: "%s", bucketName: fleet, insecure: true, provider: generic`},
		{"ImageRepository", "image", `image: "%s/web", insecure: true`},
	} {
		at := listen(t)
		servers[s.kind+"/"+s.name] = at
		version := "source.toolkit.fluxcd.io/v1"
		if s.kind == "ImageRepository" {
			version = "image.toolkit.fluxcd.io/v1"
		}
		manifests += fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata: {name: %s, namespace: flux-system}\nspec: {interval: 1h, timeout: 5s, "+s.spec+"}\n",
			version, s.kind, s.name, at.address)
	}
	return manifests + login(t), servers
}

// bases returns a Kustomization with a base in another repository for each scheme, each with a separate server.
func bases(t *testing.T, files map[string]string, servers map[string]*server) (manifests string) {
	t.Helper()
	for _, scheme := range []string{"ssh", "http", "git"} {
		at := listen(t)
		servers["Kustomization/"+scheme] = at
		files["base-"+scheme+"/kustomization.yaml"] = fmt.Sprintf("resources: ['%s://%s/base.git?ref=main']\n", scheme, at.address)
		manifests += fmt.Sprintf(`---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %s, namespace: flux-system}
spec: {interval: 10m0s, path: ./base-%[1]s, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}
`, scheme)
	}
	return manifests
}

// markedSSH puts a program called ssh first on PATH, and returns the file that it writes.
func markedSSH(t *testing.T) (marker string) {
	t.Helper()
	programs := t.TempDir()
	marker = filepath.Join(programs, "marker")
	if err := os.WriteFile(filepath.Join(programs, "ssh"), []byte("#!/bin/sh\necho \"$@\" >>"+marker+"\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", programs+string(os.PathListSeparator)+os.Getenv("PATH"))
	return marker
}

// TestSources refers to servers on this machine in sources of each kind and in bases. There must be no connection to them,
// and bases must not run programs of the user.
func TestSources(t *testing.T) {
	marker := markedSSH(t)
	manifests, servers := ofEachKind(t)
	files := map[string]string{}
	files[cluster+"/sources.yaml"] = manifests + bases(t, files, servers)
	_, report := reconcile(t, files, false)
	found := causes(report)
	for name, s := range servers {
		if n := s.connections.Load(); n > 0 {
			t.Errorf("%s: %d connections", name, n)
		}
		message, is := found[name]
		if !is {
			t.Errorf("%s is not a root cause", name)
		}
		if !strings.HasPrefix(name, "Kustomization/") && !strings.HasPrefix(message, "the sandbox has no network: ") {
			t.Errorf("%s: %s", name, message)
		}
	}
	missing(t, marker)
}

// TestAllowedNetwork checks that the servers of TestSources receive connections if the user allows it, so that TestSources
// does not pass for another reason. Bases over SSH must still not use the program and the keys of the user.
func TestAllowedNetwork(t *testing.T) {
	marker := markedSSH(t)
	manifests, servers := ofEachKind(t)
	files := map[string]string{}
	files[cluster+"/sources.yaml"] = manifests + bases(t, files, servers)
	_, report := reconcile(t, files, true)
	for name, s := range servers {
		allowed := name != "Kustomization/ssh" && name != "Kustomization/git"
		if reached := s.connections.Load() > 0; reached != allowed {
			t.Errorf("%s is reached: %t", name, reached)
		}
	}
	for name, message := range causes(report) {
		if strings.Contains(message, "no network") {
			t.Errorf("%s: %s", name, message)
		}
	}
	missing(t, marker)
}
