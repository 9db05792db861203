package testopenapi

import (
	"bytes"
	"io"
	"net/http"
)

// Transport compares the requests of a client to a real host with a description.
type Transport struct {
	Next        http.RoundTripper
	Description *Description
	// Report is called with the differences.
	Report func(error)
}

// RoundTrip implements http.RoundTripper.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := r.Clone(r.Context())
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		sent.Body = io.NopCloser(bytes.NewReader(body))
	}
	response, err := t.Next.RoundTrip(sent)
	if err != nil {
		return nil, err
	}
	if err := t.Description.CheckRequest(r, body, response); err != nil {
		t.Report(err)
	}
	return response, nil
}
