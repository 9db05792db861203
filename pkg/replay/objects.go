package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/fluxkit/flux/pkg/controllers"
)

// query is a request for an object, a list or a watch.
type query struct {
	group, version, resource string
	namespace, object        string
	below                    string // the subresource
	labels                   labels.Selector
	fields                   fields.Selector
	// metadata is true if only the metadata is requested.
	metadata bool
}

// newQuery parses the path below an API version: RESOURCE/NAME or
// namespaces/NAMESPACE/RESOURCE/NAME.
func newQuery(request *http.Request, group, version string, rest []string) (query, bool) {
	q := query{group: group, version: version, labels: labels.Everything(), fields: fields.Everything()}
	if rest[0] == "namespaces" && len(rest) > 2 && rest[2] != "status" {
		q.namespace, rest = rest[1], rest[2:]
	}
	q.resource = rest[0]
	for i, to := range []*string{&q.object, &q.below} {
		if len(rest) > i+1 {
			*to = rest[i+1]
		}
	}
	q.metadata = strings.Contains(request.Header.Get("Accept"), "as=PartialObjectMetadata")
	var err error
	values := request.URL.Query()
	if text := values.Get("labelSelector"); text != "" {
		q.labels, err = labels.Parse(text)
	}
	if text := values.Get("fieldSelector"); text != "" && err == nil {
		q.fields, err = fields.ParseSelector(text)
	}
	return q, err == nil && len(rest) <= 3
}

// name returns the resource with its group, as in errors of the API server.
func (q query) name() string { return strings.TrimSuffix(q.resource+"."+q.group, ".") }

func (r *Recording) serveObjects(w http.ResponseWriter, request *http.Request, q query) *failure {
	if q.below != "" {
		return r.serveBelow(w, request, q)
	}
	l, f := r.find(q)
	if f != nil {
		return f
	}
	r.warn(w, q)
	switch {
	case q.object != "":
		return l.get(w, q)
	case request.URL.Query().Get("watch") == "true" || request.URL.Query().Get("watch") == "1":
		return hold(w, request)
	}
	return l.list(w, q)
}

// hold keeps a watch open: nothing changes in a recording.
func hold(w http.ResponseWriter, request *http.Request) *failure {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush() // fails only if the client has disconnected
	var timeout <-chan time.Time
	if seconds, err := time.ParseDuration(request.URL.Query().Get("timeoutSeconds") + "s"); err == nil {
		timer := time.NewTimer(seconds)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-request.Context().Done():
	case <-timeout:
	}
	return nil
}

// index returns the index of an object.
func (l *list) index(id string) (int, bool) {
	return slices.BinarySearchFunc(l.items, id, func(it item, id string) int { return strings.Compare(it.id, id) })
}

// absent returns the response for an object that is not in the list: not found, unless its
// existence is unknown.
func (l *list) absent(q query, id string) *failure {
	if l.Part && !slices.Contains(l.Absent, id) {
		return notRecorded("%s %q is not in the recording, which only contains %s applied by Flux", q.name(), q.object, q.resource)
	}
	f := failed(http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("%s %q not found", q.name(), q.object))
	f.Details = &metav1.StatusDetails{Name: q.object, Group: q.group, Kind: q.resource}
	return f
}

func (l *list) get(w http.ResponseWriter, q query) *failure {
	id := q.namespace + "/" + q.object
	i, ok := l.index(id)
	switch {
	case !ok:
		return l.absent(q, id)
	case l.MetadataOnly && !q.metadata:
		return notRecorded("the content of %s %q is not in the recording", q.name(), q.object)
	}
	body, err := l.render(l.items[i], q)
	if err != nil {
		return failed(http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // fails only if the client has disconnected
	return nil
}

// known returns a failure unless the recording contains all objects that a query selects.
func (l *list) known(q query) *failure {
	if !l.Part {
		return nil
	}
	if name, is := q.fields.RequiresExactMatch("metadata.name"); is {
		id := q.namespace + "/" + name
		if _, ok := l.index(id); ok {
			return nil
		}
		q.object = name
		if f := l.absent(q, id); f.Code != http.StatusNotFound {
			return f
		}
		return nil
	}
	requirements, _ := q.labels.Requirements()
	if len(requirements) == 0 {
		return nil // the list contains the objects that Flux applies
	}
	if slices.ContainsFunc(requirements, l.covers) {
		return nil
	}
	return notRecorded("%s with the labels %q are not in the recording, which only contains %s applied by Flux", q.name(), q.labels, q.resource)
}

// covers reports whether all objects that match a requirement are recorded.
func (l *list) covers(r labels.Requirement) bool {
	if !slices.Contains([]selection.Operator{selection.In, selection.Equals, selection.DoubleEquals, selection.Exists}, r.Operator()) {
		return false
	}
	return slices.ContainsFunc(l.Selectors, func(recorded string) bool {
		key, value, equal := strings.Cut(recorded, "=")
		return r.Key() == key && (!equal || r.Operator() != selection.Exists && r.Values().Len() == 1 && r.Values().Has(value))
	})
}

func (l *list) list(w http.ResponseWriter, q query) *failure {
	if f := l.known(q); f != nil {
		return f
	}
	var b bytes.Buffer
	kind, apiVersion := l.Kind+"List", strings.TrimPrefix(q.group+"/"+q.version, "/")
	if q.metadata {
		kind, apiVersion = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	fmt.Fprintf(&b, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":%q},"items":[`, kind, apiVersion, l.ResourceVersion)
	first := true
	for _, it := range l.items {
		if !l.matches(it, q) {
			continue
		}
		body, err := l.render(it, q)
		if err != nil {
			return failed(http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error())
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		b.Write(body)
	}
	b.WriteString("]}\n")
	w.Header().Set("Content-Type", "application/json")
	_, _ = b.WriteTo(w) // fails only if the client has disconnected
	return nil
}

func (l *list) matches(it item, q query) bool {
	namespace, name, _ := strings.Cut(it.id, "/")
	if q.namespace != "" && namespace != q.namespace || !q.labels.Matches(labels.Set(it.labels)) {
		return false
	}
	var o controllers.Object
	for _, term := range q.fields.Requirements() {
		value := name
		switch term.Field {
		case "metadata.name":
		case "metadata.namespace":
			value = namespace
		default:
			if o == nil && json.Unmarshal(it.raw, &o) != nil {
				return false
			}
			value = controllers.Path{term.Field}.String(o)
		}
		if value == term.Value != (term.Operator != selection.NotEquals) {
			return false
		}
	}
	return true
}

// render returns an object in the requested version. Versions of a custom resource without a
// conversion webhook, such as Flux resources, differ only in their name.
func (l *list) render(it item, q query) ([]byte, error) {
	if l.Version == q.version && !q.metadata {
		return it.raw, nil
	}
	var o controllers.Object
	if err := json.Unmarshal(it.raw, &o); err != nil {
		return nil, err
	}
	if q.metadata {
		o = controllers.Object{"metadata": o["metadata"], "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}
	} else {
		o["apiVersion"] = q.group + "/" + q.version
	}
	return json.Marshal(o)
}
