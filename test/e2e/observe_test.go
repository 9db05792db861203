package e2e_test

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxkit/flux/test/support/testcluster"
)

// TestObserve compares the output of all commands that inspect a cluster with Git,
// the API, and the files and endpoints of the controllers. The last chapter stops
// the API server.
func TestObserve(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.run("flux", "install", "--components-extra=image-reflector-controller,image-automation-controller,source-watcher")
	s.namespace = "apps"
	s.run("kubectl", "create", "namespace", s.namespace)
	s.deploy()
	for _, chapter := range []struct {
		name string
		tell func(*story)
	}{
		{"fetched", (*story).fetched}, {"trace", (*story).traces}, {"tree", (*story).trees}, {"status", (*story).screens},
		{"stats", (*story).counts}, {"logs", (*story).follows}, {"events", (*story).events},
	} {
		t.Run(chapter.name, func(t *testing.T) {
			one := *s
			one.T = t
			chapter.tell(&one)
		})
	}
}

// deploy creates objects by every method that Flux supports; their names state which.
func (s *story) deploy() {
	s.Helper()
	packed := s.archive(map[string]string{"app/Chart.yaml": chart, "app/values.yaml": "from: nowhere\n", "app/templates/app.yaml": releaseTemplate})
	folder := s.TempDir()
	for name, content := range map[string]string{
		"bucket/app.yaml": configMapNamed("ks-bucket"), "app/Chart.yaml": chart, "app/values.yaml": "from: nowhere\n", "app/templates/app.yaml": releaseTemplate,
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			s.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			s.Fatal(err)
		}
	}
	registry := s.cluster.Env["FLUX_SANDBOX_REGISTRY"]
	s.push("observe/manifests", "1.0.0", "application/vnd.cncf.flux.config.v1+json", "application/vnd.cncf.flux.content.v1.tar+gzip",
		s.archive(map[string]string{"oci/app.yaml": configMapNamed("ks-oci")}))
	s.push("observe/chart", "1.2.3", "application/vnd.cncf.helm.config.v1+json", "application/vnd.cncf.helm.chart.content.v1.tar+gzip", packed)
	s.push("observe/image", "1.1.0", "application/vnd.oci.image.config.v1+json", "application/vnd.oci.image.layer.v1.tar+gzip", s.archive(nil))
	s.commit("Run everything", map[string]string{
		"git/app.yaml": configMapNamed("ks-git"), "images/app.yaml": "image: " + registry + `/observe/image:1.1.0 # {"$imagepolicy": "apps:app"}` + "\n",
		"external/app.yaml": configMapNamed("ks-external"),
		"app/Chart.yaml":    chart, "app/values.yaml": "from: nowhere\n", "app/templates/app.yaml": releaseTemplate,
		"fleet/fleet.yaml": fleetManifests, "workloads/crd.yaml": canaryDefinition, "workloads/workloads.yaml": workloadManifests,
	})
	s.run("kubectl", "create", "secret", "generic", "bucket", "--namespace=apps", "--from-literal=accesskey=flux", "--from-literal=secretkey=unchecked")
	objects := strings.NewReplacer("${GIT}", s.url, "${REGISTRY}", registry, "${CHARTS}", s.chartRepository(map[string][]byte{"1.2.3": packed}), "${BUCKET}", s.bucket(folder)).Replace(observedObjects)
	s.run("kubectl", "apply", "--namespace=apps", "--filename="+s.write("objects.yaml", objects))
	s.run("flux", "wait", "kustomization", "fleet", "--namespace=apps", "--timeout=2m") // it applies others
	for _, kind := range [][]string{{"kustomization"}, {"helmrelease"}, {"image", "update"}} {
		s.run("flux", append(append([]string{"wait"}, kind...), "--all", "--namespace=apps", "--timeout=2m")...)
	}
}

// chartRepository serves versions of a chart called app until the test ends.
func (s *story) chartRepository(charts map[string][]byte) string {
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
	s.Cleanup(server.Close)
	return server.URL
}

// bucket serves a folder as a bucket called manifests of an S3-compatible store
// until the test ends, and returns the store's address.
func (s *story) bucket(folder string) string {
	s.Helper()
	store := exec.CommandContext(s.Context(), s.outside("bucket"), "manifests", folder)
	store.Stderr = os.Stderr
	stdin, err := store.StdinPipe()
	if err != nil {
		s.Fatal(err)
	}
	stdout, err := store.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := store.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := stdin.Close(); err != nil {
			s.Error(err)
		}
		_ = store.Wait() // killed by the end of the test
	})
	endpoint, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		s.Fatalf("reading the address of the store: %v", err)
	}
	return strings.TrimSpace(endpoint)
}

