package controllers

import (
	"strings"
	"testing"
)

func TestReleaseName(t *testing.T) {
	release := func(name string, spec map[string]any) Object {
		return Object{"metadata": map[string]any{"name": name, "namespace": "apps"}, "spec": spec}
	}
	long := strings.Repeat("long-", 12) + "name"
	for want, hr := range map[string]Object{
		"shop":                      release("shop", nil),
		"front-shop":                release("shop", map[string]any{"targetNamespace": "front"}),
		"given":                     release("shop", map[string]any{"targetNamespace": "front", "releaseName": "given"}),
		long[:40] + "-83232e2b9f3f": release(long, nil),
	} {
		if got := ReleaseName(hr); got != want || len(got) > 53 {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
