package controllers

import (
	"testing"
)

func TestParseInventoryID(t *testing.T) {
	for id, want := range map[string]ID{
		"apps_web_apps_Deployment": {"apps", "Deployment", "apps", "web"},
		"apps_web__Service":        {"", "Service", "apps", "web"},
		"_apps__Namespace":         {"", "Namespace", "", "apps"},
		"_system__node_rbac.authorization.k8s.io_ClusterRole":                {"rbac.authorization.k8s.io", "ClusterRole", "", "system:node"},
		"apps_a__b__c_rbac.authorization.k8s.io_Role":                        {"rbac.authorization.k8s.io", "Role", "apps", "a:b:c"},
		"_webs.example.com_apiextensions.k8s.io_CustomResourceDefinition":    {"apiextensions.k8s.io", "CustomResourceDefinition", "", "webs.example.com"},
		"apps_web.example.com_kustomize.toolkit.fluxcd.io_Kustomization":     {"kustomize.toolkit.fluxcd.io", "Kustomization", "apps", "web.example.com"},
		"apps_1a2b-weird.name_example.com_ThingWithCapitalsAndNumbers2Three": {"example.com", "ThingWithCapitalsAndNumbers2Three", "apps", "1a2b-weird.name"},
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
