package hostile_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxkit/flux/pkg/controllers"
)

// cluster contains objects that a real API server does not store because of their size, by collection.
type cluster map[string][]map[string]any

// apiServer serves lists and objects of a cluster, and no watches; other requests are not found.
type apiServer map[string][]encoded

// encoded is an object in JSON, which requires less memory than the object.
type encoded struct {
	name, namespace string
	text            json.RawMessage
}

// object is a Flux object in the namespace apps.
func object(group, version, kind, name string, fields map[string]any) map[string]any {
	o := map[string]any{"apiVersion": group + "/" + version, "kind": kind, "metadata": map[string]any{"name": name, "namespace": "apps", "uid": name, "resourceVersion": "1", "generation": 1}}
	for field, value := range fields {
		o[field] = value
	}
	return o
}

// ServeHTTP implements http.Handler.
func (s apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	collection, namespace := r.URL.Path, ""
	if before, after, ok := strings.Cut(collection, "/namespaces/"); ok {
		var resource string
		namespace, resource, _ = strings.Cut(after, "/")
		collection = before + "/" + resource
	}
	name, named := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	objects, list := s[collection]
	if !list {
		at := strings.LastIndexByte(collection, '/')
		collection, name, named = collection[:at], collection[at+1:], true
		objects = s[collection]
	}
	items := []json.RawMessage{}
	for _, o := range objects {
		if (!named || o.name == name) && (namespace == "" || o.namespace == namespace) {
			items = append(items, o.text)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Query().Get("watch") == "true":
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	case list:
		_, _ = io.WriteString(w, `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`)
		for i, item := range items {
			if i > 0 {
				_, _ = io.WriteString(w, ",")
			}
			_, _ = w.Write(item)
		}
		_, _ = io.WriteString(w, "]}")
	case len(items) == 1:
		_, _ = w.Write(items[0])
	case strings.HasPrefix(r.URL.Path, "/apis/"+controllers.OperatorGroup+"/"):
		http.NotFound(w, r) // as for a group that is not served
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"%s not found"}`, r.URL.Path)
	}
}

// kubeconfig serves the cluster until the end of the test, and returns a kubeconfig for it. The
// cluster also has the collections that a diagnosis reads.
func (c cluster) kubeconfig(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(c.served(t))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	file := filepath.Join(t.TempDir(), "kubeconfig")
	write(t, file, "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: '"+server.URL+"'}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\nusers: [{name: u, user: {}}]\n")
	return file
}

// served returns a server of the cluster, which then has no objects itself.
func (c cluster) served(t *testing.T) apiServer {
	t.Helper()
	s := apiServer{"/api/v1/pods": nil, "/api/v1/events": nil, "/api/v1/configmaps": nil, "/api/v1/secrets": nil, "/apis/apps/v1/deployments": nil}
	for _, k := range controllers.Kinds {
		s["/apis/"+k.Group+"/"+k.Version+"/"+k.Resource] = nil
	}
	for collection, objects := range c {
		for i, o := range objects {
			text, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			s[collection] = append(s[collection], encoded{controllers.Name(o), controllers.Namespace(o), text})
			objects[i] = nil
		}
	}
	return s
}

// applied returns a Kustomization with an inventory and a Ready condition.
func applied(name, status, message string, more map[string]any) map[string]any {
	fields := map[string]any{"observedGeneration": 1, "lastAppliedRevision": "main@sha1:1", "conditions": []any{map[string]any{
		"type": "Ready", "status": status, "reason": "ReconciliationFailed", "message": message, "observedGeneration": 1, "lastTransitionTime": "2026-11-01T10:00:00Z",
	}}}
	maps.Copy(fields, more)
	spec := map[string]any{"interval": "1m", "prune": true, "path": "./", "sourceRef": map[string]any{"kind": "GitRepository", "name": "app"}}
	if needs, ok := fields["dependsOn"]; ok {
		spec["dependsOn"] = needs
		delete(fields, "dependsOn")
	}
	return object("kustomize.toolkit.fluxcd.io", "v1", "Kustomization", name, map[string]any{"spec": spec, "status": fields})
}

// inventory returns 10^5 entries.
func inventory(id string) map[string]any {
	entries := make([]any, 100_000)
	for i := range entries {
		entries[i] = map[string]any{"id": strings.ReplaceAll(id, "N", fmt.Sprint(i)), "v": "v1"}
	}
	return map[string]any{"inventory": map[string]any{"entries": entries}}
}

// several returns a field with a list of 10^5 objects.
func several(field string, one func(i int) map[string]any) func() map[string]any {
	return func() map[string]any {
		all := make([]any, 100_000)
		for i := range all {
			all[i] = one(i)
		}
		return map[string]any{field: all}
	}
}

// repository returns a GitRepository that is ready.
func repository() map[string]any {
	return object("source.toolkit.fluxcd.io", "v1", "GitRepository", "app", map[string]any{
		"spec": map[string]any{"interval": "1m", "url": "https://example.com/app"},
		"status": map[string]any{"observedGeneration": 1, "conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "Succeeded", "message": "x", "observedGeneration": 1, "lastTransitionTime": "2026-11-01T10:00:00Z",
		}}},
	})
}

// dependent returns 20,000 Kustomizations that are not ready and wait for others.
func dependent(needs func(i int) []int) func() cluster {
	return func() cluster { return dependents(needs) }
}

func dependents(needs func(i int) []int) cluster {
	c := cluster{gitRepositories: {repository()}}
	for i := range 20_000 {
		dependsOn := []any{}
		for _, n := range needs(i) {
			dependsOn = append(dependsOn, map[string]any{"name": fmt.Sprint("k", n)})
		}
		c[kustomizations] = append(c[kustomizations], applied(fmt.Sprint("k", i), "False", "x", map[string]any{"dependsOn": dependsOn}))
	}
	return c
}

const (
	kustomizations  = "/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations"
	gitRepositories = "/apis/source.toolkit.fluxcd.io/v1/gitrepositories"
)

// clusters lists commands on objects of a cluster.
func clusters() []other {
	with := func(status, message string, more func() map[string]any) func() cluster {
		return func() cluster {
			return cluster{kustomizations: {applied("app", status, message, more())}, gitRepositories: {repository()}}
		}
	}
	none := func() map[string]any { return nil }
	entries := func(id string) func() map[string]any { return func() map[string]any { return inventory(id) } }
	objects, kinds, namespaces := entries("apps_cN__ConfigMap"), entries("apps_c_gN.example.com_KindN"), entries("nsN_c__ConfigMap")
	own := entries("nsN_c_example.com_Widget")
	large := func(text string) string { return strings.Repeat(text, (1<<20)/len(text)) }
	conditions := several("conditions", func(i int) map[string]any {
		return map[string]any{"type": fmt.Sprint("T", i), "status": "True", "reason": "x", "message": "m", "lastTransitionTime": "2026-11-01T10:00:00Z"}
	})
	history := several("history", func(i int) map[string]any {
		return map[string]any{"digest": fmt.Sprint("sha256:", i), "firstReconciled": "2026-11-01T10:00:00Z", "lastReconciled": "2026-11-01T10:00:00Z", "lastReconciledStatus": "ReconciliationSucceeded", "totalReconciliations": 1}
	})
	needs := several("dependsOn", func(i int) map[string]any { return map[string]any{"name": fmt.Sprint("other", i)} })
	next := func(i int) []int { return []int{(i + 1) % 20_000} }
	policy := func() cluster {
		return cluster{"/apis/image.toolkit.fluxcd.io/v1/imagepolicies": {object("image.toolkit.fluxcd.io", "v1", "ImagePolicy", "app", map[string]any{
			"spec":   map[string]any{"imageRepositoryRef": map[string]any{"name": "app"}, "filterTags": map[string]any{"pattern": large("(a*)*")}, "policy": map[string]any{"semver": map[string]any{"range": large("1 || ")}}},
			"status": map[string]any{"observedGeneration": 1, "conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": "InvalidPolicy", "message": large("1 || "), "lastTransitionTime": "2026-11-01T10:00:00Z"}}},
		})}}
	}
	row := func(name string, c func() cluster, line, want, prints string, exit int) other {
		return other{row{name: name, want: want, exit: exit, cluster: c, stdout: prints}, strings.Fields(line)}
	}
	return []other{
		row("tree, an inventory of 10^5 entries", with("True", "ok", objects), "tree ks app", "", "ConfigMap/apps/c99999", 0),
		row("the same with the status of each", with("True", "ok", objects), "tree ks app -o wide", "", "ConfigMap/apps/c99999", 0),
		row("the same in 10^5 namespaces", with("True", "ok", namespaces), "tree ks app -o json", "", `"ns99999"`, 0),
		row("tree, an inventory of 10^5 kinds", with("True", "ok", kinds), "tree ks app", "Kustomization/apps/app: its objects have more than 2000 kinds", "", 0),
		row("tree, custom resources in 10^5 namespaces", with("True", "ok", own), "tree ks app", "Kustomization/apps/app: reading its objects requires more than 200000 lists", "", 0),
		row("why, an inventory of 10^5 entries", with("True", "ok", objects), "why ks/app", "", "its inventory missing", 1),
		row("why, an inventory of 10^5 kinds", with("True", "ok", kinds), "why ks/app", "", "99988 more kinds in the inventory", 2),
		row("why, a message of one MiB", with("False", large("failed to x: "), none), "why ks/app", "", "failed to x", 1),
		row("the same with quotes", with("False", large(`"`), none), "why ks/app", "", `"`, 1),
		row("the same with escape sequences", with("False", large("\x1b[2J"), none), "why ks/app", "", `\x1b[2J`, 1),
		row("the same with many lines", with("False", large("dry-run failed: x\n"), none), "why ks/app", "", "dry-run failed", 1),
		row("status, 10^5 conditions", with("True", "ok", conditions), "status ks/app", "", "", 1),
		nightly(row("debug, 10^5 entries of history", with("True", "ok", history), "debug ks app --show-history", "", "sha256:99999", 0)),
		nightly(row("why, 10^5 dependencies", with("False", "x", needs), "why ks/app", "", "ReconciliationFailed: x", 1)),
		row("deps, 20,000 Kustomizations that wait for one another", dependent(next), "deps", "circular dependency", "", 0),
		row("deps, 20,000 Kustomizations with as many cycles", dependent(func(i int) []int { return []int{(i + 1) % 20_000, 0} }), "deps", "only the first 100 are listed", "", 0),
		nightly(row("deps, 10,000 Kustomizations that wait for 10,000", dependent(func(i int) []int {
			switch {
			case i < 10_000:
				return []int{19_999}
			case i == 19_999:
				var all []int
				for n := range 9_999 {
					all = append(all, 10_000+n)
				}
				return all
			}
			return nil
		}), "deps -o json", "", `"moreBlockers": true`, 0)),
		row("why, 20,000 Kustomizations that wait for one another", dependent(next), "why", "", "k0", 1),
		row("why, an ImagePolicy with a range and an expression of one MiB", policy, "why imagepolicy/app", "", "1 || 1", 1),
		row("get, an ImagePolicy with a message of one MiB", policy, "get image policy", "", "1 || 1", 0),
	}
}
