package bootstrap

import (
	"strings"
	"testing"
	"time"
)

func TestCleanPath(t *testing.T) {
	t.Parallel()
	for p, want := range map[string]string{
		"": "", ".": "", "./": "", "/": "", "clusters/demo": "clusters/demo", "./clusters/demo/": "clusters/demo",
		"/clusters//demo": "clusters/demo", `clusters\demo`: "clusters/demo", "a..b/c": "a..b/c",
	} {
		if got, err := CleanPath(p); err != nil || got != want {
			t.Errorf("%q: %q, %v", p, got, err)
		}
	}
	for _, p := range []string{"..", "../x", "a/../../x", "a/..", `..\x`, ".git", "a/.GIT/hooks"} {
		if got, err := CleanPath(p); err == nil {
			t.Errorf("%q: %q", p, got)
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	valid := func() Plan {
		return Plan{Branch: "main", Sync: Sync{Interval: time.Minute, SecretName: "flux-system"}}
	}
	if err := valid().validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Plan){
		`invalid branch name ""`:              func(p *Plan) { p.Branch = "" },
		`invalid branch name "a b"`:           func(p *Plan) { p.Branch = "a b" },
		`invalid branch name "a..b"`:          func(p *Plan) { p.Branch = "a..b" },
		`invalid branch name "-x"`:            func(p *Plan) { p.Branch = "-x" },
		`path "../x" is outside the repo`:     func(p *Plan) { p.Path = "../x" },
		`invalid secret name "Flux_System"`:   func(p *Plan) { p.Sync.SecretName = "Flux_System" },
		`invalid interval 0s`:                 func(p *Plan) { p.Sync.Interval = 0 },
		`path "clusters/demo" is not part of`: func(p *Plan) { p.Path, p.Sync.SparseCheckout = "clusters/demo", []string{"apps", "clusters/de"} },
	} {
		p := valid()
		change(&p)
		if err := p.validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	p := valid()
	p.Path, p.Sync.SparseCheckout = "clusters/demo", []string{"apps", "./clusters/"}
	p.Branch = "release/2.9"
	if err := p.validate(); err != nil {
		t.Error(err)
	}
}
