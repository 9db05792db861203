package testgitea

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// callTime is the maximum time of a request.
const callTime = time.Minute

// Call sends a request to the API. credential is a token, a name and password
// with a colon between them, or "" for none. body and answer may be nil.
func (s *Server) Call(ctx context.Context, credential, method, path string, body, answer any) error {
	var sent io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, method, "https://"+s.Hostname+path, sent)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	if name, password, found := strings.Cut(credential, ":"); found {
		r.SetBasicAuth(name, password)
	} else if credential != "" {
		r.Header.Set("Authorization", "token "+credential)
	}
	got, err := s.client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		return err
	}
	if got.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s: %s", method, path, got.Status, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}

// Do sends a request to the API as the administrator. It must succeed.
func (s *Server) Do(t testing.TB, method, path string, body, answer any) {
	t.Helper()
	s.As(t, s.Admin, method, path, body, answer)
}

// As sends a request to the API as an account. It must succeed.
func (s *Server) As(t testing.TB, who Account, method, path string, body, answer any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callTime)
	defer cancel()
	if err := s.Call(ctx, who.Token, method, "/api/v1"+path, body, answer); err != nil {
		t.Fatal(err)
	}
}

// User creates an account with a token that has all scopes.
func (s *Server) User(t testing.TB, name string) Account {
	t.Helper()
	password, err := random()
	if err != nil {
		t.Fatal(err)
	}
	s.Do(t, http.MethodPost, "/admin/users", map[string]any{
		"username": name, "email": name + "@example.com", "password": password, "must_change_password": false,
	}, nil)
	who := Account{Name: name, Password: password}
	who.Token = s.Token(t, who, "all")
	return who
}

// Token creates a token with scopes such as "write:repository".
func (s *Server) Token(t testing.TB, who Account, scopes ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callTime)
	defer cancel()
	name, err := random() // token names are unique in an account
	if err != nil {
		t.Fatal(err)
	}
	var made struct {
		SHA1 string `json:"sha1"`
	}
	body := map[string]any{"name": name, "scopes": scopes}
	if err := s.Call(ctx, who.Name+":"+who.Password, http.MethodPost, "/api/v1/users/"+who.Name+"/tokens", body, &made); err != nil {
		t.Fatal(err)
	}
	return made.SHA1
}

// Organization creates an organization owned by an account.
func (s *Server) Organization(t testing.TB, owner Account, name string) {
	t.Helper()
	s.As(t, owner, http.MethodPost, "/orgs", map[string]any{"username": name}, nil)
}

// Team creates a team with a permission ("read", "write", "admin") in an
// organization and returns its number.
func (s *Server) Team(t testing.TB, owner Account, organization, name, permission string) int {
	t.Helper()
	var made struct {
		ID int `json:"id"`
	}
	s.As(t, owner, http.MethodPost, "/orgs/"+organization+"/teams", map[string]any{
		"name": name, "permission": permission, "units": []string{"repo.code", "repo.pulls"},
	}, &made)
	return made.ID
}
