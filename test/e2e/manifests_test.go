package e2e_test

import (
	"fmt"
	"strings"
)

// troubled returns a Deployment whose pods the sandbox simulates in a state.
func troubled(state string) string {
	return `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {sandbox.fluxkit.dev/state: ` + state + `}}
    spec: {containers: [{name: web, image: "example.com/web:1"}]}
`
}

const plainMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}\n"

// web returns a Deployment with the given number of pods.
func web(replicas string) string {
	return strings.Replace(troubled(`""`), "spec:\n", "spec:\n  replicas: "+replicas+"\n", 1)
}

func service(name, spec string) string {
	return "apiVersion: v1\nkind: Service\nmetadata: {name: " + name + "}\nspec: {selector: {app: web}, " + spec + "}\n"
}

func deployment(name, app string, replicas int, image string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %s}
spec:
  replicas: %d
  selector: {matchLabels: {app: %[3]s}}
  template: {metadata: {labels: {app: %[3]s}}, spec: {containers: [{name: app, image: %[4]q, ports: [{containerPort: 80}]}]}}
---
`, name, replicas, app, image)
}

// configMap returns a ConfigMap with optional lines of metadata.
func configMap(name, data string, metadata ...string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s%s}\ndata: {%s}\n---\n", name, strings.Join(metadata, ""), data)
}

const (
	testPod = "apiVersion: v1\nkind: Pod\nmetadata: {name: app-test, annotations: {helm.sh/hook: test, sandbox.fluxkit.dev/state: STATE}}\n" +
		"spec: {restartPolicy: Never, containers: [{name: test, image: \"example.com/test:1\"}]}\n"
	hookJob = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate, annotations: {helm.sh/hook: \"post-install,post-upgrade\"}}\n" +
		"spec: {backoffLimit: 0, template: {metadata: {annotations: {sandbox.fluxkit.dev/state: STATE}}, spec: {restartPolicy: Never, containers: [{name: migrate, image: \"example.com/migrate:1\"}]}}}\n"
	once = "  install: {strategy: {name: RemediateOnFailure}, remediation: {retries: 0}}\n" +
		"  upgrade: {strategy: {name: RemediateOnFailure}, remediation: {retries: 0, remediateLastFailure: true, strategy: rollback}}\n"
)
