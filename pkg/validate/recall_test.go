package validate_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/git/filetree"
	"github.com/fluxkit/flux/internal/kube/expression/cel"
	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/build/helm"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
	"github.com/fluxkit/flux/pkg/validate"
	"github.com/fluxkit/flux/pkg/validate/schema"
	"github.com/fluxkit/flux/pkg/validate/verdict"
)

const production = "clusters/production/"

// healthy is a repository without errors.
var healthy = map[string]string{
	production + "flux-system/gotk-sync.yaml": `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1m, url: "ssh://git@example.com/fleet", ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 10m, prune: true, path: ./clusters/production, sourceRef: {kind: GitRepository, name: flux-system}}
`,
	production + "infra.yaml": `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: infra, namespace: flux-system}
spec:
  interval: 10m
  prune: true
  path: ./infra
  sourceRef: {kind: GitRepository, name: flux-system}
  healthCheckExprs:
  - apiVersion: example.com/v1
    kind: Gadget
    current: status.phase == 'Ready'
`,
	production + "config.yaml": `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: config, namespace: flux-system}
spec:
  interval: 10m
  prune: true
  path: ./config
  sourceRef: {kind: GitRepository, name: flux-system}
  decryption: {provider: sops}
  dependsOn:
  - name: infra
    readyExpr: dep.status.conditions.exists(e, e.type == 'Ready' && e.status == 'True')
`,
	production + "apps.yaml": `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec:
  interval: 10m
  prune: true
  path: ./apps
  targetNamespace: apps
  sourceRef: {kind: GitRepository, name: flux-system}
  dependsOn: [{name: infra}]
  postBuild: {substitute: {tag: "1.2"}}
`,
	"infra/operator.yaml": `apiVersion: v1
kind: Namespace
metadata: {name: apps}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: operator, namespace: apps}
spec:
  interval: 10m
  chart: {spec: {chart: ./charts/operator, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}
  values: {size: 3}
---
apiVersion: notification.toolkit.fluxcd.io/v1
kind: Provider
metadata: {name: chat, namespace: flux-system}
spec: {type: slack, address: "https://example.com"}
---
apiVersion: notification.toolkit.fluxcd.io/v1
kind: Alert
metadata: {name: all, namespace: flux-system}
spec: {providerRef: {name: chat}, eventSources: [{kind: Kustomization, name: "*"}]}
`,
	"config/gadget.yaml": `apiVersion: example.com/v1
kind: Gadget
metadata: {name: main, namespace: apps}
spec: {min: 1, max: 2}
`,
	"config/kustomization.yaml": "resources: [gadget.yaml, secret.yaml]\n",
	"config/secret.yaml": `apiVersion: v1
kind: Secret
metadata: {name: login, namespace: apps}
stringData: {password: "ENC[AES256_GCM,data:x,type:str]"}
sops: {mac: "ENC[AES256_GCM,data:x,type:str]", version: 3.9.0}
`,
	"apps/kustomization.yaml": `resources:
- web.yaml
- settings.yaml
patches:
- target: {kind: Deployment, name: web}
  patch: |
    - {op: add, path: /metadata/annotations, value: {a.example.com/b: c}}
`,
	"apps/settings.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {mode: fast}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web}
`,
	"apps/web.yaml": `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
      annotations: {prometheus.io/scrape: "true"}
    spec:
      serviceAccountName: web
      containers:
      - name: web
        image: example.com/web:${tag}
        envFrom: [{configMapRef: {name: settings}}]
        env:
        - {name: PASSWORD, valueFrom: {secretKeyRef: {name: login, key: password}}}
        - {name: EXTRA, valueFrom: {secretKeyRef: {name: extra, key: any, optional: true}}}
        ports: [{containerPort: 8080, name: http}]
        volumeMounts: [{name: data, mountPath: /data}]
        resources: {limits: {memory: 1Gi}}
      volumes: [{name: data, emptyDir: {}}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: http}]
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 2, maxReplicas: 5}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: report}
spec:
  schedule: "0 3 * * *"
  jobTemplate:
    spec:
      template:
        metadata: {labels: {app: report}}
        spec: {restartPolicy: Never, containers: [{name: report, image: example.com/report}]}
