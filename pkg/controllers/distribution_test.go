package controllers_test

import (
	"os"
	"strings"
	"testing"

	"github.com/fluxkit/flux/pkg/controllers"
)

// TestTagsMatchTheModules compares the image tags with the API modules from which
// the CRDs are generated.
func TestTagsMatchTheModules(t *testing.T) {
	t.Parallel()
	for _, d := range controllers.Distributions {
		pinned := requirements(t, "../../tools/distributions/"+d.Version+"/go.mod")
		if len(d.Tags) != len(controllers.All) {
			t.Errorf("Flux %s has %d tags for %d controllers", d.Version, len(d.Tags), len(controllers.All))
		}
		for _, c := range controllers.All {
			if got := pinned[c.APIModule]; got != d.Tags[c.Name] {
				t.Errorf("Flux %s: %s is pinned at %q, the image at %q", d.Version, c.APIModule, got, d.Tags[c.Name])
			}
		}
	}
	folders, err := os.ReadDir("../../tools/distributions")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if d, found := controllers.FindDistribution(folder.Name()); !found || d.Version != folder.Name() {
			t.Errorf("tools/distributions/%s is not a distribution", folder.Name())
		}
	}
}

// TestTypesAreOfADistribution checks that the API modules with which tests compare
// fields are those of one distribution.
func TestTypesAreOfADistribution(t *testing.T) {
	t.Parallel()
	pinned := requirements(t, "../../go.mod")
	d, found := controllers.SameMinor("v2.9.0")
	if !found {
		t.Fatal("no Flux 2.9")
	}
	for _, c := range controllers.All {
		if pinned[c.APIModule] != d.Tags[c.Name] {
			t.Errorf("go.mod requires %s at %s, not at %s", c.APIModule, pinned[c.APIModule], d.Tags[c.Name])
		}
	}
}

// requirements returns the required versions of a go.mod file. A comment such as
// "equal to v1.1.2" names the version that the required one is equal to.
func requirements(t *testing.T, file string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	required := map[string]string{}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		required[fields[0]] = fields[1]
		if _, equal, found := strings.Cut(line, "// equal to "); found {
			required[fields[0]], _, _ = strings.Cut(equal, ",")
		}
	}
	return required
}

func TestFindDistribution(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"": controllers.DefaultVersion, "2.10.0": "2.10.0", "v2.10.0": "2.10.0", "2.10": "2.10.0", "v2.9": "2.9.6", "2.8.8": "2.8.8",
		"2.9.5": "", "2.1": "", "2": "", "v": "", "latest": "", "2.9.6-rc.1": "", "2.9.6.1": "",
	} {
		if d, found := controllers.FindDistribution(version); d.Version != want || found != (want != "") {
			t.Errorf("%q: got %q, want %q", version, d.Version, want)
		}
	}
	for version, want := range map[string]string{"v2.9.1": "2.9.6", "2.9.0-rc.1": "2.9.6", "v2.10.7": "2.10.0", "v2.7.0": "", "": "", "2": "", "3.9.0": ""} {
		if d, found := controllers.SameMinor(version); d.Version != want || found != (want != "") {
			t.Errorf("minor of %q: got %q, want %q", version, d.Version, want)
		}
	}
}

func TestSelect(t *testing.T) {
	t.Parallel()
	for versions, want := range map[string]struct {
		version string
		single  bool
	}{
		"2.9.1": {"2.9.6", true}, "v2.9.1": {"2.9.6", true}, "2.9": {"2.9.6", true}, "2.9.x": {"2.9.6", true}, "v2.10.0-rc.1": {"2.10.0", true},
		"2.x": {"2.10.0", false}, "2": {"2.10.0", false}, ">=2.8.0": {"2.10.0", false}, "2.8.x || 2.9.x": {"2.9.6", false}, "<2.9.0": {"2.8.8", true},
		"2.7.x": {}, "2.11.x": {}, "1.x": {}, "latest": {}, "": {},
	} {
		if d, single, ok := controllers.Select(versions); d.Version != want.version || single != want.single || ok != (want.version != "") {
			t.Errorf("%q selects %q (%t, %t), want %v", versions, d.Version, single, ok, want)
		}
	}
}
