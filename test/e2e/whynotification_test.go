package e2e_test

import (
	"slices"
	"strings"
	"testing"
)

func TestWhyNotifications(t *testing.T) {
	t.Parallel()
	runFailures(newShared(t), notificationFailures(), false)
}

func TestNightlyWhyNotifications(t *testing.T) {
	t.Parallel()
	runFailures(newShared(t), notificationFailures(), true)
}

func notificationFailures() []failure {
	alert := func(name, provider string) string {
		return "apiVersion: notification.toolkit.fluxcd.io/v1beta3\nkind: Alert\nmetadata: {name: " + name + "}\nspec: {providerRef: {name: " + provider + "}, eventSources: [{kind: Kustomization, name: '*'}]}\n"
	}
	const provider = "apiVersion: notification.toolkit.fluxcd.io/v1beta3\nkind: Provider\nmetadata: {name: chat}\nspec: {type: generic, timeout: 2s, address: \"http://127.0.0.1:1/hooks/not-for-output\"}\n"
	return []failure{
		{
			name: "receiver", once: true, nightly: true, args: []string{"receiver", "app"}, root: "Receiver/app", code: "secret-missing", says: []string{"create Secret ${NS}/gone"}, given: map[string]func(*fixture) string{"<host>": value("flux.example.com")},
			objects: "apiVersion: notification.toolkit.fluxcd.io/v1\nkind: Receiver\nmetadata: {name: app}\nspec: {type: generic, secretRef: {name: gone}, resources: [{kind: GitRepository, name: app}]}\n",
		},
		{
			name: "provider-missing", nightly: true, args: []string{"alert", "app"}, root: "Provider/chat", code: "missing", says: []string{"it does not exist"},
			given:   map[string]func(*fixture) string{"<type>": value("slack"), "<url>": value("https://hooks.example.com/services/x")},
			objects: alert("app", "chat"),
			fix: func(f *fixture) {
				statusReports(f, "alert app", "Provider/"+f.namespace+"/chat: it does not exist")
				f.seed(provider)
			},
		},
		{
			name: "provider-unreachable", args: []string{"alert", "app"}, root: "Provider/chat", code: "notification-failed",
			files: map[string]string{"settings.yaml": plainMap}, objects: "${DEFAULT}\n---\n" + alert("app", "chat") + "---\n" + provider,
			says: []string{"the last notification of Alert/${NS}/app was not delivered", "check .spec.address"}, hides: []string{"not-for-output"},
			// Events from before the correction of the Provider are not evidence.
			fix: func(f *fixture) {
				statusReports(f, "alert app", "the last notification of Alert/"+f.namespace+"/app was not delivered")
				f.shell.run("kubectl", "-n", f.namespace, "patch", "provider", "chat", "--type=merge", `-p={"spec":{"address":"`+f.git.url+`"}}`)
			},
		},
	}
}

// statusReports checks that flux status finds the problem that flux why has found.
func statusReports(f *fixture, object, problem string) {
	f.t.Helper()
	stdout, stderr, err := f.shell.try("flux", slices.Concat([]string{"status", "-n", f.namespace}, strings.Fields(object))...)
	if exitCode(err) != 1 || !strings.Contains(stdout, problem) {
		f.t.Errorf("flux status %s ends with %v and without %q:\n%s%s", object, err, problem, stdout, stderr)
	}
}
