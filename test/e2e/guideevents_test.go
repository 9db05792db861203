package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// eventServer starts the HTTP server of the guide, and returns its URL. It stores the first posted event of
// each reason, and responds to a GET request for /REASON with this event as soon as it is available.
func eventServer(t *testing.T) string {
	t.Helper()
	var mu sync.Mutex
	first := map[string]chan []byte{}
	with := func(reason string) chan []byte {
		mu.Lock()
		defer mu.Unlock()
		if first[reason] == nil {
			first[reason] = make(chan []byte, 1)
		}
		return first[reason]
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		var e event
		var text bytes.Buffer
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &e)
		}
		if err == nil {
			err = json.Indent(&text, bytes.TrimSpace(body), "", "  ")
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		select {
		case with(e.Reason) <- append(text.Bytes(), '\n'):
		default:
		}
	})
	mux.HandleFunc("GET /{reason}", func(w http.ResponseWriter, r *http.Request) {
		select {
		case event := <-with(r.PathValue("reason")):
			_, _ = w.Write(event) // the client reports a lost connection
		case <-r.Context().Done():
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}