func configMapNamed(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: apps}\n", name)
}

const releaseTemplate = `apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}"}
`

// fleetManifests are a Kustomization that applies a Kustomization, and a release.
const fleetManifests = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: workloads, namespace: apps}
spec: {interval: 1h, path: ./workloads, prune: true, sourceRef: {kind: GitRepository, name: app}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: shop, namespace: apps}
spec: {interval: 1h, releaseName: shop, chart: {spec: {chart: ./app, sourceRef: {kind: GitRepository, name: app}}}}
`

const canaryDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: canaries.delivery.example.com}
spec:
  group: delivery.example.com
  scope: Namespaced
  names: {kind: Canary, plural: canaries, singular: canary}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

const workloadManifests = `apiVersion: delivery.example.com/v1
kind: Canary
metadata: {name: web, namespace: apps}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: apps}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: "example.com/web:1"}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: apps}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: "example.com/db:1"}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: apps}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: migrate, image: "example.com/db:1"}]}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: backup, namespace: apps}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: backup, image: "example.com/db:1"}]}}}}
`

// observedObjects are the sources and what comes from them: ks-* is applied by
// a Kustomization, hr-* by a HelmRelease.
const observedObjects = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: app}
spec: {interval: 1h, url: "${GIT}", ref: {branch: main}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: manifests}
spec: {interval: 1h, url: "oci://${REGISTRY}/observe/manifests", ref: {tag: 1.0.0}, insecure: true}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: chart}
spec:
  interval: 1h
  url: "oci://${REGISTRY}/observe/chart"
  ref: {semver: 1.x}
  insecure: true
  layerSelector: {mediaType: application/vnd.cncf.helm.chart.content.v1.tar+gzip, operation: copy}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: Bucket
metadata: {name: app}
spec: {interval: 1h, endpoint: "${BUCKET}", bucketName: manifests, insecure: true, secretRef: {name: bucket}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: app}
spec: {interval: 1h, url: "${CHARTS}"}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {name: own}
spec: {interval: 1h, chart: app, sourceRef: {kind: HelmRepository, name: app}}
---
apiVersion: source.extensions.fluxcd.io/v1beta1
kind: ArtifactGenerator
metadata: {name: parts}
spec:
  sources: [{alias: git, kind: GitRepository, name: app}]
  artifacts:
  - {name: manifests, copy: [{from: "@git/external/**", to: "@artifact/external/"}]}
  - {name: chart, copy: [{from: "@git/app/**", to: "@artifact/app/"}]}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: fleet}
spec: {interval: 1h, path: ./fleet, prune: true, sourceRef: {kind: GitRepository, name: app}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: ks-git}
spec: {interval: 1h, path: ./git, prune: true, sourceRef: {kind: GitRepository, name: app}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: ks-oci}
spec: {interval: 1h, path: ./oci, prune: true, sourceRef: {kind: OCIRepository, name: manifests}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: ks-bucket}
spec: {interval: 1h, path: ./bucket, prune: true, sourceRef: {kind: Bucket, name: app}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: ks-external}
spec: {interval: 1h, path: ./external, prune: true, sourceRef: {kind: ExternalArtifact, name: manifests}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: hr-git}
spec: {interval: 1h, chart: {spec: {chart: ./app, sourceRef: {kind: GitRepository, name: app}}}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: hr-bucket}
spec: {interval: 1h, chart: {spec: {chart: ./app, sourceRef: {kind: Bucket, name: app}}}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: hr-repository}
spec: {interval: 1h, chart: {spec: {chart: app, version: 1.x, sourceRef: {kind: HelmRepository, name: app}}}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: hr-oci}
spec: {interval: 1h, chartRef: {kind: OCIRepository, name: chart}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: hr-chart}
spec: {interval: 1h, chartRef: {kind: HelmChart, name: own}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: hr-external}
spec: {interval: 1h, chartRef: {kind: ExternalArtifact, name: chart}}
---
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImageRepository
metadata: {name: app}
spec: {interval: 1h, image: "${REGISTRY}/observe/image", insecure: true}
---
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImagePolicy
metadata: {name: app}
spec: {imageRepositoryRef: {name: app}, policy: {semver: {range: 1.x}}}
---
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImageUpdateAutomation
metadata: {name: app}
spec: {interval: 1h, sourceRef: {kind: GitRepository, name: app}, git: {commit: {author: {email: a@example.com}}}, update: {path: ./images}}
`

// proxy starts a proxy for the API server until the story ends.
func (s *story) proxy() *testcluster.Proxy {
	s.Helper()
	proxy, err := testcluster.NewProxy(s.cluster, 0)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			s.Error(err)
		}
	})
	return proxy
}
