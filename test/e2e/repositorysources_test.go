package e2e_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/pkg/repository/mapped"
	"github.com/fluxkit/flux/test/support/testcloud"
	"github.com/fluxkit/flux/test/support/testregistry"
)

// writeDependent writes a chart that depends on the chart shop, and a release of it in the directories that
// the cluster and the other repository deploy.
func writeDependent(t *testing.T, dir, name, source, charts string) {
	t.Helper()
	writeFile(t, dir, "charts/"+name+"/Chart.yaml", "apiVersion: v2\nname: "+name+"\nversion: 0.1.0\ndependencies: [{name: shop, version: 1.x, repository: \""+charts+"\"}]\n")
	release := `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: ` + name + `, namespace: flux-system}
spec:
  interval: 1h
  targetNamespace: ` + name + `
  install: {createNamespace: true}
  chart: {spec: {chart: ./charts/` + name + `, sourceRef: {kind: GitRepository, name: ` + source + `}}}
  values: {shop: {replicas: 1}}
`
	for _, directory := range []string{"clusters/production", "deploy"} {
		if _, err := os.Stat(filepath.Join(dir, directory)); err == nil {
			writeFile(t, dir, directory+"/"+name+".yaml", release)
		}
	}
}

// serveBucket adds a Bucket and serves it on loopback.
func serveBucket(t *testing.T, dir string) (closed func()) {
	t.Helper()
	bucket := testcloud.StartBucket("assets")
	bucket.Put("apps/settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: assets, namespace: default}\n")
	bucket.Put("apps/a b+c%.txt", "text")
	bucket.Put("other/invalid.yaml", "kind: [")
	writeFile(t, dir, "clusters/production/assets.yaml", `apiVersion: v1
kind: Secret
metadata: {name: assets, namespace: flux-system}
stringData: {accesskey: `+bucket.AccessKey+`, secretkey: `+bucket.SecretKey+`}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: Bucket
metadata: {name: assets, namespace: flux-system}
spec: {interval: 1h, endpoint: "`+bucket.Endpoint()+`", bucketName: assets, prefix: apps/, insecure: true, secretRef: {name: assets}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: assets, namespace: flux-system}
spec: {interval: 1h, path: ./, prune: true, sourceRef: {kind: Bucket, name: assets}}
`)
	return bucket.Close
}

// serveSources serves the charts of the layout with Helm on loopback, sets the URLs of its sources, and
// returns the URL of the Helm repository.
func serveSources(t *testing.T, dir string) (charts string, closed func()) {
	t.Helper()
	oci := testregistry.Start()
	address := "oci://" + oci.Host() + "/charts/certificates"
	_, err := registry.PushChart(t.Context(), address+":1.4.0", packChart(t, filepath.Join(dir, "charts/certificates")), time.Unix(0, 0), registry.Access{Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	shop := packChart(t, filepath.Join(dir, "charts/shop"))
	helm := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/index.yaml" {
			_, _ = fmt.Fprintf(w, "apiVersion: v1\nentries:\n  shop: [{name: shop, version: 1.2.0, urls: [shop.tgz], digest: %x}]\n", sha256.Sum256(shop))
			return
		}
		_, _ = w.Write(shop)
	}))
	for file, change := range map[string][2]string{
		"infrastructure/controllers/certificates.yaml": {"oci://registry.example.com/charts/certificates", address + "\n  insecure: true"},
		"apps/base/shop.yaml":                          {"https://charts.example.com/shop", `"` + helm.URL + `"`},
	} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || !strings.Contains(string(text), change[0]) {
			t.Fatalf("%s: %v", file, err)
		}
		writeFile(t, dir, file, strings.ReplaceAll(string(text), change[0], change[1]))
	}
	return helm.URL, func() { oci.Close(); helm.Close() }
}

