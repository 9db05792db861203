package migrate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/migrate"
)

func TestRewriteKeepsOtherText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text, want string
		unclear          []int
	}{
		{name: "a newer one", text: "apiVersion: source.toolkit.fluxcd.io/v2\nkind: Bucket\n"},
		{name: "another group", text: "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"},
		{name: "another kind's neighbor", text: "- apiVersion: source.toolkit.fluxcd.io/v1beta1\n- kind: Bucket\n", unclear: []int{1}},
		{name: "another document", text: "apiVersion: source.toolkit.fluxcd.io/v1beta1\n---\nkind: Bucket\n", unclear: []int{1}},
		{name: "a comment", text: "# apiVersion: source.toolkit.fluxcd.io/v1beta1\nkind: Bucket\n"},
		{name: "an annotation", text: "a: kustomize.toolkit.fluxcd.io/reconcile\n"},
		{name: "line ends of Windows", text: "kind: Bucket\r\napiVersion: source.toolkit.fluxcd.io/v1beta1 # c\r\n",
			want: "kind: Bucket\r\napiVersion: source.toolkit.fluxcd.io/v1 # c\r\n"},
		{name: "no end of line", text: "kind: Bucket\napiVersion: 'source.toolkit.fluxcd.io/v1beta1'",
			want: "kind: Bucket\napiVersion: 'source.toolkit.fluxcd.io/v1'"},
		{name: "a kind further up in a nested mapping", text: "kind: Bucket\nspec:\n  apiVersion: source.toolkit.fluxcd.io/v1beta1\n", unclear: []int{3}},
	} {
		release, err := migrate.ParseRelease("")
		if err != nil {
			t.Fatal(err)
		}
		if test.want == "" {
			test.want = test.text
		}
		got, err := migrate.Rewrite(t.Context(), test.text, release)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, got.Content); diff != "" {
			t.Errorf("%s:\n%s", test.name, diff)
		}
		if diff := cmp.Diff(test.unclear, got.Unclear); diff != "" {
			t.Errorf("%s: unclear:\n%s", test.name, diff)
		}
	}
}
