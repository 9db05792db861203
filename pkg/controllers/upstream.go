package controllers

import "strings"

// Upstream returns what an object takes its content from, one step up: the
// HelmChart of a HelmRelease and not the repository behind it, the scan behind
// an ImagePolicy. It is nil where there is nothing above.
func (k Kind) Upstream(o Object) []Target {
	if k.Kind == "HelmRelease" {
		if chart, ok := chartOf(o); ok {
			return []Target{chart}
		}
	}
	if k.Source != nil {
		return k.Source.Targets(o)
	}
	if r, ok := k.imageRef(); ok {
		return r.Targets(o)
	}
	return nil
}

// HasUpstream tells whether objects of the kind take their content from others.
func (k Kind) HasUpstream() bool {
	_, image := k.imageRef()
	return k.Source != nil || image
}

func (k Kind) imageRef() (Ref, bool) {
	for _, r := range k.Refs {
		if r.Relation == "image" {
			return r, true
		}
	}
	return Ref{}, false
}

// chartOf returns the HelmChart that helm-controller makes of a release's
// spec.chart: in the namespace of the source, named after the release.
func chartOf(o Object) (Target, bool) {
	if _, ok := (Path{"spec.chart.spec"}).Lookup(o); !ok {
		return Target{}, false
	}
	if namespace, name, ok := strings.Cut(Path{"status.helmChart"}.String(o), "/"); ok {
		return Target{Kind: "HelmChart", Namespace: namespace, Name: name}, true
	}
	namespace := Path{"spec.chart.spec.sourceRef.namespace"}.String(o)
	if namespace == "" {
		namespace = Namespace(o)
	}
	return Target{Kind: "HelmChart", Namespace: namespace, Name: Namespace(o) + "-" + Name(o)}, true
}

// DependenciesOf returns the objects that an object waits for by spec.dependsOn.
func (k Kind) DependenciesOf(o Object) []Target {
	for _, r := range k.Refs {
		if r.Relation == "dependency" {
			return r.Targets(o)
		}
	}
	return nil
}

// Managed returns the objects that an object has applied, as its inventory
// names them: <namespace>_<name>_<group>_<kind>, a colon in the name written
// as two underscores.
func (k Kind) Managed(o Object) []Target {
	list, _ := Path{inventory}.Lookup(o)
	entries, _ := list.([]any)
	var targets []Target
	for _, entry := range entries {
		m, _ := entry.(map[string]any)
		if t, ok := managed(Path{"id"}.String(m), Path{"v"}.String(m)); ok {
			targets = append(targets, t)
		}
	}
	return targets
}

func managed(id, version string) (Target, bool) {
	namespace, rest, ok := strings.Cut(id, "_")
	kindAt := strings.LastIndexByte(rest, '_')
	if !ok || kindAt < 0 {
		return Target{}, false
	}
	rest, kind := rest[:kindAt], rest[kindAt+1:]
	groupAt := strings.LastIndexByte(rest, '_')
	if groupAt < 0 {
		return Target{}, false
	}
	name, group := rest[:groupAt], rest[groupAt+1:]
	if group != "" {
		version = group + "/" + version
	}
	return Target{APIVersion: version, Kind: kind, Namespace: namespace, Name: strings.ReplaceAll(name, "__", ":")}, true
}

// RetriesExhausted reports whether helm-controller has given a release up until
// its spec changes or its failures are forgotten. Controllers before v1.0 say so
// in the message alone.
func RetriesExhausted(o Object) bool {
	if c, ok := FindCondition(o, "Stalled"); ok && c.Status == "True" && (c.Reason == "RetriesExceeded" || c.Reason == "MissingRollbackTarget") {
		return true
	}
	c, ok := FindCondition(o, "Ready")
	return ok && c.Status == "False" && (c.Message == "install retries exhausted" || c.Message == "upgrade retries exhausted")
}