`,
	"charts/operator/Chart.yaml":  "apiVersion: v2\nname: operator\nversion: 0.1.0\n",
	"charts/operator/values.yaml": "size: 1\n",
	"charts/operator/crds/gadget.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations: [{rule: self.min <= self.max, message: min must not exceed max}]
            properties: {min: {type: integer}, max: {type: integer}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`,
	"charts/operator/templates/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: operator}\ndata: {size: {{ .Values.size | quote }}}\n",
}

// flaw is an error, or a near miss, in a file of a repository: a text that is replaced, or appended if old is "".
type flaw struct{ name, file, old, new string }

// plant returns the healthy repository with a flaw.
func plant(t *testing.T, f flaw) map[string]string {
	t.Helper()
	files := maps.Clone(healthy)
	if f.old == "" {
		files[f.file] += f.new
		return files
	}
	if strings.Count(files[f.file], f.old) != 1 {
		t.Fatalf("%s: %s contains %q %d times", f.name, f.file, f.old, strings.Count(files[f.file], f.old))
	}
	files[f.file] = strings.Replace(files[f.file], f.old, f.new, 1)
	return files
}

// The validators keep what they have compiled.
var (
	validator = schema.NewValidator()
	evaluator = cel.New()
	supported = sync.OnceValues(func() (all []*unstructured.Unstructured, err error) {
		for _, version := range controllers.EmbeddedVersions() {
			crds, err := manifests.CRDs(version)
			if err != nil {
				return nil, err
			}
			all = append(all, crds...)
		}
		return all, nil
	})
)

// run validates a repository.
func run(t *testing.T, files map[string]string) *validate.Result {
	t.Helper()
	crds, err := manifests.CRDs(controllers.DefaultVersion)
	if err != nil {
		t.Fatal(err)
	}
	tree := fstest.MapFS{}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o444}
	}
	o := validate.Options{Schemas: validator, Kubernetes: "1.36", FluxVersion: controllers.DefaultVersion, CRDs: crds, Supported: supported, Assumed: true, Expressions: evaluator}
	o.Path, o.Namespace, o.Charts.Renderer = "clusters/production", "flux-system", &helm.Renderer{}
	result, err := validate.Run(t.Context(), repository.Revision{Tree: filetree.From(tree), Name: "head"}, o)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// describe returns a finding on a line.
func describe(f validate.Finding) string {
	return fmt.Sprintf("%s %s: %s in %s:%d: %s: %s", f.Severity, f.Rule, f.Object, f.File, f.Line, f.Field, f.Message)
}

// TestHealthy checks that the repository in which errors are planted has no findings.
func TestHealthy(t *testing.T) {
	t.Parallel()
	for _, f := range run(t, healthy).Findings {
		t.Errorf("%s", describe(f))
	}
}

const (
	appsFile  = "apps/web.yaml"
	infraFile = "infra/operator.yaml"
)

