package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fluxkit/flux/test/support/testcluster"
)

// TestInspect compares the output of all commands that inspect a cluster with Git,
// the API, and the files and endpoints of the controllers. The last subtest stops
// the API server.
func TestInspect(t *testing.T) {
	t.Parallel()
	f := newWhole(t)
	f.shell.run("flux", "install", "--components-extra=image-reflector-controller,image-automation-controller,source-watcher")
	f = f.in("apps")
	reportFailure(f)
	f.shell.run("kubectl", "create", "namespace", f.namespace)
	deployEverything(f)
	for _, subtest := range []struct {
		name string
		run  func(*fixture)
	}{
		{"pull", buildFetched}, {"trace", compareTraces}, {"tree", compareTrees}, {"status", compareStatus},
		{"stats", compareStats}, {"logs", followLogs}, {"events", compareEvents},
	} {
		t.Run(subtest.name, func(t *testing.T) { subtest.run(f.as(t)) })
	}
}

// deployEverything creates objects with every method that Flux supports; their names contain
// the method.
func deployEverything(f *fixture) {
	f.t.Helper()
	packed := archive(f.t, map[string]string{"app/Chart.yaml": chart, "app/values.yaml": "from: nowhere\n", "app/templates/app.yaml": releaseTemplate})
	bucket := f.t.TempDir()
	for name, content := range map[string]string{
		"bucket/app.yaml": configMapNamed("ks-bucket"), "app/Chart.yaml": chart, "app/values.yaml": "from: nowhere\n", "app/templates/app.yaml": releaseTemplate,
	} {
		writeFile(f.t, bucket, name, content)
	}
	registry := f.cluster.Env["FLUX_SANDBOX_REGISTRY"]
	pushArtifact(f, "observe/manifests", "1.0.0", "application/vnd.cncf.flux.config.v1+json", "application/vnd.cncf.flux.content.v1.tar+gzip",
		archive(f.t, map[string]string{"oci/app.yaml": configMapNamed("ks-oci")}))
	pushArtifact(f, "observe/chart", "1.2.3", "application/vnd.cncf.helm.config.v1+json", "application/vnd.cncf.helm.chart.content.v1.tar+gzip", packed)
	pushArtifact(f, "observe/image", "1.1.0", "application/vnd.oci.image.config.v1+json", "application/vnd.oci.image.layer.v1.tar+gzip", archive(f.t, nil))
	f.git.commit("Run everything", map[string]string{
		"git/app.yaml": configMapNamed("ks-git"), "images/app.yaml": "image: " + registry + `/observe/image:1.1.0 # {"$imagepolicy": "apps:app"}` + "\n",
		"external/app.yaml": configMapNamed("ks-external"),
		"app/Chart.yaml":    chart, "app/values.yaml": "from: nowhere\n", "app/templates/app.yaml": releaseTemplate,
		"fleet/fleet.yaml": fleetManifests, "workloads/crd.yaml": canaryDefinition, "workloads/workloads.yaml": workloadManifests,
	})
	f.shell.run("kubectl", "create", "secret", "generic", "bucket", "--namespace=apps", "--from-literal=accesskey=flux", "--from-literal=secretkey=unchecked")
	objects := strings.NewReplacer("${GIT}", f.git.url, "${REGISTRY}", registry, "${CHARTS}", serveCharts(f.t, map[string][]byte{"1.2.3": packed}), "${BUCKET}", startBucket(f.t, bucket)).Replace(observedObjects)
	f.shell.run("kubectl", "apply", "--namespace=apps", "--filename="+tempFile(f.t, "objects.yaml", objects))
	f.shell.run("flux", "wait", "kustomization", "fleet", "--namespace=apps") // it applies others
	for _, kind := range [][]string{{"kustomization"}, {"helmrelease"}, {"image", "update"}} {
		f.shell.run("flux", append(append([]string{"wait"}, kind...), "--all", "--namespace=apps", waitFlag)...)
	}
}

func configMapNamed(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: apps}\n", name)
}

const releaseTemplate = `apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}"}
`

// fleetManifests contains a Kustomization that applies a Kustomization and a release.
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

// observedObjects lists the sources and the objects that are applied from them: ks-* by a
// Kustomization, hr-* by a HelmRelease.
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

// startProxy starts a proxy for the API server until the test ends.
func startProxy(f *fixture) *testcluster.Proxy {
	f.t.Helper()
	proxy, err := testcluster.NewProxy(f.cluster, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			f.t.Error(err)
		}
	})
	return proxy
}
