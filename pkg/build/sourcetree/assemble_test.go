package sourcetree

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestAssemble checks that later parts replace files of earlier ones, and that files which
// source-controller excludes from its archives are excluded.
func TestAssemble(t *testing.T) {
	t.Parallel()
	own := fstest.MapFS{}
	for _, name := range []string{
		"apps/one.yaml", "apps/two.yaml", "apps/picture.png", "apps/deep/drop.yaml", "apps/deep/keep.yaml", "apps-more/three.yaml",
		"infra/four.yaml", ".github/workflow.yaml", ".sops.yaml", ".gitattributes", "lib/old.yaml",
	} {
		own[name] = &fstest.MapFile{Data: []byte("own")}
	}
	own["apps/deep/.sourceignore"] = &fstest.MapFile{Data: []byte("# all\n*.yaml\n!keep.yaml\n")}
	other := fstest.MapFS{"base/old.yaml": &fstest.MapFile{Data: []byte("other")}, "base/b/new.yaml": &fstest.MapFile{Data: []byte("other")}, "not.yaml": &fstest.MapFile{}}
	for name, test := range map[string]struct {
		parts  []Part
		ignore string
		want   map[string]string
	}{
		"all": {
			parts: []Part{{Tree: own}, {Tree: other, From: "./base", At: "lib"}}, ignore: "/infra\n*.png\n",
			want: map[string]string{
				"apps/one.yaml": "own", "apps/two.yaml": "own", "apps/deep/keep.yaml": "own", ".github/workflow.yaml": "own", ".sops.yaml": "own", "apps/deep/.sourceignore": "# all\n*.yaml\n!keep.yaml\n",
				"apps-more/three.yaml": "own", "lib/old.yaml": "other", "lib/b/new.yaml": "other",
			},
		},
		"the defaults, where nothing is said": {
			parts: []Part{{Tree: own, Only: []string{"infra", "apps/o", "apps/p", "."}}},
			want:  map[string]string{"apps/one.yaml": "own", "infra/four.yaml": "own"},
		},
		"sparse": {
			parts: []Part{{Tree: own, Only: []string{"infra", "apps/"}}, {Tree: other, At: "lib"}},
			want: map[string]string{
				"apps/one.yaml": "own", "apps/two.yaml": "own", "apps/picture.png": "own", "apps/deep/keep.yaml": "own", "apps/deep/.sourceignore": "# all\n*.yaml\n!keep.yaml\n",
				"infra/four.yaml": "own", "lib/base/old.yaml": "other", "lib/base/b/new.yaml": "other", "lib/not.yaml": "",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree, err := Assemble(t.Context(), test.parts, Ignore{Patterns: test.ignore})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			err = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
				if err != nil || entry.IsDir() {
					return err
				}
				content, err := fs.ReadFile(tree, name)
				got[name] = string(content)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