// TestRecall plants one error at a time, and counts those that are found.
func TestRecall(t *testing.T) {
	t.Parallel()
	const least = 38
	errors := []struct {
		flaw
		severity validate.Severity
		rule     string
		// place is the file and the line.
		place string
	}{
		{flaw{"a misspelled field of a container", appsFile, "        image: example.com/web", "        imag: example.com/web"}, validate.Invalid, verdict.RuleUnknownField, "apps/web.yaml:17"},
		{flaw{"a number as text", appsFile, "replicas: 2\n", "replicas: two\n"}, validate.Invalid, verdict.RuleSchema, "apps/web.yaml:7"},
		{flaw{"an invalid quantity", appsFile, "1Gi", "1GiB"}, validate.Invalid, verdict.RuleSchema, "apps/web.yaml:24"},
		{flaw{"a removed API version", appsFile, "batch/v1", "batch/v1beta1"}, validate.Invalid, verdict.RuleAPIVersion, "apps/web.yaml:39"},
		{flaw{"a misspelled kind", "apps/settings.yaml", "kind: ServiceAccount", "kind: ServiceAcount"}, validate.Invalid, verdict.RuleAPIVersion, "apps/settings.yaml:6"},
		{flaw{"a selector that does not match", appsFile, "selector: {matchLabels: {app: web}}", "selector: {matchLabels: {app: wbe}}"}, validate.Invalid, verdict.RuleSchema, "apps/web.yaml:11"},
		{flaw{"a mount without its volume", appsFile, "volumeMounts: [{name: data,", "volumeMounts: [{name: date,"}, validate.Invalid, verdict.RuleSchema, "apps/web.yaml:23"},
		{flaw{"a Service without ports", appsFile, "  ports: [{port: 80, targetPort: http}]\n", ""}, validate.Invalid, verdict.RuleSchema, "apps/web.yaml:30"},
		{flaw{"an invalid schedule", appsFile, "0 3 * * *", "0 25 * * *"}, validate.Invalid, verdict.RuleSchema, "apps/web.yaml:43"},
		{flaw{"a label that is a boolean", appsFile, "  labels: {app: web}\nspec", "  labels: {app: web, enabled: true}\nspec"}, validate.Invalid, validate.RuleLabel, "apps/web.yaml:5"},
		{flaw{"an annotation of pods that is a boolean", appsFile, `"true"`, "true"}, validate.Invalid, verdict.RuleSchema, "apps/web.yaml:12"},
		{flaw{"a number in a ConfigMap", "apps/settings.yaml", "mode: fast", "mode: 3"}, validate.Invalid, verdict.RuleSchema, "apps/settings.yaml:4"},
		{flaw{"a Secret that is not encoded", "apps/settings.yaml", "", "---\napiVersion: v1\nkind: Secret\nmetadata: {name: plain}\ndata: {a: not-encoded}\n"}, validate.Invalid, verdict.RuleSchema, "apps/settings.yaml:13"},
		{flaw{"no namespace", "config/gadget.yaml", ", namespace: apps", ""}, validate.Invalid, validate.RuleNamespace, "config/gadget.yaml:3"},
		{flaw{"an unknown field of a custom resource", "config/gadget.yaml", "max: 2", "mx: 2"}, validate.Invalid, verdict.RuleUnknownField, "config/gadget.yaml:4"},
		{flaw{"a validation rule", "config/gadget.yaml", "min: 1", "min: 3"}, validate.Invalid, verdict.RuleCEL, "config/gadget.yaml:4"},
		{flaw{"a version that is not served", "config/gadget.yaml", "example.com/v1", "example.com/v2"}, validate.Invalid, verdict.RuleAPIVersion, "config/gadget.yaml:1"},
		{flaw{"a version of Flux that is not served anymore", infraFile, "helm.toolkit.fluxcd.io/v2", "helm.toolkit.fluxcd.io/v2beta1"}, validate.Invalid, verdict.RuleAPIVersion, "infra/operator.yaml:5"},
		{flaw{"a misspelled field of a Kustomization", production + "apps.yaml", "dependsOn", "dependOn"}, validate.Unknown, validate.RuleNotValidated, "clusters/production/apps.yaml:10"},
		{flaw{"a source that does not exist", production + "apps.yaml", "kind: GitRepository, name: flux-system", "kind: GitRepository, name: fleet"}, validate.Invalid, validate.RuleReference, "clusters/production/apps.yaml:9"},
		{flaw{"a dependency that does not exist", production + "apps.yaml", "name: infra", "name: infrastructure"}, validate.Invalid, validate.RuleDependency, "clusters/production/apps.yaml:10"},
		{flaw{"a circular dependency", production + "infra.yaml", "  healthCheckExprs:", "  dependsOn: [{name: apps}]\n  healthCheckExprs:"}, validate.Invalid, validate.RuleDependency, "clusters/production/infra.yaml:9"},
		{flaw{"a provider that does not exist", infraFile, "providerRef: {name: chat}", "providerRef: {name: cat}"}, validate.Invalid, validate.RuleReference, "infra/operator.yaml:21"},
		{flaw{"a directory that does not exist", production + "config.yaml", "./config", "./conf"}, validate.Invalid, validate.RuleBuild, "clusters/production/config.yaml:1"},
		{flaw{"a resource that does not exist", "config/kustomization.yaml", "gadget.yaml", "gadgets.yaml"}, validate.Invalid, validate.RuleBuild, "clusters/production/config.yaml:1"},
		{flaw{"a misspelled field of kustomization.yaml", "apps/kustomization.yaml", "patches:", "patchs:"}, validate.Warning, validate.RuleKustomization, "apps/kustomization.yaml:4"},
		{flaw{"invalid YAML", "config/gadget.yaml", "spec: {min", "spec: {{min"}, validate.Invalid, validate.RuleBuild, "clusters/production/config.yaml:1"},
		{flaw{"an object that is declared twice", "config/gadget.yaml", "", "---\napiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: main, namespace: apps}\n"}, validate.Invalid, validate.RuleBuild, "clusters/production/config.yaml:1"},
		{flaw{"a patch without its object", "config/kustomization.yaml", "", "patches: [{patch: \"{apiVersion: v1, kind: Secret, metadata: {name: none}}\"}]\n"}, validate.Invalid, validate.RuleBuild, "clusters/production/config.yaml:1"},
		{flaw{"an object of two Kustomizations", "config/gadget.yaml", "", "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: apps}\n"}, validate.Invalid, validate.RuleOwner, ""},
		{flaw{"an encrypted Secret without decryption", production + "config.yaml", "  decryption: {provider: sops}\n", ""}, validate.Invalid, validate.RuleDecryption, "config/secret.yaml:5"},
		{flaw{"a custom resource beside its definition", infraFile, "", "---\napiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: other, namespace: apps}\nspec: {min: 1, max: 1}\n"}, validate.Invalid, validate.RuleDeadlock, "infra/operator.yaml:24"},
		{flaw{"an invalid health check", production + "infra.yaml", "== 'Ready'", "= 'Ready'"}, validate.Invalid, validate.RuleExpression, "clusters/production/infra.yaml:12"},
		{flaw{"an invalid readyExpr", production + "config.yaml", "dep.status.conditions", "dependency.status.conditions"}, validate.Invalid, validate.RuleExpression, "clusters/production/config.yaml:12"},
		{flaw{"a variable without a value", "apps/settings.yaml", "mode: fast", `mode: "${mode}"`}, validate.Warning, validate.RuleVariable, "apps/settings.yaml:4"},
		{flaw{"a ConfigMap that does not exist", appsFile, "name: settings", "name: setings"}, validate.Note, validate.RuleReference, "apps/web.yaml:18"},
		{flaw{"a target of an autoscaler that does not exist", appsFile, "kind: Deployment, name: web}", "kind: Deployment, name: wbe}"}, validate.Note, validate.RuleReference, "apps/web.yaml:37"},
		{flaw{"a namespace that nothing creates", production + "apps.yaml", "targetNamespace: apps", "targetNamespace: app"}, validate.Note, validate.RuleNamespace, "clusters/production/apps.yaml:8"},
	}
	found := make([]string, len(errors))
	t.Cleanup(func() {
		n := len(slices.DeleteFunc(found, func(text string) bool { return text == "" }))
		t.Logf("recall: %d of %d errors", n, len(errors))
		if n < least {
			t.Errorf("only %d errors are found, want %d", n, least)
		}
	})
	for i, e := range errors {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			var others []string
			for _, f := range run(t, plant(t, e.flaw)).Findings {
				if f.Severity == e.severity && f.Rule == e.rule && (e.place == "" || e.place == fmt.Sprintf("%s:%d", f.File, f.Line)) {
					found[i] = describe(f)
				} else {
					others = append(others, describe(f))
				}
			}
			if found[i] == "" {
				t.Errorf("not found; the findings are:\n%s", strings.Join(others, "\n"))
			}
		})
	}
}

