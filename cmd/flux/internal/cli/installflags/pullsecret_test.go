package installflags

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPullSecret(t *testing.T) {
	t.Parallel()
	m := NewManifests()
	m.options.ImagePullSecret, m.options.Registry = "regs", "localhost:5000/org/flux"
	want := `{"auths":{"localhost:5000":{"auth":"bWU6YTpiOmM=","password":"a:b:c","username":"me"}}}`
	for given, stdin := range map[string]string{"me:a:b:c": "", "-": "me:a:b:c\n"} {
		m.RegistryCreds = given
		secret, err := m.PullSecret(strings.NewReader(stdin), "infra")
		if err != nil {
			t.Fatal(err)
		}
		data := secret.Object["stringData"].(map[string]any)
		if diff := cmp.Diff(map[string]any{".dockerconfigjson": want}, data); diff != "" {
			t.Errorf("%s: %s", given, diff)
		}
		if secret.GetName() != "regs" || secret.GetNamespace() != "infra" {
			t.Errorf("%s/%s", secret.GetNamespace(), secret.GetName())
		}
	}
}
