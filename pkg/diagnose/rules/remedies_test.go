package rules

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// crds returns the CRDs of an installation by name.
var crds = func() func(*testing.T) map[string]controllers.Object {
	read := sync.OnceValues(func() (map[string]controllers.Object, error) {
		options := manifests.Defaults()
		options.Components = append(controllers.Defaults(), controllers.Extras()...)
		set, err := manifests.Render(options)
		if err != nil {
			return nil, err
		}
		all := map[string]controllers.Object{}
		for _, o := range set.Unstructured() {
			if o.GetKind() == "CustomResourceDefinition" {
				all[o.GetName()] = o.Object
			}
		}
		return all, nil
	})
	return func(t *testing.T) map[string]controllers.Object {
		t.Helper()
		all, err := read()
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
}()

// schemaOf returns the schema of a Flux kind from its CRD.
func schemaOf(t *testing.T, k controllers.Kind) map[string]any {
	t.Helper()
	crd := crds(t)[k.Resource+"."+k.Group]
	if crd == nil {
		t.Fatalf("no CRD of %s", k.Kind)
	}
	versions, _ := controllers.Path{"spec.versions"}.Lookup(crd)
	for _, v := range versions.([]any) {
		version := v.(map[string]any)
		if version["name"] == k.Version {
			schema, _ := controllers.Path{"schema.openAPIV3Schema"}.Lookup(version)
			return schema.(map[string]any)
		}
	}
	t.Fatalf("the CRD of %s has no version %s", k.Kind, k.Version)
	return nil
}

// has reports whether a schema has a field, with "[]" for the items of a list.
func has(schema map[string]any, field string) bool {
	for _, name := range strings.Split(strings.TrimPrefix(field, "."), ".") {
		properties, _ := schema["properties"].(map[string]any)
		if items, ok := schema["items"].(map[string]any); ok && properties == nil {
			properties, _ = items["properties"].(map[string]any)
		}
		next, ok := properties[strings.TrimSuffix(name, "[]")].(map[string]any)
		if !ok {
			return false
		}
		schema = next
	}
	return true
}

// TestCatalogFieldsExist compares the fields in the catalog with the CRDs.
func TestCatalogFieldsExist(t *testing.T) {
	t.Parallel()
	for _, k := range controllers.Kinds {
		schema := schemaOf(t, k)
		f := k.Fetch
		for _, field := range slices.Concat([]string{f.Address, f.Revision, f.Credentials, f.CA}, k.Secrets) {
			if field != "" && !has(schema, field) {
				t.Errorf("%s has no field %s", k.Kind, field)
			}
		}
	}
}

// namedField matches a field of a Flux object in a remedy.
var namedField = regexp.MustCompile(`(\.spec(?:\.[A-Za-z\[\]]+)+)(?:(?:,| or| and) (\.spec(?:\.[A-Za-z]+)+))? of (?:the )?([A-Z][A-Za-z]+)`)

// TestRemediesNameFieldsThatExist checks that every field that a remedy names exists in the named
// kind, for every kind that may have the failure.
func TestRemediesNameFieldsThatExist(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, e := range examples() {
		for _, k := range controllers.Kinds {
			s := failing(t, k.Kind, e.reason, plain(e.message), plain(e.spec))
			found, ok := classify(s)
			if !ok {
				continue
			}
			for _, remedy := range append(found.Remedies(), found.Message) {
				for _, m := range namedField.FindAllStringSubmatch(remedy, -1) {
					named, ok := controllers.FindKind(m[3])
					if !ok {
						continue // a field of what is applied
					}
					for _, field := range m[1:3] {
						checked++
						if field != "" && !has(schemaOf(t, named), field) {
							t.Errorf("%s of %s: %s has no field %s: %s", found.Code, k.Kind, named.Kind, field, remedy)
						}
					}
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d fields are named", checked)
	}
}

// TestDestructiveRemedies checks that destructive remedies are only offered for immutable fields and name the loss.
func TestDestructiveRemedies(t *testing.T) {
	t.Parallel()
	destructive := regexp.MustCompile(`force: enabled|\bdelete \w+/|kubectl [^(]*delete|--reset`)
	seen := 0
	for _, e := range examples() {
		for _, n := range append([]near{{e.kind, e.reason, plain(e.message), e.code}}, e.near...) {
			found, ok := classify(failing(t, n.kind, n.reason, n.message, ""))
			if !ok {
				continue
			}
			for _, remedy := range found.Remedies() {
				if !destructive.MatchString(remedy) {
					continue
				}
				seen++
				if found.Code != "immutable" || !regexp.MustCompile(`recreates \S+: |\(.* (are|is) `).MatchString(remedy) {
					t.Errorf("%s: %s", found.Code, remedy)
				}
			}
			if last := found.Retry; !strings.HasPrefix(last, "flux ") {
				t.Errorf("%s ends with %s", found.Code, last)
			}
		}
	}
	if seen < 3 {
		t.Errorf("only %d are destructive", seen)
	}
}

// program matches a command in a text.
var program = regexp.MustCompile(`\b(flux [a-z]|kubectl (?:-n|annotate|create|delete|describe|get|label|patch|rollout|scale) |git log)`)

// TestRemediesEndWithTheirCommand checks that a remedy has at most one command and ends with it.
func TestRemediesEndWithTheirCommand(t *testing.T) {
	t.Parallel()
	commands := 0
	for _, e := range examples() {
		found, _ := classify(failing(t, e.kind, e.reason, plain(e.message), plain(e.spec)))
		for _, remedy := range found.Remedies() {
			for i, at := range program.FindAllStringIndex(remedy, -1) {
				commands++
				if i > 0 || at[0] > 0 && !strings.HasSuffix(remedy[:at[0]], ": ") {
					t.Errorf("%s: %s", found.Code, remedy)
				}
			}
		}
	}
	if commands < 50 {
		t.Errorf("only %d remedies have a command", commands)
	}
}

// TestCommandsAreQuoted checks that arguments from a spec or a repository are quoted.
func TestCommandsAreQuoted(t *testing.T) {
	t.Parallel()
	for _, e := range examples() {
		found, _ := classify(failing(t, e.kind, e.reason, plain(e.message), `{"path":"./it's; $(reboot)"}`))
		if e.code != "build" || !strings.Contains(found.Fixes[0], "flux build") {
			continue
		}
		if want := `--path './it'\''s; $(reboot)'`; !strings.HasSuffix(found.Remedies()[0], want) {
			t.Errorf("%s lacks %s", found.Remedies()[0], want)
		}
		return
	}
	t.Error("no example of a build that fails")
}

// TestCommandsForSecrets checks that the command that creates a Secret depends on the kind and on
// the address.
func TestCommandsForSecrets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, spec, want string }{
		{"GitRepository", `{"url":"https://me:secret@example.com/a.git","secretRef":{"name":"gone"}}`, "flux create secret git gone -n apps --url=https://example.com/a.git --username=<user> --password-file=<file>"},
		{"GitRepository", `{"url":"ssh://git@example.com/a.git","secretRef":{"name":"gone"}}`, "flux create secret git gone -n apps --url=ssh://git@example.com/a.git"},
		{"GitRepository", `{"url":"https://example.com/a.git","proxySecretRef":{"name":"gone"}}`, "kubectl -n apps create secret generic gone --from-file=<key>=<file>"},
		{"OCIRepository", `{"url":"oci://example.com:5000/a/b","secretRef":{"name":"gone"}}`, "flux create secret oci gone -n apps --url=example.com:5000 --username=<user> --password-file=<file>"},
		{"HelmRepository", `{"url":"https://example.com/a","secretRef":{"name":"gone"}}`, "flux create secret helm gone -n apps --username=<user> --password-file=<file>"},
		{"HelmRepository", `{"url":"oci://example.com/a","secretRef":{"name":"gone"}}`, "flux create secret oci gone -n apps --url=example.com --username=<user> --password-file=<file>"},
		{"ImageRepository", `{"image":"example.com/a","secretRef":{"name":"gone"}}`, "flux create secret oci gone -n apps --url=example.com --username=<user> --password-file=<file>"},
		{"ImageRepository", `{"image":"team/a","secretRef":{"name":"gone"}}`, "kubectl -n apps create secret generic gone --type=kubernetes.io/dockerconfigjson --from-file=.dockerconfigjson=<file>"},
		{"Bucket", `{"endpoint":"example.com","secretRef":{"name":"gone"}}`, "kubectl -n apps create secret generic gone --from-file=<key>=<file>"},
		{"Receiver", `{"type":"github","secretRef":{"name":"gone"}}`, "flux create secret receiver gone -n apps --type=github --hostname=<host>"},
	} {
		s := failing(t, c.kind, "", "", c.spec)
		s.failure.Named.Name = "gone"
		if got := createNamedSecret(s); got != c.want {
			t.Errorf("%s %s:\n%s\n%s", c.kind, c.spec, got, c.want)
		}
	}
}

// TestNamesOfObjectsAreArguments checks that an object of a chart may have any name that its kind
// allows: it is one argument, and no option.
func TestNamesOfObjectsAreArguments(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"--all":      " delete rolebinding.rbac.authorization.k8s.io -- --all",
		"$(reboot)":  " delete rolebinding.rbac.authorization.k8s.io '$(reboot)'",
		"system:ops": " delete rolebinding.rbac.authorization.k8s.io system:ops",
	} {
		message := `Helm upgrade failed for release apps/app with chart app@1.0.0: cannot patch "` + name + `" with kind RoleBinding: RoleBinding.rbac.authorization.k8s.io "` + name +
			`" is invalid: roleRef: Invalid value: {"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"b"}: cannot change roleRef`
		found, _ := classify(failing(t, "HelmRelease", "UpgradeFailed", plain(message), ""))
		if len(found.Remedies()) < 2 || !strings.HasSuffix(found.Remedies()[1], want) {
			t.Errorf("%q: %q lacks %s", name, found.Remedies(), want)
		}
	}
}

// TestRemediesNameNoAnnotationOfAnotherController checks that no remedy names an annotation of
// another controller, which the controller of the kind ignores.
func TestRemediesNameNoAnnotationOfAnotherController(t *testing.T) {
	t.Parallel()
	foreign := map[string]string{"HelmRelease": "kustomize.toolkit.fluxcd.io/", "Kustomization": "helm.sh/"}
	for _, message := range []string{
		`Helm upgrade failed for release apps/web with chart app@0.2.0: conflict occurred while applying object apps/web apps/v1, Kind=Deployment: Apply failed with 1 conflict: conflict with "kubectl" using apps/v1: .spec.replicas`,
		`Deployment/apps/web dry-run failed (FieldManagerConflict): Apply failed with 1 conflict: conflict with "kubectl" using apps/v1: .spec.replicas`,
	} {
		for kind, word := range foreign {
			found, ok := classify(failing(t, kind, "UpgradeFailed", message, ""))
			if !ok || found.Code != "conflict" {
				t.Fatalf("%s: %s is %q: %+v", kind, message, found.Code, failure.Parse(message))
			}
			if text := strings.Join(found.Remedies(), "\n"); strings.Contains(text, word) {
				t.Errorf("%s: %s", kind, text)
			}
		}
	}
}

// TestLockedReleaseIsNotForced checks that a locked release is not forced: the operation may be
// running, and helm-controller recovers a release after an interrupted operation itself.
func TestLockedReleaseIsNotForced(t *testing.T) {
	t.Parallel()
	s := failing(t, "HelmRelease", "UpgradeFailed", `Helm upgrade failed for release web/web-app with chart app@0.2.0: another operation (install/upgrade/rollback) is in progress`,
		`{"targetNamespace": "web", "storageNamespace": "helm"}`)
	found, ok := classify(s)
	if !ok || found.Code != "release-locked" {
		t.Fatalf("code %q", found.Code)
	}
	encoded, err := json.Marshal(found.Remedies())
	if err != nil {
		t.Fatal(err)
	}
	text := string(encoded)
	if strings.Contains(text, "--force") || !strings.Contains(text, "helm history web-app -n helm") {
		t.Error(text)
	}
}

// TestMissingComponent checks that a kind of Flux in its current version requires its controller, and an older version a migration.
func TestMissingComponent(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"v1": "install image-automation-controller, ", "v1alpha1": "in a clone of the source, rewrite the API versions: "} {
		message := `ImageUpdateAutomation/apps/images dry-run failed: no matches for kind "ImageUpdateAutomation" in version "image.toolkit.fluxcd.io/` + version + `"`
		found, _ := failing(t, "Kustomization", "ReconciliationFailed", message, "").Status()
		if fixes := found.Remedies(); found.Code != "api-missing" || len(fixes) == 0 || !strings.HasPrefix(fixes[0], want) {
			t.Errorf("%s: %s: %q", version, found.Code, fixes)
		}
	}
}
