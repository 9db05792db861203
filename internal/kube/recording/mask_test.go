package recording_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/kube/recording"
	"github.com/fluxkit/flux/pkg/controllers"
)

// TestMask checks that nothing called canary is left of an object, and that everything called kept is.
func TestMask(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ group, object string }{
		"secret":    {"", `{kind: Secret, metadata: {name: kept, labels: {a: kept}}, data: {a: canary}, stringData: {b: canary}}`},
		"configmap": {"", `{kind: ConfigMap, metadata: {name: kept}, data: {a: canary}, binaryData: {b: canary}}`},
		"revision":  {"apps", `{kind: ControllerRevision, metadata: {name: kept}, data: {spec: canary}}`},
		"deployment": {"apps", `
kind: Deployment
metadata:
  name: kept
  annotations: {kubectl.kubernetes.io/last-applied-configuration: canary, note: kept, example.com/api-token: canary, api-token: canary}
  managedFields: [{fieldsV1: {canary: {}}}]
spec:
  template:
    spec:
      initContainers: [{name: kept, env: [{name: A, value: canary}]}]
      containers:
      - name: kept
        image: kept
        args: [--token=canary, --password, canary, --log-level=kept, --token-file, "--secret"]
        command: [kept, PASSWORD=canary]
        env: [{name: A, value: canary}, {name: B, valueFrom: {secretKeyRef: {name: kept, key: kept}}}]
        livenessProbe: {httpGet: {path: /kept, httpHeaders: [{name: Authorization, value: canary}]}}`},
		"custom resource": {"example.com", `{kind: Database, metadata: {name: kept}, spec: {login: canary}, status: {conditions: [{type: kept, message: kept}]}}`},
		"release": {"helm.toolkit.fluxcd.io", `
kind: HelmRelease
metadata: {name: kept, managedFields: [{manager: kept}]}
spec:
  interval: kept
  values: {kept: {kept: canary}, kept2: [canary, {kept: canary}]}
  valuesFrom: [{kind: Secret, name: kept}]
  postRenderers: [{kustomize: {patches: [{patch: canary, target: {kind: kept}}]}}]
status: {conditions: [{message: kept}]}`},
		"kustomization": {"kustomize.toolkit.fluxcd.io", `
kind: Kustomization
metadata: {name: kept}
spec:
  path: kept
  postBuild: {substitute: {kept: canary}, substituteFrom: [{kind: Secret, name: kept}]}
  patches: [{patch: "canary"}]
  patchesStrategicMerge: [{a: canary}]
  patchesJson6902: [{kept: canary}]`},
		"source": {"source.toolkit.fluxcd.io", `
kind: GitRepository
metadata: {name: kept}
spec: {url: "https://kept:canary@kept/x.git?token=canary"}
status: {conditions: [{message: "unable to clone 'https://kept:canary@kept/x.git': -----BEGIN PRIVATE KEY-----canary-----END PRIVATE KEY-----"}]}`},
		"provider":    {"notification.toolkit.fluxcd.io", `{kind: Provider, metadata: {name: kept}, spec: {address: "https://kept.example.com/canary/canary"}}`},
		"odd address": {"notification.toolkit.fluxcd.io", `{kind: Provider, metadata: {name: kept}, spec: {address: "canary"}}`},
		"receiver": {"notification.toolkit.fluxcd.io", `
kind: Receiver
metadata: {name: kept}
status: {webhookPath: /hook/XX, conditions: [{message: "kept path: /hook/XX"}]}`},
		"event": {"", `{kind: Event, metadata: {name: kept}, message: "kept https://kept:canary@kept/", involvedObject: {name: kept}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.ReplaceAll(c.object, "XX", strings.Repeat("ca", 32))
			var o controllers.Object
			if err := yaml.Unmarshal([]byte(text), &o); err != nil {
				t.Fatal(err)
			}
			(&recording.Masker{}).Object(c.group, o)
			masked, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(masked), "canary") || strings.Contains(string(masked), "caca") {
				t.Errorf("a secret is left: %s", masked)
			}
			if got, want := strings.Count(string(masked), "kept"), strings.Count(text, "kept"); got != want {
				t.Errorf("%d of %d other values are left: %s", got, want, masked)
			}
		})
	}
}

// TestMaskRemembers checks that values of credentials are masked in later messages, and that other
// values and short ones are not.
func TestMaskRemembers(t *testing.T) {
	t.Parallel()
	var o controllers.Object
	if err := yaml.Unmarshal([]byte(`
spec:
  values: {dbPassword: canary-password, environment: production, token: abc, nested: {client-secret: canary-client}}
  template: {env: [{name: API_TOKEN, value: canary-env}, {name: MODE, value: verbose-mode}], args: [--token, canary-arg]}`), &o); err != nil {
		t.Fatal(err)
	}
	m := &recording.Masker{}
	m.Object("helm.toolkit.fluxcd.io", o)
	encoded := base64.StdEncoding.EncodeToString([]byte("canary-password"))
	got := m.Text("in production: canary-password canary-client canary-env canary-arg verbose-mode abc " + encoded)
	if want := "in production: ***** ***** ***** ***** verbose-mode abc *****"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
