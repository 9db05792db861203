package gitea

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/rest"
)

// keys returns titles and permissions of the deploy keys of a repository.
func (s *server) keys(t *testing.T, repository string) (titles []string, found []key) {
	t.Helper()
	s.As(t, s.alice, http.MethodGet, "/repos/"+repository+"/keys", nil, &found)
	for _, key := range found {
		titles = append(titles, fmt.Sprintf("%s read-only=%t", key.Title, key.ReadOnly))
	}
	slices.Sort(titles)
	return titles, found
}

func publicKey(t *testing.T) string {
	t.Helper()
	raw, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := ssh.NewPublicKey(raw)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public)))
}

func deployKeys(t *testing.T, s *server) {
	name := s.repository(t, "alice/keys")
	g, writer := s.gitea(t, name, s.alice.Token), s.gitea(t, name, s.alice.Token, func(h *githost.Hosted) { h.ReadWriteKey = true })
	first, second := publicKey(t), publicKey(t)
	s.As(t, s.alice, http.MethodPost, "/repos/"+name+"/keys", map[string]any{"title": "flux by hand", "key": publicKey(t), "read_only": true}, nil)
	last := int64(0)
	for _, step := range []struct {
		what string
		host *rest.Host
		key  githost.DeployKey
		want []string
		same bool
	}{
		{"a first key", g, githost.DeployKey{Title: "flux", Public: first}, []string{"flux by hand read-only=true", "flux read-only=true"}, false},
		{"the same key", g, githost.DeployKey{Title: "flux", Public: first + " comment"}, []string{"flux by hand read-only=true", "flux read-only=true"}, true},
		{"another, both", g, githost.DeployKey{Title: "flux", Public: second, KeepOthers: true}, []string{"flux (2) read-only=true", "flux by hand read-only=true", "flux read-only=true"}, false},
		{"another alone", g, githost.DeployKey{Title: "flux", Public: second}, []string{"flux (2) read-only=true", "flux by hand read-only=true"}, true},
		{"other permissions", writer, githost.DeployKey{Title: "flux", Public: second}, []string{"flux by hand read-only=true", "flux read-only=false"}, false},
		{"replaced at once", g, githost.DeployKey{Title: "flux", Public: first}, []string{"flux (2) read-only=true", "flux by hand read-only=true"}, false},
	} {
		if err := step.host.DeployKey(t.Context(), step.key); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		titles, found := s.keys(t, name)
		if diff := cmp.Diff(step.want, titles); diff != "" {
			t.Errorf("%s: %s", step.what, diff)
		}
		id := int64(0)
		for _, key := range found {
			if key.Key == strings.TrimSuffix(step.key.Public, " comment") {
				id = key.ID
			}
		}
		if id == 0 || (id == last) != step.same {
			t.Errorf("%s: key %d, before %d", step.what, id, last)
		}
		last = id
	}
	taken := publicKey(t)
	s.As(t, s.alice, http.MethodPost, "/user/keys", map[string]any{"title": "laptop", "key": taken}, nil)
	err := g.DeployKey(t.Context(), githost.DeployKey{Title: "flux", Public: taken})
	if err == nil || !strings.HasSuffix(err.Error(), "the key already belongs to an account") {
		t.Errorf("an account's key: %v", err)
	}
}

func pullRequests(t *testing.T, s *server) {
	const name = "alice/requests"
	s.make(t, name, true)
	for _, branch := range []string{"flux/bootstrap", "other"} {
		s.As(t, s.alice, http.MethodPost, "/repos/"+name+"/contents/"+strings.ReplaceAll(branch, "/", "-"), map[string]any{
			"content": base64.StdEncoding.EncodeToString([]byte(branch)), "new_branch": branch, "branch": "main",
		}, nil)
	}
	g := s.gitea(t, name, s.alice.Token)
	other, err := g.RequestChange(t.Context(), githost.Change{Head: "other", Base: "main", Title: "Something else"})
	if err != nil || !other.Opened {
		t.Fatalf("another request: %+v, %v", other, err)
	}
	change := githost.Change{Head: "flux/bootstrap", Base: "main", Title: "Add Flux", Body: "Merge **this**."}
	made, err := g.RequestChange(t.Context(), change)
	if err != nil || !made.Opened || made.Number == other.Number || made.URL != fmt.Sprintf("https://%s/%s/pulls/%d", s.Hostname, name, made.Number) {
		t.Fatalf("the request: %+v, %v", made, err)
	}
	var there struct{ Title, Body, State string }
	s.As(t, s.alice, http.MethodGet, fmt.Sprintf("/repos/%s/pulls/%d", name, made.Number), nil, &there)
	if there.Title != change.Title || there.Body != change.Body || there.State != "open" {
		t.Errorf("the pull request is %+v", there)
	}
	again, err := g.RequestChange(t.Context(), change)
	made.Opened = false
	if err != nil || again != made {
		t.Errorf("second request: %+v, %v, want %+v", again, err, made)
	}
	again, err = s.gitea(t, name, s.alice.Token).OpenRequest(t.Context(), change)
	if err != nil || again != made {
		t.Errorf("without a survey: %+v, %v, want %+v", again, err, made)
	}
	s.As(t, s.alice, http.MethodPatch, fmt.Sprintf("/repos/%s/pulls/%d", name, made.Number), map[string]any{"state": "closed"}, nil)
	if renewed, err := g.RequestChange(t.Context(), change); err != nil || !renewed.Opened || renewed.Number == made.Number {
		t.Errorf("request after it was closed: %+v, %v", renewed, err)
	}
}