// TestNotes plants references to objects that are not in Git, and checks that these are only noted.
func TestNotes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flaw
		want string
	}{
		{flaw{"a Service of no pods", infraFile, "", "---\napiVersion: v1\nkind: Service\nmetadata: {name: none, namespace: flux-system}\nspec: {selector: {app: wbe}, ports: [{port: 80}]}\n"}, "selects no pods in Git: app=wbe"},
		{flaw{"a ServiceAccount", appsFile, "serviceAccountName: web", "serviceAccountName: wbe"}, "ServiceAccount/wbe,"},
		{flaw{"a Secret in a volume", appsFile, "emptyDir: {}", "secret: {secretName: gone}"}, "Secret/gone,"},
		{flaw{"a ConfigMap in a projected volume", appsFile, "emptyDir: {}", "projected: {sources: [{configMap: {name: gone}}]}"}, "ConfigMap/gone,"},
		{flaw{"a role", "apps/settings.yaml", "", "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: a}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: gone}\nsubjects: [{kind: ServiceAccount, name: web, namespace: apps}]\n"}, "Role/gone,"},
		{flaw{"a Service of an Ingress", "apps/settings.yaml", "", "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: a}\nspec: {defaultBackend: {service: {name: gone, port: {number: 80}}}}\n"}, "Service/gone,"},
		{flaw{"the namespace of a release", infraFile, "  values: {size: 3}", "  values: {size: 3}\n  targetNamespace: new"}, "creates the namespace new"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			found := false
			for _, f := range run(t, plant(t, c.flaw)).Findings {
				if found = found || strings.Contains(f.Message, c.want); f.Severity != validate.Note {
					t.Errorf("%s", describe(f))
				}
			}
			if !found {
				t.Error("not found")
			}
		})
	}
}

