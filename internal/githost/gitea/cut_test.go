package gitea

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/rest"
)

var errCut = errors.New("cut off")

// cutter fails a run at one of its writes, as if the process was killed: before the
// server got the request, or after it handled it.
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
		response, err := c.next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		_, _ = io.Copy(io.Discard, response.Body) // it is not used
		_ = response.Body.Close()
	}
	return nil, errCut
}

// outcome is the state of a server after a run.
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

// cutOff interrupts a run at each of its writes: the next run has to reach the same
// state as a run without interruption.
func cutOff(t *testing.T, s *server) {
	key := githost.DeployKey{Title: "flux", Public: publicKey(t)}
	bootstrap := func(g *rest.Host) error {
		if _, err := g.Survey(t.Context(), githost.Want{Branch: "main", KeyTitle: key.Title}); err != nil {
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
			fresh := func() *rest.Host {
				return s.gitea(t, name, s.alice.Token, func(h *githost.Hosted) {
					h.Description, h.Teams = "fleet", []githost.Team{{Name: "readers", Permission: "read"}}
				})
			}
			cut := fresh()
			client := cut.Driver.(*driver).client.HTTP
			client.Transport = &cutter{client.Transport, n, after}
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
					t.Errorf("a run has %d writes, expected more", n)
				}
				break
			}
		}
	}
}

// staleKey adds a key of the same title, as of an earlier cluster.
func (s *server) staleKey(t *testing.T, repository string) {
	t.Helper()
	// The repository may not exist, or may have the title: both are fine.
	_ = s.Call(t.Context(), s.alice.Token, http.MethodPost, "/api/v1/repos/"+repository+"/keys",
		map[string]any{"title": "flux", "key": publicKey(t), "read_only": true}, nil)
}
