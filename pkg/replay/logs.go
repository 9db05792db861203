package replay

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/kube/recording"
)

// serveBelow serves container logs. Other subresources require the cluster.
func (r *Recording) serveBelow(w http.ResponseWriter, request *http.Request, q query) *failure {
	if q.resource != "pods" || q.below != "log" {
		return notRecorded("the %s of %s is not in the recording", q.below, q.resource)
	}
	values := request.URL.Query()
	previous := values.Get("previous") == "true"
	i := slices.IndexFunc(r.logs, func(l recording.Log) bool {
		return l.Namespace == q.namespace && l.Pod == q.object && l.Container == values.Get("container") && l.Previous == previous
	})
	switch {
	case i < 0:
		return notRecorded("the log of container %q in pod %q is not in the recording", values.Get("container"), q.object)
	case r.logs[i].Error != nil:
		return &failure{*r.logs[i].Error}
	}
	text, cut := r.excerpt(r.logs[i], request)
	if cut {
		w.Header().Add("Warning", `299 - "the recording only contains the end of the log of pod `+q.object+`"`)
	}
	w.Header().Set("Content-Type", "text/plain")
	_, _ = w.Write([]byte(text)) // fails only if the client has disconnected
	if values.Get("follow") == "true" {
		_ = http.NewResponseController(w).Flush()
		<-request.Context().Done()
	}
	return nil
}

// excerpt returns the lines of a log that a request selects, and whether some of them were not recorded.
func (r *Recording) excerpt(l recording.Log, request *http.Request) (text string, cut bool) {
	values := request.URL.Query()
	lines := slices.Collect(strings.Lines(l.Text))
	if since, limited := r.since(request); limited {
		all := len(lines)
		lines = slices.DeleteFunc(lines, func(line string) bool {
			stamp, _, _ := strings.Cut(line, " ")
			at, err := time.Parse(time.RFC3339Nano, stamp)
			return err == nil && at.Before(since)
		})
		l.Cut = l.Cut && len(lines) == all
	}
	if n, err := strconv.Atoi(values.Get("tailLines")); err == nil && n >= 0 && n <= len(lines) {
		lines, l.Cut = lines[len(lines)-n:], false
	}
	if values.Get("timestamps") != "true" {
		for i, line := range lines {
			_, lines[i], _ = strings.Cut(line, " ")
		}
	}
	text = strings.Join(lines, "")
	if n, err := strconv.Atoi(values.Get("limitBytes")); err == nil && n >= 0 && n < len(text) {
		text = text[:n]
	}
	return text, l.Cut
}

// since returns the time from which lines are requested. Seconds count from the recording.
func (r *Recording) since(request *http.Request) (time.Time, bool) {
	values := request.URL.Query()
	if at, err := time.Parse(time.RFC3339, values.Get("sinceTime")); err == nil {
		return at, true
	}
	seconds, err := strconv.ParseInt(values.Get("sinceSeconds"), 10, 32)
	return r.Time.Add(-time.Duration(seconds) * time.Second), err == nil
}
