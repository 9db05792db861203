package helm

import (
	"net/url"
	"slices"
	"testing"

	"github.com/Masterminds/semver/v3"

	"github.com/fluxkit/flux/pkg/build/charts"
)

// FuzzIndex reads any index of a Helm repository: the chosen entry is one of the index that is in
// the range, no newer one is, and credentials stay on the repository's host.
func FuzzIndex(f *testing.F) {
	for _, seed := range [][3]string{
		{"entries: {app: [{version: 1.0.0, urls: [app.tgz]}, {version: 1.2.0, urls: ['https://evil.example/app.tgz']}]}", "app", "1.x"},
		{"entries: {app: [{version: 1.0.0}, {version: '1.0.0'}, {version: v1}]}", "app", ""}, {"entries: {app: [null, {}]}", "app", ">0"}, {"entries: [a]", "app", "*"},
		{"a: &a [*a]", "app", ""}, {"entries: {app: [{version: 1, urls: ['//evil.example/x', '\\\\evil', 'https:x']}]}", "app", "1"}, {"entries: {app: [{version: 99999999999999999999.0.0}]}", "app", "^1"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	const repository = "https://charts.example.com/stable/"
	f.Fuzz(func(t *testing.T, text, name, version string) {
		all, err := parseIndex(repository, []byte(text))
		if err != nil {
			return
		}
		entry, err := choose(all.Entries[name], charts.Chart{Name: name, URL: repository, Version: version})
		if err != nil {
			return
		}
		if !slices.ContainsFunc(all.Entries[name], func(e indexEntry) bool { return e.Version == entry.Version }) {
			t.Errorf("%q is not in the index", entry.Version)
		}
		if entry.Version != version {
			checkNewest(t, all.Entries[name], entry, version)
		}
		for _, to := range entry.URLs {
			base, err := url.Parse(repository)
			if err != nil {
				t.Fatal(err)
			}
			resolved, err := base.Parse(to)
			if err != nil {
				continue
			}
			address := resolved.String()
			if u, err := url.Parse(address); sameServer(address, repository) && (err != nil || u.Host != "charts.example.com" || u.Scheme != "https") {
				t.Errorf("%q gets the credentials of %s", address, repository)
			}
		}
	})
}

// checkNewest fails if an entry is outside of a range, or another in it is newer.
func checkNewest(t *testing.T, entries []indexEntry, chosen *indexEntry, wanted string) {
	t.Helper()
	if wanted == "" {
		wanted = "*"
	}
	constraint, err := semver.NewConstraint(wanted)
	if err != nil {
		t.Fatalf("%q is no range: %v", wanted, err)
	}
	best, err := semver.NewVersion(chosen.Version)
	if err != nil || !constraint.Check(best) {
		t.Fatalf("%q is not in %q: %v", chosen.Version, wanted, err)
	}
	for _, e := range entries {
		if v, err := semver.NewVersion(e.Version); err == nil && constraint.Check(v) && v.GreaterThan(best) {
			t.Errorf("%q is chosen of %q instead of %q", chosen.Version, wanted, e.Version)
		}
	}
}