// TestNearMisses checks that what is intentional or valid is not reported.
func TestNearMisses(t *testing.T) {
	t.Parallel()
	shared := func(annotation string) string {
		return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: apps, annotations: {kustomize.toolkit.fluxcd.io/" + annotation + "}}\n"
	}
	for _, f := range []flaw{
		{"ignored by one Kustomization", "config/gadget.yaml", "", shared("ssa: Ignore")},
		{"merged into that of another one", "config/gadget.yaml", "", shared("ssa: Merge")},
		{"created unless it exists", "config/gadget.yaml", "", shared("ssa: IfNotPresent")},
		{"not reconciled", "config/gadget.yaml", "", shared("reconcile: disabled")},
		{"the same name in another namespace", "config/gadget.yaml", "", "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: flux-system}\n"},
		{"a Kustomization of the same objects that is suspended", production + "apps.yaml", "", `---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: old, namespace: flux-system}
spec: {interval: 10m, prune: true, suspend: true, path: ./apps, targetNamespace: apps, sourceRef: {kind: GitRepository, name: flux-system}, postBuild: {substitute: {tag: "1"}}}
`},
		{"a Kustomization of the same objects for another cluster", production + "apps.yaml", "", `---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: old, namespace: flux-system}
spec: {interval: 10m, prune: true, path: ./apps, targetNamespace: apps, kubeConfig: {configMapRef: {name: other}}, sourceRef: {kind: GitRepository, name: flux-system}, postBuild: {substitute: {tag: "1"}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other, namespace: flux-system}
data: {provider: generic}
`},
		{"an encrypted Secret that is not decrypted on purpose", "config/secret.yaml", "namespace: apps}", "namespace: apps, annotations: {kustomize.toolkit.fluxcd.io/decrypt: disabled}}"},
		{"an annotation that is a boolean, which kustomize quotes", appsFile, "  labels: {app: web}\nspec", "  labels: {app: web}\n  annotations: {enabled: true}\nspec"},
		{"a label that is a quoted boolean", appsFile, "  labels: {app: web}\nspec", "  labels: {app: web, enabled: \"true\"}\nspec"},
		{"a custom resource beside its definition, which is in Git, too", infraFile, "", "---\napiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: other, namespace: apps}\nspec: {min: 1, max: 1}\n---\n" + healthy["charts/operator/crds/gadget.yaml"]},
		{"a health check of any field", production + "infra.yaml", "status.phase == 'Ready'", "data.phase == 'Ready'"},
		{"fields of kustomization.yaml", "config/kustomization.yaml", "", "namespace: apps\nlabels: [{pairs: {team: a}}]\nsortOptions: {order: fifo}\nbuildMetadata: []\n"},
		{"a Service of pods that a custom resource may create", appsFile, "  selector: {app: web}\n  ports", "  selector: {app: gadget}\n  ports"},
		{"the default ServiceAccount", appsFile, "serviceAccountName: web", "serviceAccountName: default"},
		{"the certificates of the cluster", appsFile, "name: settings", "name: kube-root-ca.crt"},
		{"a Secret of a custom resource", appsFile, "secretKeyRef: {name: login", "secretKeyRef: {name: main-password"},
		{"the role of Kubernetes", "apps/settings.yaml", "", "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: a}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}\nsubjects: [{kind: ServiceAccount, name: web, namespace: apps}]\n"},
		{"a namespace that the release creates", infraFile, "  values: {size: 3}", "  values: {size: 3}\n  targetNamespace: new\n  install: {createNamespace: true}"},
		{"a namespace that always exists", production + "apps.yaml", "targetNamespace: apps", "targetNamespace: default"},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for _, finding := range run(t, plant(t, f)).Findings {
				// The Secret in another namespace is a consequence of the last near miss.
				if finding.Severity != validate.Note || finding.Object.Namespace != "default" || !strings.Contains(finding.Message, "Secret/login") {
					t.Errorf("%s", describe(finding))
				}
			}
		})
	}
}
