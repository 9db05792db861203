package clusters

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMatching(t *testing.T) {
	t.Parallel()
	contexts := []string{"arn:aws:eks:eu-west-1:1:cluster/prod", "both", "prod-eu", "prod-eu-test", "prod-us", "staging"}
	groups := map[string][]string{
		"production": {"prod-*", "^*-test"}, "both": {"prod-eu", "prod-us"}, "typo": {"prod-eu", "prd-us"},
	}
	for selection, want := range map[string]string{
		"prod-eu":             "prod-eu",
		"prod-us,prod-eu":     "prod-us prod-eu",
		"prod-us, prod-eu":    "prod-us prod-eu",
		"prod-us,prod-*":      "prod-us prod-eu prod-eu-test",
		"prod-*,prod-us":      "prod-eu prod-eu-test prod-us",
		"prod-??":             "prod-eu prod-us",
		"prod-[eu]*":          "prod-eu prod-eu-test prod-us",
		"*prod":               "arn:aws:eks:eu-west-1:1:cluster/prod",
		"*cluster*":           "arn:aws:eks:eu-west-1:1:cluster/prod",
		"prod-*,^prod-eu":     "prod-eu-test prod-us",
		"^prod-eu,prod-*":     "prod-eu-test prod-us",
		"^prod-*,^arn*":       "both staging",
		"production":          "prod-eu prod-us",
		"staging,production":  "staging prod-eu prod-us",
		"prod-*,^production":  "prod-eu-test",
		"both":                "both", // the context, not the group
		"production,^prod-eu": "prod-us",
		"":                    `error: invalid pattern ""`,
		"prod-eu,":            `error: invalid pattern ""`,
		"^":                   `error: invalid pattern ""`,
		"prod-[":              `error: invalid pattern "prod-["`,
		"prod":                `error: no kubeconfig context matches "prod"`,
		"PROD-*":              `error: no kubeconfig context matches "PROD-*"`,
		"prod-*,^prod-ue":     `error: no kubeconfig context matches "prod-ue"`,
		"typo":                `error: no kubeconfig context matches "prd-us"`,
		"prod-eu,^prod-*":     "error: excludes all contexts",
		"^*":                  "error: excludes all contexts",
	} {
		got, err := matching(contexts, groups, selection)
		text, fails := strings.CutPrefix(want, "error: ")
		switch {
		case fails && (err == nil || !strings.Contains(err.Error(), text)):
			t.Errorf("%q: %v, want an error with %q", selection, err, text)
		case !fails && (err != nil || strings.Join(got, " ") != want):
			t.Errorf("%q: %v, %v, want %s", selection, got, err, want)
		}
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		codes   []int
		stopped int
		want    int
	}{
		{[]int{0, 0}, -1, 0},
		{[]int{0, 1, 0}, -1, 1},
		{[]int{2, 1, 0}, -1, 2},
		{[]int{1, 2}, -1, 2},
		{[]int{1, 1}, 1, 1},
		{[]int{1, 2}, 1, 1},
		{[]int{0, 130, 2}, -1, 130},
	} {
		got := 0
		for i, code := range c.codes {
			got = worse(got, result{code: code, stopped: i == c.stopped})
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v: %s", c.codes, diff)
		}
	}
}
