package live

import (
	"testing"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
)

func TestFilter(t *testing.T) {
	t.Parallel()
	o := object("HelmRelease", "web-app", "False", "InstallFailed", "timeout waiting", 2*time.Hour, map[string]any{"suspend": true})
	k, _ := controllers.FindKind("HelmRelease")
	row := Row{Key: Key{Cluster: "prod-eu", ID: k.IDOf(o)}, Kind: &k, Object: o, State: Suspended, Suspended: true, Message: "timeout waiting", Created: clock().Add(-2 * time.Hour)}
	for text, want := range map[string]bool{
		"":                                 true,
		"web":                              true,
		"WEB timeout":                      true,
		"web missing":                      false,
		"kind:hr":                          true,
		"kind:helmrelease name:app":        true,
		"kind:ks":                          false,
		"ns:apps ready:false":              true,
		"ns:app":                           false,
		"ready:true":                       false,
		"state:suspended suspended:true":   true,
		"state:failed":                     false,
		"suspended:false":                  false,
		"age<3h age>90m":                   true,
		"age<1h":                           false,
		"age>1d":                           false,
		"age<1d kind:hr name:web ns:apps ": true,
		"cluster:EU web prod-eu":           true,
		"cluster:us":                       false,
	} {
		f, err := ParseFilter(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if got := f.Matches(row, clock()); got != want {
			t.Errorf("%q matches: %t", text, got)
		}
	}
	if f, err := ParseFilter("age<1h"); err != nil || f.Matches(Row{}, clock()) {
		t.Errorf("an object without an age matches, or %v", err)
	}
	for _, text := range []string{"kind:none", "state:broken", "ready:maybe", "color:red", "age<soon", "size<1h", "age<1.5d"} {
		if _, err := ParseFilter(text); err == nil {
			t.Errorf("%q is valid", text)
		}
	}
}
