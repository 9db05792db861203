package e2e_test

import (
	"context"
	"os/exec"
	"slices"
	"strings"
)

// fetched builds Kustomizations without a local source, of every kind, from the
// artifacts of source-controller; the result equals the live objects.
func (s *story) fetched() {
	s.Helper()
	for name, chain := range chains {
		if !strings.HasPrefix(name, "ks-") {
			continue
		}
		ctx, cancel := context.WithTimeout(s.Context(), stepTime)
		cmd := exec.CommandContext(ctx, lookPath(s.env, "flux"), "build", "kustomization", name, "--namespace=apps")
		cmd.Env, cmd.Dir = s.env, s.TempDir() // not a Git clone
		out, err := cmd.Output()
		cancel()
		if lines := strings.Split(string(out), "\n"); err != nil || !slices.Contains(lines, "  name: "+name) {
			s.Errorf("building %s from %s: %v\n%s", name, chain[1], err, out)
		}
		if out := s.run("flux", "diff", "kustomization", name, "--namespace=apps"); out != "" {
			s.Errorf("%s differs from the artifact of %s:\n%s", name, chain[1], out)
		}
	}
}
