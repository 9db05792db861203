package inputs

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// TestMarkers compares the searches of texts with regular expressions.
func TestMarkers(t *testing.T) {
	const composed = `["']?\s*:[\s"'>|+-]*([#&!0-9][^\n]*\n[\s"'>|+-]*)?([^\n]*(\$\{|\\)|\*)`
	const unknown = `kustomize\.toolkit\.fluxcd\.io/v|fluxcd\.controlplane\.io/v|(apiVersion|kind)` + composed + `|` +
		`/(apiVersion|kind)\b|replacements|\x00`
	for _, row := range []struct {
		name string
		got  func([]byte) bool
		want *regexp.Regexp
	}{
		{"mayContainParent", mayContainParent, regexp.MustCompile(unknown)},
		{"MayContainFlux", MayContainFlux, regexp.MustCompile(`helm\.toolkit\.fluxcd\.io/v|` + unknown)},
		{"MayReadAny", MayReadAny, regexp.MustCompile(`HelmChart|ExternalArtifact|` + unknown)},
		{"changesNames", changesNames, regexp.MustCompile(`name(Prefix|Suffix)|replacements|name` + composed + `|/name\b|\x00`)},
	} {
		t.Run(row.name, func(t *testing.T) {
			parts := []string{
				"kind", "apiVersion", "name", "name", "kind", ":", ":", " ", " ", "\n", "\t", `"`, "'", "*", "|", ">-", "${", "\\", "/", "a", "_", "9", "-", "x y", "#", "&a", "Prefix",
				"kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/", "v1", "fluxcd.controlplane.io/", "replacement", "s", "\x00", "HelmChart", "Pod",
			}
			r := rand.New(rand.NewPCG(1, 2))
			found := 0
			for range 50_000 {
				var b strings.Builder
				for range 1 + r.IntN(9) {
					b.WriteString(parts[r.IntN(len(parts))])
				}
				want := row.want.MatchString(b.String())
				if got := row.got([]byte(b.String())); got != want {
					t.Fatalf("%q: %t, want %t", b.String(), got, want)
				}
				if want {
					found++
				}
			}
			if found < 1000 || found > 49_000 {
				t.Errorf("%d of 50000 texts match: too few of one kind", found)
			}
		})
	}
}
