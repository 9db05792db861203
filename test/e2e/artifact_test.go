package e2e_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// archive packs files like a chart or an artifact.
func (s *story) archive(files map[string]string) []byte {
	s.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	w := tar.NewWriter(zipped)
	for name, content := range files {
		err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), ModTime: time.Unix(0, 0)})
		if err == nil {
			_, err = io.WriteString(w, content)
		}
		if err != nil {
			s.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		s.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		s.Fatal(err)
	}
	return packed.Bytes()
}

// descriptor is the descriptor of a blob in a registry.
type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int    `json:"size"`
}

// push uploads an artifact with one layer to the sandbox's registry and returns its digest.
func (s *story) push(repository, tag, configType, layerType string, layer []byte) string {
	s.Helper()
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": s.blob(repository, configType, []byte("{}")),
		"layers": []descriptor{s.blob(repository, layerType, layer)},
	})
	if err != nil {
		s.Fatal(err)
	}
	s.http(http.MethodPut, s.registry()+repository+"/manifests/"+tag, "application/vnd.oci.image.manifest.v1+json", manifest)
	return fmt.Sprintf("sha256:%x", sha256.Sum256(manifest))
}

func (s *story) registry() string { return "http://" + s.cluster.Env["FLUX_SANDBOX_REGISTRY"] + "/v2/" }

func (s *story) blob(repository, mediaType string, content []byte) descriptor {
	s.Helper()
	d := descriptor{mediaType, fmt.Sprintf("sha256:%x", sha256.Sum256(content)), len(content)}
	upload := s.http(http.MethodPost, s.registry()+repository+"/blobs/uploads/", "", nil)
	query := upload.Query()
	query.Set("digest", d.Digest)
	upload.RawQuery = query.Encode()
	s.http(http.MethodPut, upload.String(), "application/octet-stream", content)
	return d
}

func (s *story) ociAndKustomization() {
	layer := s.archive(map[string]string{"deploy/app.yaml": s.configMap("oci")})
	digest := s.push("oci/app", "1.0.0", "application/vnd.cncf.flux.config.v1+json", "application/vnd.cncf.flux.content.v1.tar+gzip", layer)
	s.create([]string{"source", "oci", "app", "--url=oci://" + s.cluster.Env["FLUX_SANDBOX_REGISTRY"] + "/oci/app", "--tag-semver=1.x", "--insecure", "--interval=1h"},
		"✔ OCIRepository source app is ready", "✔ fetched revision 1.0.0@"+digest)
	s.kustomization("OCIRepository/app", "1.0.0@"+digest)
	s.has(configMaps, "app", "data.from", "oci")
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

func (s *story) helmAndRelease() {
	packed := s.archive(map[string]string{
		"app/Chart.yaml": chart, "app/values.yaml": "from: nowhere\n", "app/templates/app.yaml": chartTemplate,
	})
	_, stderr, err := s.try("flux", "create", "source", "helm", "charts", "--url="+s.chartRepository(map[string][]byte{"1.2.3": packed}), "--interval=1h")
	if err != nil || !strings.Contains(stderr, "\n✔ HelmRepository source charts is ready\n✔ fetched revision sha256:") {
		s.Fatalf("creating a HelmRepository: %v\n%s", err, stderr)
	}
	values := s.write("values.yaml", "from: helm\n")
	s.create([]string{"helmrelease", "app", "--source=HelmRepository/charts", "--chart=app", "--chart-version=1.x", "--values=" + values, "--interval=1h"},
		"✔ HelmRelease app is ready", "✔ applied revision 1.2.3")
	s.has(configMaps, "app", "data.from", "helm")
}

// bucketAndKustomization applies manifests from an S3-compatible store.
func (s *story) bucketAndKustomization() {
	folder := s.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "deploy"), 0o755); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "deploy", "app.yaml"), []byte(s.configMap("bucket")), 0o600); err != nil {
		s.Fatal(err)
	}
	key := s.write("key", "not checked\n")
	_, stderr, err := s.try("flux", "create", "source", "bucket", "app", "--endpoint="+s.bucket(folder), "--bucket-name=manifests",
		"--insecure", "--access-key=flux", "--secret-key-file="+key, "--interval=1h")
	_, revision, found := strings.Cut(stderr, "✔ Bucket source app is ready\n✔ fetched revision ")
	if err != nil || !found {
		s.Fatalf("creating a Bucket: %v\n%s", err, stderr)
	}
	s.kustomization("Bucket/app", strings.TrimSpace(revision))
	s.has(configMaps, "app", "data.from", "bucket")
}