// packChart packages the chart in a directory.
func packChart(t *testing.T, directory string) []byte {
	t.Helper()
	files, err := mapped.ReadFiles(t.Context(), os.DirFS(directory))
	if err != nil {
		t.Fatal(err)
	}
	inside := map[string][]byte{}
	for name, content := range files {
		inside[filepath.Base(directory)+"/"+name] = content
	}
	packed, err := mapped.PackFiles(inside)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

// packedCharts writes the charts of the layout with Helm as an OCI layout and as a packaged chart, and
// returns the mappings to them.
func packedCharts(t *testing.T, dir string) []string {
	t.Helper()
	layer := static.NewLayer(packChart(t, filepath.Join(dir, "charts/certificates")), "application/vnd.cncf.helm.chart.content.v1.tar+gzip")
	image, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), layer)
	if err != nil {
		t.Fatal(err)
	}
	packed := t.TempDir()
	path, err := layout.Write(filepath.Join(packed, "layout"), empty.Index)
	if err == nil {
		err = path.AppendImage(image, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "1.4.0"}))
	}
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, packed, "shop-1.2.0.tgz", string(packChart(t, filepath.Join(dir, "charts/shop"))))
	return []string{"--map=oci://registry.example.com/charts/certificates=" + filepath.Join(packed, "layout"), "--map=https://charts.example.com/shop=" + filepath.Join(packed, "shop-1.2.0.tgz")}
}

// serveTeam adds a GitRepository for another repository, to which write adds files, and serves it on
// loopback.
func serveTeam(sh *shell, dir string, write func(team string)) (closed func()) {
	sh.t.Helper()
	root := sh.t.TempDir()
	team := filepath.Join(root, "team")
	writeFile(sh.t, team, "deploy/settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: team, namespace: default}\n")
	write(team)
	if _, stderr, err := sh.in(team).try("git", "init", "--quiet", "--initial-branch=work"); err != nil {
		sh.t.Fatal(stderr)
	}
	commitAs(sh, team, "main")
	server := httptest.NewServer(&cgi.Handler{
		Path: lookPath(sh.env, "git"), Args: []string{"http-backend"},
		Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + root},
	})
	writeFile(sh.t, dir, "clusters/production/team.yaml", `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: team, namespace: flux-system}
spec: {interval: 1h, url: "`+server.URL+`/team", ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: team, namespace: flux-system}
spec: {interval: 1h, path: ./deploy, prune: true, sourceRef: {kind: GitRepository, name: team}}
`)
	return server.Close
}

// waiting has an ImageUpdateAutomation and a Kustomization for another cluster, which the sandbox suspends, and Kustomizations
// that wait for them.
var waiting = map[string]string{
	"clusters/demo/waiting.yaml": waitingFor("images", "wait: true") + waitingFor("remote", "kubeConfig: {secretRef: {name: remote}}") +
		waitingFor("dependent", "dependsOn: [{name: remote}]"),
	"images/automation.yaml": `apiVersion: image.toolkit.fluxcd.io/v1
kind: ImageUpdateAutomation
metadata: {name: images, namespace: default}
spec:
  interval: 1h
  sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}
  git: {commit: {author: {email: flux@example.com, name: flux}}}
`,
	"remote/config.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: remote, namespace: default}\n",
	"dependent/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: dependent, namespace: default}\n",
}

// waitingFor returns a Kustomization with another field.
func waitingFor(name, field string) string {
	return "---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + name + ", namespace: flux-system}\n" +
		"spec:\n  interval: 1h\n  timeout: 5s\n  path: ./" + name + "\n  prune: true\n  sourceRef: {kind: GitRepository, name: flux-system}\n  " + field + "\n"
}

// writeWaiting writes a repository with the image controllers.
func writeWaiting(sh *shell) string {
	dir := writeFleet(sh, waiting)
	writeFile(sh.t, dir, "clusters/demo/flux-system/gotk-components.yaml",
		sh.run("flux", "install", "--version=2.9", "--components-extra=image-reflector-controller,image-automation-controller", "--export"))
	return dir
}

// testSuspended checks that objects do not wait for those that the sandbox suspends.
func testSuspended(sh *shell) {
	r, stdout := runTest(sh, writeWaiting(sh), 2)
	if r.order("Kustomization", "images") == 0 || r.order("Kustomization", "dependent") == 0 || len(r.Causes) > 0 || len(r.NotTested) != 2 {
		sh.t.Errorf("%+v\n%s", r.Causes, stdout)
	}
}

// testSuspendedManifest checks that objects wait for those that their manifests suspend.
func testSuspendedManifest(sh *shell) {
	dir := writeWaiting(sh)
	writeFile(sh.t, dir, "images/automation.yaml", waiting["images/automation.yaml"]+"  suspend: true\n")
	r, stdout := runTest(sh, dir, 1)
	if len(r.Causes) != 1 || r.Causes[0].Object.Kind != "ImageUpdateAutomation" || !strings.HasPrefix(r.Causes[0].Message, "it is suspended by its manifest") {
		sh.t.Errorf("%+v\n%s", r.Causes, stdout)
	}
}
