package publish_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/ci"
	"github.com/fluxkit/flux/internal/githost"
)

// cloud is the part of the API of Bitbucket Cloud that comments use, after
// https://developer.atlassian.com/cloud/bitbucket/rest/: pull requests and commit statuses.
type cloud struct {
	notes    []map[string]any
	statuses map[string]map[string]string
}

func (c *cloud) note(user, text string) map[string]any {
	n := map[string]any{
		"id": len(c.notes) + 1, "deleted": false, "content": map[string]any{"raw": text}, "user": map[string]any{"uuid": user},
		"links": map[string]any{"html": map[string]any{"href": "https://bitbucket.org/1"}},
	}
	c.notes = append(c.notes, n)
	return n
}

func (c *cloud) handler(t *testing.T) http.Handler {
	t.Helper()
	mux := http.NewServeMux()
	reply := func(w http.ResponseWriter, status int, body any) {
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(body); err != nil {
			t.Error(err)
		}
	}
	text := func(r *http.Request) string {
		var in struct{ Content struct{ Raw string } }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		return in.Content.Raw
	}
	const comments = "/2.0/repositories/acme/fleet/pullrequests/1/comments"
	mux.HandleFunc("GET /2.0/user", func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, map[string]string{"uuid": "{ada}"}) })
	mux.HandleFunc("GET "+comments, func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		body := map[string]any{"values": c.notes[min(page-1, len(c.notes)):min(page, len(c.notes))]}
		if page < len(c.notes) {
			body["next"] = "https://api.bitbucket.org/next"
		}
		reply(w, 200, body)
	})
	mux.HandleFunc("POST "+comments, func(w http.ResponseWriter, r *http.Request) { reply(w, 201, c.note("{ada}", text(r))) })
	mux.HandleFunc("PUT "+comments+"/{id}", func(w http.ResponseWriter, r *http.Request) {
		id, _ := strconv.Atoi(r.PathValue("id"))
		if c.notes[id-1]["deleted"] == true {
			reply(w, 404, map[string]any{"type": "error", "error": map[string]string{"message": "Not found"}})
			return
		}
		c.notes[id-1]["content"] = map[string]any{"raw": text(r)}
		reply(w, 200, c.notes[id-1])
	})
	mux.HandleFunc("POST /2.0/repositories/acme/fleet/commit/{sha}/statuses/build", func(w http.ResponseWriter, r *http.Request) {
		var in map[string]string
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in["key"]) > 40 || in["url"] == "" {
			reply(w, 400, map[string]any{"type": "error", "error": map[string]string{"message": "Bad request"}})
			return
		}
		c.statuses[in["key"]] = in
		reply(w, 201, in)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer s3cret" {
			reply(w, 401, map[string]any{"type": "error", "error": map[string]string{"message": "Token is invalid"}})
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func TestBitbucketCloud(t *testing.T) {
	t.Parallel()
	c := &cloud{statuses: map[string]map[string]string{}}
	server := httptest.NewTLSServer(c.handler(t))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	hosted := githost.Hosted{Hostname: strings.TrimPrefix(server.URL, "https://"), Scheme: "https", CABundle: ca, Token: "s3cret", TokenOrigin: "BITBUCKET_TOKEN", Owner: "acme", Name: "fleet"}
	pull := open(t, ci.BitbucketCloud, hosted, 1)
	c.note("{bob}", text(ci.BitbucketCloud, "a", "forged"))
	if !post(t, pull, text(ci.BitbucketCloud, "a", "one")) || post(t, pull, text(ci.BitbucketCloud, "a", "two")) {
		t.Error("the comment is not created and updated")
	}
	c.notes[1]["deleted"] = true // deleted comments stay in the list
	if !post(t, pull, text(ci.BitbucketCloud, "a", "three")) {
		t.Error("a deleted comment is updated")
	}
	var got []string
	for _, n := range c.notes {
		got = append(got, fmt.Sprint(n["user"].(map[string]any)["uuid"], " ", strings.TrimPrefix(n["content"].(map[string]any)["raw"].(string), "[//]: # (flux diff: a)\n\n")))
	}
	if diff := cmp.Diff([]string{"{bob} forged", "{ada} two", "{ada} three"}, got); diff != "" {
		t.Error(diff)
	}
	long := strings.Repeat("flux/", 20)
	for range 2 {
		if err := pull.SetStatus(t.Context(), "c1", githost.Status{Name: long, State: githost.Failed, Text: "1 created"}); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.statuses) != 1 {
		t.Errorf("statuses %v", c.statuses)
	}
	hosted.Token = "unknown"
	if _, err := open(t, ci.BitbucketCloud, hosted, 1).Comments(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "rejected the token (401)") {
		t.Errorf("%v", err)
	}
}
