package webhook_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/web/webhook"
)

// TestTypesAreThoseOfTheAPI compares the table with the API module.
func TestTypesAreThoseOfTheAPI(t *testing.T) {
	t.Parallel()
	want := []string{
		notificationv1.GenericReceiver, notificationv1.GenericHMACReceiver, notificationv1.GenericOIDCReceiver,
		notificationv1.GitHubReceiver, notificationv1.GitLabReceiver, notificationv1.BitbucketReceiver,
		notificationv1.HarborReceiver, notificationv1.DockerHubReceiver, notificationv1.QuayReceiver,
		notificationv1.GCRReceiver, notificationv1.NexusReceiver, notificationv1.ACRReceiver, notificationv1.CDEventsReceiver,
	}
	got := webhook.Names()
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("types (-API +table):\n%s", diff)
	}
	if webhook.Audience != notificationv1.DefaultOIDCAudience {
		t.Errorf("tokens are for %q, the API's default is %q", webhook.Audience, notificationv1.DefaultOIDCAudience)
	}
}

// TestSignatures compares with values that were published or made by other programs.
func TestSignatures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typ     string
		request webhook.Request
		want    map[string]string
	}{
		// The example of GitHub's documentation.
		{"github", webhook.Request{Token: "It's a Secret to Everybody", Payload: []byte("Hello, World!")},
			map[string]string{"X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17", "X-Github-Event": "push"}},
		// Test case 2 of RFC 2202 for SHA-1 and of RFC 4231 for SHA-256.
		{"nexus", webhook.Request{Token: "Jefe", Payload: []byte("what do ya want for nothing?")},
			map[string]string{"X-Nexus-Webhook-Signature": "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"}},
		{"generic-hmac", webhook.Request{Token: "Jefe", Payload: []byte("what do ya want for nothing?")},
			map[string]string{"X-Signature": "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"}},
		{"bitbucket", webhook.Request{Token: "Jefe", Payload: []byte("what do ya want for nothing?"), Event: "pr:merged"},
			map[string]string{"X-Hub-Signature": "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843", "X-Event-Key": "pr:merged"}},
		{"cdevents", webhook.Request{Event: "mine", Payload: []byte(`{"context":{"type":"theirs"}}`)}, map[string]string{"Ce-Type": "mine"}},
		{"cdevents", webhook.Request{Payload: []byte(`{"context":{"type":"theirs"}}`)}, map[string]string{"Ce-Type": "theirs"}},
		{"cdevents", webhook.Request{Payload: []byte(`no JSON`)}, map[string]string{"Ce-Type": ""}},
		{"quay", webhook.Request{Token: "unused"}, map[string]string{}},
	} {
		header := sent(t, c.typ, c.request)
		c.want["Content-Type"] = "application/json"
		got := map[string]string{}
		for name := range header {
			if name != "Accept-Encoding" && name != "Content-Length" && name != "User-Agent" {
				got[name] = header.Get(name)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("headers of %s (-want +got):\n%s", c.typ, diff)
		}
	}
}

// sent sends a request and returns the headers that the server saw.
func sent(t *testing.T, name string, r webhook.Request) http.Header {
	t.Helper()
	typ, ok := webhook.Find(name)
	if !ok {
		t.Fatalf("there is no type %s", name)
	}
	var seen http.Header
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header }))
	defer server.Close()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := (webhook.Sender{Client: server.Client()}).Send(t.Context(), u, typ, r); err != nil {
		t.Fatal(err)
	}
	return seen
}

// TestAnInterruptEndsTheTries gives up as soon as the context ends, with the
// error of the last try.
func TestAnInterruptEndsTheTries(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	defer server.Close()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var told []string
	sender := webhook.Sender{Client: server.Client(), Retries: 5, Delay: 1 << 62, Again: func(why error, left int) bool {
		told = append(told, fmt.Sprintf("%v, %d left", why, left))
		cancel()
		return true
	}}
	err = sender.Send(ctx, u, webhook.Types()[0], webhook.Request{})
	if err == nil || err.Error() != "the webhook responded with 502 Bad Gateway" {
		t.Errorf("the error is %v", err)
	}
	if diff := cmp.Diff([]string{"the webhook responded with 502 Bad Gateway, 5 left"}, told); diff != "" {
		t.Errorf("what is told (-want +got):\n%s", diff)
	}
}

// TestTokensOfJobs asks a runner that answers nonsense.
func TestTokensOfJobs(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"value":"jwt"}`: "",
		`{"value":""}`:    "requesting an OIDC token: no token in the response",
		`nonsense`:        "requesting an OIDC token: no token in the response",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(answer)) // the client sees what is missing
		}))
		env := map[string]string{"ACTIONS_ID_TOKEN_REQUEST_URL": server.URL, "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "runner"}
		token, err := webhook.ActionsToken(t.Context(), server.Client(), func(name string) string { return env[name] }, "me")
		server.Close()
		if want == "" && (err != nil || token != "jwt") || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: %q, %v, want the error %q", answer, token, err, want)
		}
	}
}

// FuzzRequests sends whatever a request is made of: it is sent as it is or
// refused at once, without what is secret in it.
func FuzzRequests(f *testing.F) {
	f.Add("s3cret", "push", []byte(`{"context":{"type":"dev.cdevents"}}`))
	f.Add("a\nb", "", []byte("\x00"))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		_, _ = fmt.Fprintf(w, "%d", len(body)) // not read
	}))
	f.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, token, event string, payload []byte) {
		for _, typ := range webhook.Types() {
			err := webhook.Sender{Client: server.Client()}.Send(t.Context(), u, typ, webhook.Request{Token: token, Bearer: token, Event: event, Payload: payload})
			if err != nil && !strings.Contains(err.Error(), "control characters") {
				t.Errorf("%s with %q and %q: %v", typ.Name, token, event, err)
			}
		}
	})
}
