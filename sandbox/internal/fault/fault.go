// Package fault injects faults into the servers of the sandbox, configured in a file that can be changed
// while they run.
package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/fluxkit/flux/sandbox/internal/state"
)

// Fault is a fault of a server: one of Down, Status and Delay is set.
type Fault struct {
	// Down closes connections without a response.
	Down bool `json:"down,omitempty"`
	// Status is the HTTP status of all responses.
	Status int `json:"status,omitempty"`
	// Delay is the delay of each response.
	Delay time.Duration `json:"delay,omitempty"`
	// Until is the end of the fault, or zero if it has none.
	Until time.Time `json:"until,omitzero"`
}

// file returns the path of the fault in the root directory of a server.
func file(root string) string { return filepath.Join(root, "fault.json") }

// Set starts the fault of a server.
func Set(root string, f Fault) error {
	data, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("encoding the fault: %w", err)
	}
	return state.WriteFile(file(root), data)
}

// Clear ends the fault of a server.
func Clear(root string) error {
	if err := os.Remove(file(root)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("ending the fault: %w", err)
	}
	return nil
}

// load returns the current fault.
func load(root string) (Fault, error) {
	var f Fault
	data, err := os.ReadFile(file(root))
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err != nil {
		return f, fmt.Errorf("reading the fault: %w", err)
	}
	if !f.Until.IsZero() && !time.Now().Before(f.Until) {
		return Fault{}, nil
	}
	return f, nil
}

// Handler applies the current fault to the affected requests of a server.
func Handler(root string, affected func(*http.Request) bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !affected(r) {
			next.ServeHTTP(w, r)
			return
		}
		f, err := load(root)
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		case f.Down:
			panic(http.ErrAbortHandler)
		case f.Status != 0:
			respond(w, f.Status)
			return
		}
		if f.Delay > 0 && !wait(r, f.Delay) {
			return
		}
		next.ServeHTTP(w, r)
	})
}

// wait waits for a duration, and reports whether the client is still connected.
func wait(r *http.Request, delay time.Duration) bool {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-r.Context().Done():
		return false
	case <-timer.C:
		return true
	}
}

// respond sends an error in a format that both Git clients and registry clients support.
func respond(w http.ResponseWriter, status int) {
	code, message := "UNAVAILABLE", "the server is not available"
	switch status {
	case http.StatusUnauthorized:
		code, message = "UNAUTHORIZED", "authentication failed: the credentials have expired"
		w.Header().Set("WWW-Authenticate", `Basic realm="flux-sandbox"`)
	case http.StatusForbidden:
		code, message = "DENIED", "access denied"
	case http.StatusTooManyRequests:
		code, message = "TOOMANYREQUESTS", "too many requests"
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"errors":[{"code":%q,"message":%q}]}`+"\n", code, message)
}
