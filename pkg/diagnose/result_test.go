package diagnose

import (
	"fmt"
	"testing"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
)

func TestWithoutPaths(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		`failed to send notification for Kustomization/app.apps: Post "https://hooks.slack.com/services/T0/B0/secret": dial tcp: no such host`: `Post "https://hooks.slack.com/…": dial tcp: no such host`,
		`failed to send notification for X: Post "https://user:token@chat.example.com?key=secret": EOF`:                                        `Post "https://chat.example.com/…": EOF`,
		`failed to send notification for X: Get "https://chat.example.com": EOF`:                                                               `Get "https://chat.example.com": EOF`,
	} {
		if got := withoutPaths(message); got != want {
			t.Errorf("withoutPaths(%q) = %q, want %q", message, got, want)
		}
	}
}

func TestSeparate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	r := Result{
		Causes:   []Cause{single(rules.Finding{Code: "not-ready"}), {Chain: []rules.Finding{{Code: "progressing", Since: now}}, Blocks: []controllers.ID{{Name: "a"}}}},
		Problems: 3, RootCauses: 2,
	}
	r.separate(0, now)
	if len(r.Causes) != 1 || len(r.Progress) != 1 || r.Problems != 1 || r.RootCauses != 1 {
		t.Errorf("separate left %+v", r)
	}
}

// TestLimitKeepsProblemsBesideProgress checks that progress that began recently and may block many
// objects does not displace a problem.
func TestLimitKeepsProblemsBesideProgress(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000000, 0)
	var r Result
	for i := range 30 {
		o := controllers.FluxID("Kustomization", "apps", fmt.Sprint(i))
		c := single(rules.Finding{Object: o, Code: "progressing", Message: "reconciling", Since: now.Add(-time.Second)})
		c.Blocks = []controllers.ID{o}
		r.Causes = append(r.Causes, c)
	}
	for i := range 5 {
		r.Causes = append(r.Causes, single(rules.Finding{Object: controllers.FluxID("Bucket", "apps", fmt.Sprint(i)), Code: "build"}))
	}
	r.Problems = 65
	r.limit(3, now)
	r.separate(0, now)
	if len(r.Causes) != 3 || r.RootCauses != 5 || r.Problems != 5 || len(r.Progress) != 30 {
		t.Errorf("%d causes of %d root causes, %d problems, %d in progress", len(r.Causes), r.RootCauses, r.Problems, len(r.Progress))
	}
	for _, c := range r.Causes {
		if c.Root().Code != "build" {
			t.Errorf("%s is not a problem", c.Object)
		}
	}
}
