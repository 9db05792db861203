// Package webhook calls the incoming webhooks of Receivers as the services do
// that they are made for.
package webhook

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // Nexus signs with it
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"net/http"
	"strings"
	"unicode"
)

// Request is what is sent to a webhook.
type Request struct {
	// Token is the secret that the Receiver shares with the caller.
	Token string
	// Bearer is a token of OpenID Connect.
	Bearer string
	// Event is the name of what has happened, "" for the usual one of the type.
	Event   string
	Payload []byte
}

// Type is a type of Receiver: how it tells that a request is what it should be.
type Type struct {
	Name string
	// Signs says that a request proves that the caller has the token; without
	// it, the token is only needed to find the webhook.
	Signs bool
	// Bears says that a request carries a token of OpenID Connect.
	Bears bool
	// Payload is what the payload has to be, "" for anything.
	Payload string

	event   string // the header with the event
	usually string // the event unless one is given
	prove   func(Request, http.Header)
}

// Types are all types of Receivers.
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
		{Name: "gcr", Bears: true, Payload: "the message that Pub/Sub pushes", prove: bear},
		{Name: "nexus", Signs: true, prove: signature("X-Nexus-Webhook-Signature", sha1.New, "")},
		{Name: "acr"},
		{Name: "cdevents", Payload: "a CDEvent", event: "Ce-Type"},
	}
}

// Names are the names of all types.
func Names() []string {
	var names []string
	for _, t := range Types() {
		names = append(names, t.Name)
	}
	return names
}

// Find returns the type of a name.
func Find(name string) (Type, bool) {
	for _, t := range Types() {
		if t.Name == name {
			return t, true
		}
	}
	return Type{}, false
}

// HasEvents tells whether requests say what has happened.
func (t Type) HasEvents() bool { return t.event != "" }

// header is what makes a request acceptable to a Receiver of the type. Values
// that HTTP cannot carry are refused without being named.
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
			return nil, fmt.Errorf("the header %s cannot be sent: there are line breaks or other control characters in its value", name)
		}
	}
	return h, nil
}

// eventOf is the event that was given, else the one that a CDEvent names
// itself, else the usual one.
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
		return "" // the Receiver says what is wrong with the payload
	}
	return event.Context.Type
}

func signature(name string, of func() hash.Hash, prefix string) func(Request, http.Header) {
	return func(r Request, h http.Header) {
		mac := hmac.New(of, []byte(r.Token))
		mac.Write(r.Payload) // a hash takes everything
		h.Set(name, prefix+hex.EncodeToString(mac.Sum(nil)))
	}
}

func token(name string) func(Request, http.Header) {
	return func(r Request, h http.Header) { h.Set(name, r.Token) }
}

func bear(r Request, h http.Header) { h.Set("Authorization", "Bearer "+r.Bearer) }
