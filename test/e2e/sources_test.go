package e2e_test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// archive packs files like a chart or an artifact.
func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	w := tar.NewWriter(zipped)
	for name, content := range files {
		err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), ModTime: time.Unix(0, 0)})
		if err == nil {
			_, err = io.WriteString(w, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// descriptor is the descriptor of a blob in a registry.
type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int    `json:"size"`
}

// pushArtifact uploads an artifact with one layer to the sandbox's registry and returns its digest.
func pushArtifact(f *fixture, repository, tag, configType, layerType string, layer []byte) string {
	f.t.Helper()
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": pushBlob(f, repository, configType, []byte("{}")),
		"layers": []descriptor{pushBlob(f, repository, layerType, layer)},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	httpSend(f.t, http.MethodPut, registryURL(f)+repository+"/manifests/"+tag, "application/vnd.oci.image.manifest.v1+json", manifest)
	return fmt.Sprintf("sha256:%x", sha256.Sum256(manifest))
}

func registryURL(f *fixture) string {
	return "http://" + f.cluster.Env["FLUX_SANDBOX_REGISTRY"] + "/v2/"
}

func pushBlob(f *fixture, repository, mediaType string, content []byte) descriptor {
	f.t.Helper()
	d := descriptor{mediaType, fmt.Sprintf("sha256:%x", sha256.Sum256(content)), len(content)}
	upload := httpSend(f.t, http.MethodPost, registryURL(f)+repository+"/blobs/uploads/", "", nil)
	query := upload.Query()
	query.Set("digest", d.Digest)
	upload.RawQuery = query.Encode()
	httpSend(f.t, http.MethodPut, upload.String(), "application/octet-stream", content)
	return d
}

const chart = `apiVersion: v2
name: app
version: 1.2.3
`

const chartTemplate = `apiVersion: v1
kind: ConfigMap
metadata: {name: app}
data: {from: {{ .Values.from }}}
`

// serveCharts serves versions of a chart called app until the test ends.
func serveCharts(t *testing.T, charts map[string][]byte) string {
	var index strings.Builder
	index.WriteString("apiVersion: v1\nentries:\n  app:\n")
	for version, packed := range charts {
		fmt.Fprintf(&index, "  - {apiVersion: v2, name: app, version: %s, urls: [app-%[1]s.tgz], digest: %x}\n", version, sha256.Sum256(packed))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		version := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/app-"), ".tgz")
		content, ok := charts[version]
		if !ok {
			content = []byte(index.String())
		}
		_, _ = w.Write(content) // the client detects missing content
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// startBucket serves a directory as a bucket called manifests of an S3-compatible store
// until the test ends, and returns the store's address.
func startBucket(t *testing.T, directory string) string {
	t.Helper()
	store := exec.CommandContext(t.Context(), buildOutside(t, "bucket"), "manifests", directory)
	store.Stderr = os.Stderr
	stdin, err := store.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := store.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stdin.Close(); err != nil {
			t.Error(err)
		}
		_ = store.Wait() // killed by the end of the test
	})
	endpoint, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("reading the address of the store: %v", err)
	}
	return strings.TrimSpace(endpoint)
}

// httpSend sends a request that must succeed, and returns the URL of the Location
// header.
func httpSend(t *testing.T, method, address, contentType string, body []byte) *url.URL {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if response.StatusCode >= 300 {
		t.Fatalf("%s %s: %s\n%s", method, address, response.Status, said)
	}
	place, err := response.Location()
	if err != nil {
		return request.URL
	}
	return place
}

// buildOutside builds a program that runs outside of the cluster.
func buildOutside(t *testing.T, name string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	cmd := exec.CommandContext(t.Context(), "go", "build", "-C", filepath.Join("..", "outside"), "-o", program, "./"+name)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", name, err, out)
	}
	return program
}
