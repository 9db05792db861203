package diagnose

import (
	"fmt"
	"testing"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
)

// TestLimitKeepsProblemsBesideProgress checks that progress that began recently and may block many
// objects does not displace a problem.
func TestLimitKeepsProblemsBesideProgress(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000000, 0)
	var v Verdict
	for i := range 30 {
		o := controllers.FluxID("Kustomization", "apps", fmt.Sprint(i))
		c := single(Finding{Object: o, Code: "progressing", Message: "reconciling", Since: now.Add(-time.Second)})
		c.Blocks = []controllers.ID{o}
		v.Cases = append(v.Cases, c)
	}
	for i := range 5 {
		v.Cases = append(v.Cases, single(Finding{Object: controllers.FluxID("Bucket", "apps", fmt.Sprint(i)), Code: "build"}))
	}
	v.Problems = 65
	v.limit(3, now)
	v.separate(0, now)
	if len(v.Cases) != 3 || v.RootCauses != 5 || v.Problems != 5 || len(v.Progress) != 30 {
		t.Errorf("%d cases of %d root causes, %d problems, %d in progress", len(v.Cases), v.RootCauses, v.Problems, len(v.Progress))
	}
	for _, c := range v.Cases {
		if c.Root.Code != "build" {
			t.Errorf("%s is not a problem", c.Object)
		}
	}
}
