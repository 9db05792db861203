package migrate_test

import (
	"testing"

	"github.com/fluxkit/flux/pkg/migrate"
)

// FuzzRewrite checks that a migrated text has nothing left to migrate, and that a blocked text and
// one without older versions are unchanged.
func FuzzRewrite(f *testing.F) {
	for _, text := range []string{
		"apiVersion: notification.toolkit.fluxcd.io/v1beta3\nkind: Alert\nspec:\n  summary: a # b\n  eventMetadata:\n    x: y\n",
		"- apiVersion: notification.toolkit.fluxcd.io/v1beta2\r\n  kind: Provider\r\n  spec:\r\n    proxy: http://a\r\n    interval: 1m\r\n    proxySecretRef: {name: a}",
		"spec:\n  \"summary\": 'a'\nkind: Alert\napiVersion: notification.toolkit.fluxcd.io/v1beta3",
		"apiVersion: notification.toolkit.fluxcd.io/v1beta1\nkind: Alert\nspec: {summary: a}\n---\n{{ if a }}\n",
		"target:\n  group: notification.toolkit.fluxcd.io\n  version: v1beta3\n  kind: Alert\nspec: &a\n  summary: *a\n",
		"patches:\n- target: {kind: Alert}\n  patch: |\n    - {op: add, path: /spec/summary, value: a}\n",
	} {
		f.Add(text)
	}
	release := migrate.Newest()
	f.Fuzz(func(t *testing.T, text string) {
		once, err := migrate.Rewrite(t.Context(), text, release)
		if err != nil {
			t.Fatal(err)
		}
		if once.Blocked() || len(once.Changes) == 0 {
			if once.Content != text {
				t.Errorf("changed to %q", once.Content)
			}
			return
		}
		twice, err := migrate.Rewrite(t.Context(), once.Content, release)
		if err != nil {
			t.Fatal(err)
		}
		if len(twice.Changes) > 0 || twice.Content != once.Content {
			t.Errorf("%q still has older versions: %+v", once.Content, twice.Changes)
		}
	})
}
