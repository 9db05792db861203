package controllers

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// durationFields are where kinds have durations. The API of Flux decodes them
// into numbers, so that 60s comes back as 1m0s: manifests are compared as
// text, and one duration has to have one spelling.
var durationFields = []string{
	"spec.interval", "spec.timeout", "spec.retryInterval",
	"spec.chart.spec.interval",
	"spec.install.timeout", "spec.install.strategy.retryInterval",
	"spec.upgrade.timeout", "spec.upgrade.strategy.retryInterval",
	"spec.rollback.timeout", "spec.test.timeout", "spec.uninstall.timeout",
}

// secretFields are where kinds refer to Secrets of their own namespace.
var secretFields = []string{
	"spec.secretRef", "spec.certSecretRef", "spec.proxySecretRef",
	"spec.sts.secretRef", "spec.sts.certSecretRef",
	"spec.verify.secretRef", "spec.verify.trustedRootSecretRef", "spec.chart.spec.verify.secretRef",
	"spec.kubeConfig.secretRef", "spec.decryption.secretRef", "spec.git.commit.signingKey.secretRef",
}

// unsaidFields are false wherever nobody has said otherwise: the server fills
// them in, or resume leaves them behind. The API of Flux leaves them out.
var unsaidFields = []string{"spec.suspend", "spec.force", "spec.postBuild.substituteFrom[].optional"}

// valueFields are where kinds list Secrets and ConfigMaps to take values from.
var valueFields = []string{"spec.valuesFrom", "spec.postBuild.substituteFrom"}

// DurationFields returns the dotted paths of all durations in specs.
func DurationFields() []string { return slices.Clone(durationFields) }

// SecretFields returns the dotted paths of all references to Secrets, lists
// with a trailing "[]".
func SecretFields() []string {
	fields := slices.Clone(secretFields)
	for _, f := range valueFields {
		fields = append(fields, f+"[]")
	}
	return fields
}

// Manifest returns what of an object a user would write down: all but the
// status and what the server and tools note in the metadata. Fields that this
// version does not know are kept. The object itself stays as it is, but the
// manifest shares the parts that are equal.
func Manifest(o Object) Object {
	m := Object{}
	for key, value := range o {
		if key != "status" && key != "metadata" {
			m[key] = value
		}
	}
	m["metadata"] = manifestMetadata(o)
	for _, field := range durationFields {
		m = rewritten(m, strings.Split(field, "."), spelled)
	}
	for _, field := range unsaidFields {
		m = rewritten(m, strings.Split(field, "."), said)
	}
	return m
}

func manifestMetadata(o Object) Object {
	from, _ := o["metadata"].(Object)
	meta := Object{}
	for _, key := range []string{"name", "namespace", "labels"} {
		if value, ok := from[key]; ok {
			meta[key] = value
		}
	}
	annotations, _ := from["annotations"].(Object)
	kept := Object{}
	for key, value := range annotations {
		// Requests to reconcile are over once they are made.
		if key != "kubectl.kubernetes.io/last-applied-configuration" && !strings.HasPrefix(key, "reconcile.fluxcd.io/") {
			kept[key] = value
		}
	}
	if len(kept) > 0 {
		meta["annotations"] = kept
	}
	return meta
}

// rewritten returns the object with a field changed, or taken away where
// change returns nil. Maps and lists on the way are copied, so that the
// original stays as it is.
func rewritten(o Object, steps []string, change func(any) any) Object {
	name, each := strings.CutSuffix(steps[0], "[]")
	old, ok := o[name]
	if !ok {
		return o
	}
	o = maps.Clone(o)
	switch value := old.(type) {
	case Object:
		if len(steps) > 1 {
			o[name] = rewritten(value, steps[1:], change)
		}
		return o
	case []any:
		if each {
			list := slices.Clone(value)
			for i, item := range list {
				if m, ok := item.(Object); ok {
					list[i] = rewritten(m, steps[1:], change)
				}
			}
			o[name] = list
		}
		return o
	}
	if len(steps) > 1 {
		return o
	}
	if o[name] = change(old); o[name] == nil {
		delete(o, name)
	}
	return o
}

// spelled is a duration as Kubernetes spells it; other values stay.
func spelled(value any) any {
	text, _ := value.(string)
	d, err := time.ParseDuration(text)
	if err != nil {
		return value
	}
	return d.String()
}

// said is nothing for false.
func said(value any) any {
	if value == false {
		return nil
	}
	return value
}

// SecretRef is a reference of an object to a Secret of its namespace.
type SecretRef struct {
	Name string
	// Field is where the object has it.
	Field string
	// Optional says that the object is complete without the Secret.
	Optional bool
}

// SecretsOf returns the Secrets that an object refers to, in the order of the
// table of fields.
func SecretsOf(o Object) []SecretRef {
	var refs []SecretRef
	for _, field := range secretFields {
		if name := (Path{field + ".name"}).String(o); name != "" {
			refs = append(refs, SecretRef{Name: name, Field: field})
		}
	}
	for _, field := range valueFields {
		v, _ := Path{field}.Lookup(o)
		list, _ := v.([]any)
		for _, item := range list {
			m, _ := item.(Object)
			if (Path{"kind"}).String(m) == "Secret" {
				refs = append(refs, SecretRef{Path{"name"}.String(m), field, Path{"optional"}.String(m) == "true"})
			}
		}
	}
	return refs
}
