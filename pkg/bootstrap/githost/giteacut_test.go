package githost

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var errCut = errors.New("cut off")

// cutter ends a run at one of its requests that change something, as a killed
// process does: before the server got it, or after it was carried out.
type cutter struct {
	next  http.RoundTripper
	left  int
	after bool
}

func (c *cutter) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.left < 0 {
		return nil, errCut
	}
	if r.Method == http.MethodGet {
		return c.next.RoundTrip(r)
	}
	if c.left--; c.left >= 0 {
		return c.next.RoundTrip(r)
	}
	if c.after {
		answer, err := c.next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		drain(answer)
	}
	return nil, errCut
}

// outcome is the state in which a server ends.
type outcome struct {
	Seen  seen
	Teams []struct{ Name string }
	Keys  []string
}

func (s *server) outcome(t *testing.T, repository string) outcome {
	t.Helper()
	o := outcome{Seen: s.see(t, repository)}
	s.As(t, s.alice, http.MethodGet, "/repos/"+repository+"/teams", nil, &o.Teams)
	_, keys := s.keys(t, repository)
	for _, key := range keys {
		o.Keys = append(o.Keys, fmt.Sprintf("%.40s %t", key.Key, key.ReadOnly))
	}
	slices.Sort(o.Keys)
	return o
}

// cutOff ends a run at each of its changes in turn; the next one has to end in
// the same state as one that was not disturbed.
func cutOff(t *testing.T, s *server) {
	key := DeployKey{Title: "flux", Public: publicKey(t)}
	bootstrap := func(g *Gitea) error {
		if _, err := g.Survey(t.Context(), Want{Branch: "main", KeyTitle: key.Title}); err != nil {
			return err
		}
		if _, err := g.Ensure(t.Context()); err != nil {
			return err
		}
		return g.DeployKey(t.Context(), key)
	}
	want := outcome{Seen: seen{Private: true, DefaultBranch: "main", Empty: true, Description: "fleet"}, Keys: []string{fmt.Sprintf("%.40s true", key.Public)}}
	want.Teams = append(want.Teams, struct{ Name string }{"Owners"}, struct{ Name string }{"readers"})
	for _, after := range []bool{false, true} {
		for n := 0; ; n++ {
			name := fmt.Sprintf("acme/cut-%d-%t", n, after)
			fresh := func() *Gitea {
				return s.gitea(t, name, s.alice.Token, func(h *Hosted) { h.Description, h.Teams = "fleet", []Team{{"readers", "read"}} })
			}
			cut := fresh()
			cut.client.Transport = &cutter{cut.client.Transport, n, after}
			first := bootstrap(cut)
			if first != nil {
				if !strings.Contains(first.Error(), errCut.Error()) {
					t.Fatalf("%s: %v", name, first)
				}
				s.staleKey(t, name)
				if err := bootstrap(fresh()); err != nil {
					t.Fatalf("%s: the run after it: %v", name, err)
				}
			}
			if diff := cmp.Diff(want, s.outcome(t, name)); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			if first == nil {
				if n < 4 {
					t.Errorf("a run makes %d requests that change something, too few to be true", n)
				}
				break
			}
		}
	}
}

// staleKey leaves a key of the same title, as one of an earlier cluster.
func (s *server) staleKey(t *testing.T, repository string) {
	t.Helper()
	// The repository may not be there, or the title be taken: both are right.
	_ = s.Call(t.Context(), s.alice.Token, http.MethodPost, "/api/v1/repos/"+repository+"/keys",
		map[string]any{"title": "flux", "key": publicKey(t), "read_only": true}, nil)
}
