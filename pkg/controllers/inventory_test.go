package controllers

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestParseInventoryID(t *testing.T) {
	kind := func(group, kind string) schema.GroupKind { return schema.GroupKind{Group: group, Kind: kind} }
	for id, want := range map[string]InventoryID{
		"apps_web_apps_Deployment": {"apps", "web", kind("apps", "Deployment")},
		"apps_web__Service":        {"apps", "web", kind("", "Service")},
		"_apps__Namespace":         {"", "apps", kind("", "Namespace")},
		"_system__node_rbac.authorization.k8s.io_ClusterRole":                {"", "system:node", kind("rbac.authorization.k8s.io", "ClusterRole")},
		"apps_a__b__c_rbac.authorization.k8s.io_Role":                        {"apps", "a:b:c", kind("rbac.authorization.k8s.io", "Role")},
		"_webs.example.com_apiextensions.k8s.io_CustomResourceDefinition":    {"", "webs.example.com", kind("apiextensions.k8s.io", "CustomResourceDefinition")},
		"apps_web.example.com_kustomize.toolkit.fluxcd.io_Kustomization":     {"apps", "web.example.com", kind("kustomize.toolkit.fluxcd.io", "Kustomization")},
		"apps_1a2b-weird.name_example.com_ThingWithCapitalsAndNumbers2Three": {"apps", "1a2b-weird.name", kind("example.com", "ThingWithCapitalsAndNumbers2Three")},
	} {
		got, err := ParseInventoryID(id)
		if err != nil || got != want {
			t.Errorf("%s is %+v (%v), want %+v", id, got, err, want)
		}
	}
	for _, id := range []string{"", "web", "apps_web", "apps_web_apps", "apps__apps_Deployment", "apps_web_apps_"} {
		if got, err := ParseInventoryID(id); err == nil {
			t.Errorf("%q is parsed as %+v", id, got)
		}
	}
}
