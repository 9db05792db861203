package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCreateOCI(t *testing.T) {
	t.Parallel()
	f := newTeam(t)
	layer := archive(t, map[string]string{"deploy/app.yaml": configMapFrom(f, "oci")})
	digest := pushArtifact(f, "oci/app", "1.0.0", "application/vnd.cncf.flux.config.v1+json", "application/vnd.cncf.flux.content.v1.tar+gzip", layer)
	create(f, []string{"source", "oci", "app", "--url=oci://" + f.cluster.Env["FLUX_SANDBOX_REGISTRY"] + "/oci/app", "--tag-semver=1.x", "--insecure", "--interval=1h"},
		"✔ OCIRepository source app is ready", "✔ fetched revision 1.0.0@"+digest)
	createKustomization(f, "OCIRepository/app", "1.0.0@"+digest)
	checkField(f, configMaps, "app", "data.from", "oci")
}

func TestCreateHelm(t *testing.T) {
	t.Parallel()
	f := newTeam(t)
	packed := archive(t, map[string]string{
		"app/Chart.yaml": chart, "app/values.yaml": "from: nowhere\n", "app/templates/app.yaml": chartTemplate,
	})
	_, stderr, err := f.shell.try("flux", "create", "source", "helm", "charts", "--url="+serveCharts(t, map[string][]byte{"1.2.3": packed}), "--interval=1h")
	if err != nil || !strings.Contains(stderr, "\n✔ HelmRepository source charts is ready\n✔ fetched revision sha256:") {
		t.Fatalf("creating a HelmRepository: %v\n%s", err, stderr)
	}
	values := tempFile(t, "values.yaml", "from: helm\n")
	create(f, []string{"helmrelease", "app", "--source=HelmRepository/charts", "--chart=app", "--chart-version=1.x", "--values=" + values, "--interval=1h"},
		"✔ HelmRelease app is ready", "✔ applied revision 1.2.3")
	checkField(f, configMaps, "app", "data.from", "helm")
}

// TestCreateBucket applies manifests from an S3-compatible store.
func TestCreateBucket(t *testing.T) {
	t.Parallel()
	f := newTeam(t)
	directory := t.TempDir()
	if err := os.MkdirAll(filepath.Join(directory, "deploy"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(directory, "deploy", "app.yaml"), []byte(configMapFrom(f, "bucket")), 0o600); err != nil {
		t.Fatal(err)
	}
	key := tempFile(t, "key", "not checked\n")
	_, stderr, err := f.shell.try("flux", "create", "source", "bucket", "app", "--endpoint="+startBucket(t, directory), "--bucket-name=manifests",
		"--insecure", "--access-key=flux", "--secret-key-file="+key, "--interval=1h")
	_, revision, found := strings.Cut(stderr, "✔ Bucket source app is ready\n✔ fetched revision ")
	if err != nil || !found {
		t.Fatalf("creating a Bucket: %v\n%s", err, stderr)
	}
	createKustomization(f, "Bucket/app", strings.TrimSpace(revision))
	checkField(f, configMaps, "app", "data.from", "bucket")
}
