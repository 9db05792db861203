package controllers

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// durationFields lists the fields of type duration. Flux decodes them into numbers and encodes 60s
// as 1m0s. Manifests are compared as text, so a duration needs a canonical form.
var durationFields = []string{
	"spec.interval", "spec.timeout", "spec.retryInterval",
	"spec.chart.spec.interval",
	"spec.install.timeout", "spec.install.strategy.retryInterval",
	"spec.upgrade.timeout", "spec.upgrade.strategy.retryInterval",
	"spec.rollback.timeout", "spec.test.timeout", "spec.uninstall.timeout",
}

// secretFields lists the references to Secrets in the namespace of the object.
var secretFields = []string{
	"spec.secretRef", "spec.certSecretRef", "spec.proxySecretRef",
	"spec.sts.secretRef", "spec.sts.certSecretRef",
	"spec.verify.secretRef", "spec.verify.trustedRootSecretRef", "spec.chart.spec.verify.secretRef",
	"spec.kubeConfig.secretRef", "spec.decryption.secretRef", "spec.git.commit.signingKey.secretRef",
}

// secretNames lists the fields of a FluxInstance that contain the name of a Secret instead of a reference.
var secretNames = []string{"spec.distribution.imagePullSecret", "spec.distribution.artifactPullSecret", "spec.sync.pullSecret"}

// omittedZero lists the optional fields whose zero value Flux omits from manifests, although the API
// server, resume or a template may have set it.
var omittedZero = []string{"spec.suspend", "spec.force", "spec.postBuild.substituteFrom[].optional", "spec.git.commit.messageTemplate"}

// valueFields lists the fields that reference Secrets and ConfigMaps with values.
var valueFields = []string{"spec.valuesFrom", "spec.postBuild.substituteFrom"}

// Manifest returns the object as a user would write it: without the status and
// without metadata of the API server and of tools. Unknown fields are kept. The
// object is not modified, but the manifest shares unchanged values with it.
func Manifest(o Object) Object {
	m := Object{}
	for key, value := range o {
		if key != "status" && key != "metadata" {
			m[key] = value
		}
	}
	m["metadata"] = manifestMetadata(o)
	for _, field := range durationFields {
		m = rewritten(m, strings.Split(field, "."), canonicalDuration)
	}
	for _, field := range omittedZero {
		m = rewritten(m, strings.Split(field, "."), omitZero)
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
		// Requests to reconcile are not part of the desired state.
		if key != "kubectl.kubernetes.io/last-applied-configuration" && !strings.HasPrefix(key, "reconcile.fluxcd.io/") {
			kept[key] = value
		}
	}
	if len(kept) > 0 {
		meta["annotations"] = kept
	}
	return meta
}

// rewritten returns the object with a field replaced, or removed if change
// returns nil. It copies the maps and lists above the field, so the original is
// not modified.
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

// canonicalDuration returns a duration as Kubernetes formats it, and other
// values unchanged.
func canonicalDuration(value any) any {
	text, _ := value.(string)
	d, err := time.ParseDuration(text)
	if err != nil {
		return value
	}
	return d.String()
}

// omitFalse returns nil for false.
func omitZero(value any) any {
	if value == false || value == "" {
		return nil
	}
	return value
}

// SecretRef is a reference to a Secret in the namespace of the object.
type SecretRef struct {
	Name string
	// Field is the path of the reference.
	Field string
	// Optional is set if the Secret may be missing.
	Optional bool
}

// SecretsOf returns the Secrets that an object references, in the order of secretFields,
// secretNames and valueFields.
func SecretsOf(o Object) []SecretRef {
	var refs []SecretRef
	for _, r := range DataOf(o) {
		if r.Kind == "Secret" {
			refs = append(refs, r.SecretRef)
		}
	}
	return refs
}

// DataRef is a reference to a Secret or ConfigMap in the namespace of the object.
type DataRef struct {
	Kind string
	SecretRef
	// Key is the key with the values of a HelmRelease, and Path the value that it sets. "" selects
	// the default of each.
	Key, Path string
}

// DataOf returns the Secrets and ConfigMaps that an object references, in the order of secretFields,
// secretNames and valueFields.
func DataOf(o Object) []DataRef {
	var refs []DataRef
	for _, field := range secretFields {
		if name := (Path{field + ".name"}).String(o); name != "" {
			refs = append(refs, DataRef{Kind: "Secret", SecretRef: SecretRef{Name: name, Field: field}})
		}
	}
	for _, field := range secretNames {
		if name := (Path{field}).String(o); name != "" {
			refs = append(refs, DataRef{Kind: "Secret", SecretRef: SecretRef{Name: name, Field: field}})
		}
	}
	for _, field := range valueFields {
		v, _ := Path{field}.Lookup(o)
		list, _ := v.([]any)
		for _, item := range list {
			m, _ := item.(Object)
			refs = append(refs, DataRef{
				Kind: Path{"kind"}.String(m), SecretRef: SecretRef{Path{"name"}.String(m), field, Path{"optional"}.String(m) == "true"},
				Key: Path{"valuesKey"}.String(m), Path: Path{"targetPath"}.String(m),
			})
		}
	}
	return refs
}
