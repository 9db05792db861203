// Package replay serves a recording of a cluster as a read-only Kubernetes API on loopback.
package replay

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/recording"
)

// Recording is a recording in memory.
type Recording struct {
	recording.Header
	// Unknown describes data that could not be recorded.
	Unknown []string

	documents map[string]recording.Document
	groups    []apidiscovery.APIGroupDiscovery
	lists     map[string][]*list
	logs      []recording.Log
}

// list holds the recorded objects of a resource, sorted as by the API server.
type list struct {
	recording.List
	items []item
}

// item is a recorded object.
type item struct {
	id     string
	labels map[string]string
	raw    json.RawMessage
}

// Open reads a recording.
func Open(r io.Reader) (*Recording, error) {
	rec := &Recording{documents: map[string]recording.Document{}, lists: map[string][]*list{}}
	var items []item
	var err error
	rec.Header, err = recording.Read(r, func(l recording.Raw) error {
		switch {
		case l.Object != nil:
			it, err := newItem(l.Object)
			items = append(items, it)
			return err
		case l.List != nil:
			rec.add(*l.List, items)
			items = nil
		case l.Document != nil:
			return rec.document(*l.Document)
		case l.Log != nil:
			rec.logs = append(rec.logs, *l.Log)
		default:
			rec.Unknown = l.End.Unknown
		}
		return nil
	})
	if err == nil && len(items) > 0 {
		err = errors.New("the recording contains objects outside of a list")
	}
	return rec, err
}

func newItem(raw json.RawMessage) (item, error) {
	var o struct {
		Metadata struct {
			Namespace, Name string
			Labels          map[string]string
		}
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return item{}, err
	}
	if o.Metadata.Name == "" {
		return item{}, errors.New("object without a name")
	}
	return item{id: o.Metadata.Namespace + "/" + o.Metadata.Name, labels: o.Metadata.Labels, raw: slices.Clone(raw)}, nil
}

func (r *Recording) add(l recording.List, items []item) {
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(a.id, b.id) })
	at := l.Group + "/" + l.Resource
	r.lists[at] = append(r.lists[at], &list{l, items})
}

func (r *Recording) document(d recording.Document) error {
	d.Body = slices.Clone(d.Body)
	r.documents[d.Path] = d
	if d.Path != "/api" && d.Path != "/apis" || d.Error != nil {
		return nil
	}
	groups, err := kube.ResourceTypes(d.Body)
	if err != nil {
		return err
	}
	r.groups = append(r.groups, groups...)
	return nil
}

// served reports whether the recorded cluster serves a resource. It returns true if that is unknown.
func (r *Recording) served(group, version, resource string) bool {
	root := "/apis"
	if group == "" {
		root = "/api"
	}
	if d, ok := r.documents[root]; !ok || d.Error != nil {
		return true
	}
	for _, g := range r.groups {
		for _, v := range g.Versions {
			is := func(served apidiscovery.APIResourceDiscovery) bool { return served.Resource == resource }
			if g.Name == group && v.Version == version && slices.ContainsFunc(v.Resources, is) {
				return true
			}
		}
	}
	return false
}

// find returns the list with the objects of a resource in a namespace, "" for all namespaces. It
// prefers the version that was recorded.
func (r *Recording) find(q query) (*list, *failure) {
	lists := r.lists[q.group+"/"+q.resource]
	var found *list
	for _, l := range lists {
		if l.Namespace != "" && l.Namespace != q.namespace {
			continue
		}
		if found == nil || l.Version == q.version && found.Version != q.version || l.Version == found.Version && found.Namespace == "" {
			found = l
		}
	}
	switch {
	case len(lists) == 0:
		return nil, notRecorded("%s are not in the recording", q.resource)
	case found == nil && len(r.Namespaces) > 0:
		return nil, forbidden(fmt.Sprintf("%s is forbidden: the recording only contains the namespaces %s", q.name(), strings.Join(r.Namespaces, " and ")))
	case found == nil:
		return nil, notRecorded("%s are in the recording only for namespace %q", q.resource, lists[0].Namespace)
	case found.Error != nil:
		return nil, &failure{*found.Error}
	case found.Version != q.version && !strings.Contains(q.group, "."):
		return nil, notRecorded("%s are in the recording only in version %s", q.resource, found.Version)
	}
	return found, nil
}
