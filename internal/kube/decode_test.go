package kube_test

import (
	"encoding/json"
	"net/http"
	"testing"
)

func decode(t *testing.T, r *http.Request, into any) {
	t.Helper()
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		t.Errorf("reading a request: %v", err)
	}
}
