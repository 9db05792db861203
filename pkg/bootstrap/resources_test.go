package bootstrap

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAddResources(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
	for name, test := range map[string]struct{ text, want string }{
		"both listed": {
			head + "resources:\n- gotk-components.yaml\n- gotk-sync.yaml\n",
			head + "resources:\n- gotk-components.yaml\n- gotk-sync.yaml\n",
		},
		"listed in another order, quoted and with a path": {
			head + "resources: ['./gotk-sync.yaml', \"gotk-components.yaml\"]\n",
			head + "resources: ['./gotk-sync.yaml', \"gotk-components.yaml\"]\n",
		},
		"one missing, the layout kept": {
			"# ours\n" + head + "\nresources:   # present ones\n  # first\n  - gotk-components.yaml   # from flux\n  - extra.yaml # ours\n\npatches:\n    - path:   p.yaml\n",
			"# ours\n" + head + "\nresources:   # present ones\n  # first\n  - gotk-components.yaml   # from flux\n  - extra.yaml # ours\n  - gotk-sync.yaml\n\npatches:\n    - path:   p.yaml\n",
		},
		"no resources": {
			head + "patches:\n- path: p.yaml\n",
			head + "patches:\n- path: p.yaml\nresources:\n- gotk-components.yaml\n- gotk-sync.yaml\n",
		},
		"no newline at the end": {
			head + "resources:\n- a.yaml",
			head + "resources:\n- a.yaml\n- gotk-components.yaml\n- gotk-sync.yaml\n",
		},
		"on one line": {
			head + "resources: [a.yaml] # ours\n",
			head + "resources: [a.yaml, gotk-components.yaml, gotk-sync.yaml] # ours\n",
		},
		"an empty list": {
			head + "resources: []\n",
			head + "resources:\n  - gotk-components.yaml\n  - gotk-sync.yaml\n",
		},
		"a list without a value": {
			head + "resources:\n",
			head + "resources:\n  - gotk-components.yaml\n  - gotk-sync.yaml\n",
		},
		"a multi-line string as the last item": {
			head + "resources:\n- >-\n  a.yaml\nnamespace: x\n",
			head + "resources:\n  - >-\n    a.yaml\n  - gotk-components.yaml\n  - gotk-sync.yaml\nnamespace: x\n",
		},
		"only a comment": {
			"# to be written\n",
			"# to be written\n" + head + "resources:\n- gotk-components.yaml\n- gotk-sync.yaml\n",
		},
	} {
		got, err := addResources([]byte(test.text), componentsFile, syncFile)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(test.want, string(got)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
		again, err := addResources(got, componentsFile, syncFile)
		if err != nil || string(again) != string(got) {
			t.Errorf("%s: the second result is %q, %v", name, again, err)
		}
	}
}

func TestAddResourcesRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"- a\n- b\n", "resources: text\n", "a: [\n"} {
		if got, err := addResources([]byte(text), componentsFile); err == nil {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestListsOnlyFluxFiles(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		string(newKustomization()):                                      true,
		"resources: [gotk-sync.yaml, gotk-components.yaml]":             true,
		"resources: [gotk-sync.yaml, gotk-components.yaml, more.yaml]":  false,
		"resources: [gotk-sync.yaml]":                                   false,
		string(newKustomization()) + "patches: [{path: p.yaml}]\n":      false,
		string(newKustomization()) + "namespace: elsewhere\n":           false,
		"resources: [gotk-components.yaml, gotk-components.yaml, x, y]": false,
	} {
		if got := listsOnlyFluxFiles([]byte(text)); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}
