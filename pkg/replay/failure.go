package replay

import (
	"encoding/json"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// failure is the response to a request that fails.
type failure struct{ metav1.Status }

func failed(code int32, reason metav1.StatusReason, message string) *failure {
	return &failure{metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

// notRecorded is the response for objects that may exist in the cluster. It is neither "not
// found", which would mean that they do not exist, nor a server error, which clients retry.
func notRecorded(format string, args ...any) *failure {
	return failed(http.StatusBadRequest, metav1.StatusReasonBadRequest, fmt.Sprintf(format, args...))
}

func forbidden(message string) *failure {
	return failed(http.StatusForbidden, metav1.StatusReasonForbidden, message)
}

func readOnly() *failure {
	return failed(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "the cluster is a read-only recording")
}

func (f *failure) write(w http.ResponseWriter) {
	f.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	writeJSON(w, int(f.Code), f.Status)
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // fails only if the client has disconnected
}
