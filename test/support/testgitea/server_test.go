package testgitea

import (
	"net/http"
	"os"
	"testing"
)

func TestStart(t *testing.T) {
	t.Parallel()
	var s *Server
	t.Run("up", func(t *testing.T) {
		s = Start(t)
		alice := s.User(t, "alice")
		var me struct{ Login string }
		s.As(t, alice, http.MethodGet, "/user", nil, &me)
		if me.Login != "alice" {
			t.Errorf("alice's token belongs to %q", me.Login)
		}
		s.Organization(t, alice, "acme")
		if id := s.Team(t, alice, "acme", "platform", "write"); id == 0 {
			t.Error("a team has no number")
		}
	})
	if err := s.Call(t.Context(), "", http.MethodGet, "/api/healthz", nil, nil); err == nil {
		t.Error("it answers after its test is over")
	}
	if _, err := os.Stat(s.Dir); err == nil {
		t.Errorf("%s was not removed", s.Dir)
	}
}
