package testgithost

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// Endless returns hosts that never end a list, by a part of the expected error.
func Endless() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"sent a response larger than 16 MiB":                  endlessJSON,
		"returned lists that require more than 2000 requests": endlessPages,
	}
}

// StartHandler runs a server with a handler until the end of the test, and returns its address and certificate.
func StartHandler(t *testing.T, handler http.HandlerFunc) (hostname string, ca []byte) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "https://"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// endlessJSON sends an endless list.
func endlessJSON(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	entry := `{"key": "` + strings.Repeat("x", 1<<16) + `"},`
	for text := "[" + entry; ; text = entry {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
	}
}

// endlessPages links another page after every page, in the format of each host.
func endlessPages(w http.ResponseWriter, r *http.Request) {
	const giteaPage = 50
	page, _ := strconv.Atoi(r.URL.Query().Get("page")) // 0 for the first
	start, _ := strconv.Atoi(r.URL.Query().Get("start"))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Next-Page", strconv.Itoa(page+1))
	w.Header().Set("Link", fmt.Sprintf(`<https://%s%s?page=%d>; rel="next"`, r.Host, r.URL.Path, page+1))
	entries := []map[string]any{{"id": 1}, {"id": 2}}
	if strings.Contains(r.URL.Path, "/rest/") {
		_ = json.NewEncoder(w).Encode(map[string]any{"values": entries, "isLastPage": false, "nextPageStart": start + 2}) // the client may have gone
		return
	}
	for len(entries) < giteaPage {
		entries = append(entries, entries[0])
	}
	_ = json.NewEncoder(w).Encode(entries) // the client may have gone
}
