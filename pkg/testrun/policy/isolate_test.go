package policy

import (
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/pkg/controllers"
)

// TestAddressPattern compares the pattern of the admission policy with the addresses that are the
// same for flux.
func TestAddressPattern(t *testing.T) {
	t.Parallel()
	remotes := []string{"git.example.com/acme/fleet", "git.example.com/acme/other"}
	pattern := regexp.MustCompile(addressPattern(remotes))
	for _, address := range []string{
		"https://git.example.com/acme/fleet", "https://git.example.com/acme/fleet.git", "https://git.example.com/acme/fleet/",
		"ssh://git@git.example.com/acme/fleet.git", "ssh://git@git.example.com:2222/acme/other", "http://user:token@GIT.example.com:8080/acme/fleet",
		"git@git.example.com:acme/fleet.git",
		// Near misses.
		"https://git.example.com/acme/fleet2", "https://git.example.com/acme", "https://git.example.com/acme/fleet/sub", "https://gitXexample.com/acme/fleet",
		"https://git.example.com.evil.org/acme/fleet", "https://evil.org/git.example.com/acme/fleet", "https://sub.git.example.com/acme/fleet",
		"oci://git.example.com/acme/fleets", "https://evil.org/@git.example.com/acme/fleet",
	} {
		if got, want := pattern.MatchString(address), slices.Contains(remotes, git.ComparableAddress(address)); got != want {
			t.Errorf("%s matches: %t, want %t", address, got, want)
		}
	}
}

// TestSuspensionOf checks which objects are suspended by the run, and whether that is intended.
func TestSuspensionOf(t *testing.T) {
	t.Parallel()
	suspended := func(by map[string]any) controllers.Object {
		return controllers.Object{"metadata": map[string]any{"annotations": by}, "spec": map[string]any{"suspend": true}}
	}
	disabled := func(by map[string]any) controllers.Object {
		by[disabledAnnotation] = "disabled"
		return controllers.Object{"metadata": map[string]any{"annotations": by}, "spec": map[string]any{}}
	}
	policy, forged := map[string]any{SuspendAnnotation: Mark()}, map[string]any{SuspendAnnotation: "true"}
	manifest := &Suspension{"suspended in its manifest", true}
	for _, c := range []struct {
		kind   string
		object controllers.Object
		want   *Suspension
	}{
		{"Alert", suspended(policy), &Suspension{"suspended in the temporary sandbox: nothing is sent", true}},
		{"ImageUpdateAutomation", suspended(policy), &Suspension{"suspended in the temporary sandbox: nothing is pushed", true}},
		{"ImageUpdateAutomation", suspended(nil), manifest},
		{"Kustomization", suspended(policy), &Suspension{appliesElsewhere, false}},
		{"Kustomization", suspended(nil), manifest},
		{"Kustomization", suspended(forged), manifest},
		{"Kustomization", controllers.Object{"spec": map[string]any{}}, nil},
		{controllers.InputProvider, disabled(maps.Clone(policy)), &Suspension{"its inputs are not in the cluster: set them with --inputs", false}},
		{controllers.InputProvider, disabled(map[string]any{}), manifest},
		{controllers.InputProvider, controllers.Object{"spec": map[string]any{"type": "GitHubBranch"}}, nil},
		{controllers.ResourceSet, disabled(map[string]any{}), manifest},
	} {
		i := slices.IndexFunc(controllers.Known, func(k controllers.Kind) bool { return k.Kind == c.kind })
		if diff := cmp.Diff(c.want, SuspensionOf(controllers.Known[i], c.object)); diff != "" {
			t.Errorf("%s %v: %s", c.kind, c.object, diff)
		}
	}
}
