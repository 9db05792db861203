package controllers

import (
	"slices"
	"strings"
)

// Extension returns a row for a kind of a project that extends Flux, from its CustomResourceDefinition. Such kinds follow the
// conventions of the GitOps Toolkit, and their schema declares which of its fields they have. Extension returns false for kinds of
// the catalog, cluster-scoped kinds and kinds without conditions.
func Extension(crd Object) (Kind, bool) {
	field := func(name string) string { return Path{"spec." + name}.String(crd) }
	group, kind, plural := field("group"), field("names.kind"), field("names.plural")
	version, schema := storedVersion(crd)
	has := func(path string) bool { return declares(schema, path) }
	if version == "" || field("scope") != "Namespaced" || !has("status.conditions") {
		return Kind{}, false
	}
	if _, known := KindOf(group, kind); known {
		return Kind{}, false
	}
	k := Kind{
		Group: group, Version: version, Kind: kind, Resource: plural, Plural: plural, Verbs: Get | Export,
		Word: field("names.singular"), Done: "reconciled",
	}
	if k.Word == "" {
		k.Word = strings.ToLower(kind)
	}
	if short := (Path{"spec.names.shortNames"}).Strings(crd); len(short) > 0 && len(KindsNamed(short[0])) == 0 {
		k.Short = short[0]
	}
	for _, status := range []string{"status.lastAppliedRevision", "status.lastAttemptedRevision", "status.artifact.revision"} {
		if has(status) {
			k.Result, k.Done = append(k.Result, status), "applied revision %s"
		}
	}
	if len(k.Result) > 0 {
		k.Columns = append(k.Columns, revision(k.Result))
	}
	if has("spec.suspend") {
		k.Verbs |= Suspend | Resume
		k.Suspension = Suspension{Field: Path{"spec.suspend"}}
		k.Columns = append(k.Columns, suspended)
	}
	if has("status.lastHandledReconcileAt") {
		k.Verbs |= Reconcile
	}
	if entries, _ := schemaOf(schema, "status.inventory.entries"); declares(entries["items"], "id") { // entries of Terraform have another format
		k.Inventory, k.Verbs = Path{inventory}, k.Verbs|Tree
	}
	if has("spec.sourceRef") {
		k.Source = &Ref{Relation: "source", Path: Path{"spec.sourceRef"}, Kinds: []string{GitRepository, OCIRepository, Bucket}, CrossNamespace: true}
	}
	if has("spec.dependsOn") {
		k.Refs = []Ref{{Relation: "dependency", Path: Path{"spec.dependsOn[]"}, Kinds: []string{kind}, CrossNamespace: true}}
	}
	return k, true
}

// storedVersion returns the served version that the cluster stores, or else another served one, and its schema.
func storedVersion(crd Object) (name string, schema any) {
	v, _ := Path{"spec.versions"}.Lookup(crd)
	versions, _ := v.([]any)
	stored := func(version any) bool { return yes(version, "storage") }
	versions = slices.DeleteFunc(slices.Clone(versions), func(version any) bool { return !yes(version, "served") })
	if len(versions) == 0 {
		return "", nil
	}
	o, _ := versions[max(0, slices.IndexFunc(versions, stored))].(Object)
	schema, _ = Path{"schema.openAPIV3Schema"}.Lookup(o)
	return Path{"name"}.String(o), schema
}

func yes(o any, field string) bool {
	object, _ := o.(Object)
	return Path{field}.String(object) == "true"
}

// declares reports whether an OpenAPI schema declares a field.
func declares(schema any, path string) bool {
	_, ok := schemaOf(schema, path)
	return ok
}

// schemaOf returns the schema of a field.
func schemaOf(schema any, path string) (Object, bool) {
	o, _ := schema.(Object)
	for _, name := range strings.Split(path, ".") {
		properties, _ := o["properties"].(Object)
		o, _ = properties[name].(Object)
	}
	return o, o != nil
}
