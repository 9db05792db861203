// Package webhook calls the webhooks of Receivers in the same way as the services that Receivers support.
package webhook

import (
	"crypto/hmac"
	"crypto/sha1" // Nexus signs with SHA-1
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"net/http"
	"strings"
	"unicode"
)

// Request is a request to a webhook.
type Request struct {
	// Token is the shared secret of the Receiver.
	Token string
	// Bearer is an OIDC token.
	Bearer string
	// Event is the event type, or "" for the default of the Receiver type.
	Event   string
	Payload []byte
}

// Type describes a type of Receiver and how it verifies requests.
type Type struct {
	Name string
	// Signs is true if requests are signed with the token or contain the token.
	// Otherwise the token only determines the path of the webhook.
	Signs bool
	// Bears is true if requests contain an OIDC token.
	Bears bool
	// Payload describes the required payload; it is "" if any payload is accepted.
	Payload string

	event   string // the header that contains the event
	usually string // the default event
	prove   func(Request, http.Header)
}

// Types returns all types of Receivers.
func Types() []Type {
	return []Type{
		{Name: "generic"},
		{Name: "generic-hmac", Signs: true, prove: signature("X-Signature", sha256.New, "sha256=")},
		{Name: "generic-oidc", Bears: true, prove: bear},
		{Name: "github", Signs: true, event: "X-GitHub-Event", usually: "push", prove: signature("X-Hub-Signature-256", sha256.New, "sha256=")},
		{Name: "gitlab", Signs: true, event: "X-Gitlab-Event", usually: "Push Hook", prove: token("X-Gitlab-Token")},
		{Name: "bitbucket", Signs: true, event: "X-Event-Key", usually: "repo:refs_changed", prove: signature("X-Hub-Signature", sha256.New, "sha256=")},
		{Name: "harbor", Signs: true, prove: token("Authorization")},
		{Name: "dockerhub"},
		{Name: "quay"},
		{Name: "gcr", Bears: true, Payload: "the Pub/Sub push message", prove: bear},
		{Name: "nexus", Signs: true, prove: signature("X-Nexus-Webhook-Signature", sha1.New, "")},
		{Name: "acr"},
		{Name: "cdevents", Payload: "a CDEvent", event: "Ce-Type"},
	}
}

// Names returns the names of all types.
func Names() []string {
	var names []string
	for _, t := range Types() {
		names = append(names, t.Name)
	}
	return names
}

// Find returns a type by name.
func Find(name string) (Type, bool) {
	for _, t := range Types() {
		if t.Name == name {
			return t, true
		}
	}
	return Type{}, false
}

// HasEvents reports whether requests contain an event type.
func (t Type) HasEvents() bool { return t.event != "" }

// header returns the headers that a Receiver of the type requires. Errors for
// invalid values do not contain the value.
func (t Type) header(r Request) (http.Header, error) {
	h := http.Header{"Content-Type": {"application/json"}}
	if t.event != "" {
		h.Set(t.event, t.eventOf(r))
	}
	if t.prove != nil {
		t.prove(r, h)
	}
	for name := range h {
		if strings.ContainsFunc(h.Get(name), unicode.IsControl) {
			return nil, fmt.Errorf("invalid value of the header %s: contains control characters", name)
		}
	}
	return h, nil
}

// eventOf returns the event type of the request, else the type in the CDEvents payload, else the default.
func (t Type) eventOf(r Request) string {
	if r.Event != "" || t.Name != "cdevents" {
		if r.Event == "" {
			return t.usually
		}
		return r.Event
	}
	var event struct {
		Context struct {
			Type string `json:"type"`
		} `json:"context"`
	}
	if json.Unmarshal(r.Payload, &event) != nil {
		return "" // the Receiver reports an invalid payload
	}
	return event.Context.Type
}

func signature(name string, of func() hash.Hash, prefix string) func(Request, http.Header) {
	return func(r Request, h http.Header) {
		mac := hmac.New(of, []byte(r.Token))
		mac.Write(r.Payload) // writing to a hash never fails
		h.Set(name, prefix+hex.EncodeToString(mac.Sum(nil)))
	}
}

func token(name string) func(Request, http.Header) {
	return func(r Request, h http.Header) { h.Set(name, r.Token) }
}

func bear(r Request, h http.Header) { h.Set("Authorization", "Bearer "+r.Bearer) }
