package e2e_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/kube"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// generatedName has an end that controllers choose.
var generatedName = regexp.MustCompile(`(?m)((?:ReplicaSet|Pod)/apps/(?:web-primary|web|migrate|backup-now))-[0-9a-z]+(-[0-9a-z]{5})?$`)

const wholeTree = `Kustomization/apps/fleet
├── HelmRelease/apps/shop
│   └── ConfigMap/apps/shop
└── Kustomization/apps/workloads
    ├── CustomResourceDefinition/canaries.delivery.example.com
    ├── Deployment/apps/web
    │   └── ReplicaSet/apps/web-X
    │       ├── Pod/apps/web-X
    │       └── Pod/apps/web-X
    ├── StatefulSet/apps/db
    │   ├── Pod/apps/db-0
    │   └── PersistentVolumeClaim/apps/data-db-0
    ├── CronJob/apps/backup
    │   └── Job/apps/backup-now
    │       └── Pod/apps/backup-now-X
    ├── Job/apps/migrate
    │   └── Pod/apps/migrate-X
    └── Canary/apps/web
        └── Deployment/apps/web-primary
            └── ReplicaSet/apps/web-primary-X
                └── Pod/apps/web-primary-X

`

// trees looks down: nested Kustomizations, a release, every kind of workload
// and what a custom resource owns.
func (s *story) trees() {
	s.owned()
	for _, name := range []string{"web", "web-primary"} {
		s.run("kubectl", "rollout", "status", "deployment", name, "--namespace=apps", "--timeout=2m")
	}
	s.run("kubectl", "wait", "job", "--all", "--for=condition=Complete", "--namespace=apps", "--timeout=2m")
	whole := s.tree()
	if diff := cmp.Diff(wholeTree, generatedName.ReplaceAllString(whole, "$1-X")); diff != "" {
		s.Errorf("-want +tree:\n%s", diff)
	}
	s.unseen("canaries.delivery.example.com", "configmaps", "cronjobs.batch", "customresourcedefinitions.apiextensions.k8s.io",
		"daemonsets.apps", "jobs.batch", "persistentvolumeclaims", "pods", "statefulsets.apps")
	s.fromStorage()
	s.unseen("pods", "secrets")
}

func (s *story) tree(more ...string) string {
	s.Helper()
	return s.run("flux", append([]string{"tree", "kustomization", "fleet", "--namespace=apps"}, more...)...)
}

// owned makes what an operator makes of its custom resource, and a Job out of
// the CronJob.
func (s *story) owned() {
	s.Helper()
	s.run("kubectl", "create", "job", "backup-now", "--from=cronjob/backup", "--namespace=apps")
	canary := kube.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "delivery.example.com", Version: "v1", Resource: "canaries"}, Kind: "Canary"}
	o, err := s.cluster.Client.Get(s.Context(), canary, "apps", "web")
	if err != nil {
		s.Fatal(err)
	}
	s.run("kubectl", "apply", "--filename="+s.write("primary.yaml", fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: web-primary
  namespace: apps
  ownerReferences: [{apiVersion: delivery.example.com/v1, kind: Canary, name: web, uid: %s, controller: true}]
spec:
  selector: {matchLabels: {app: web-primary}}
  template:
    metadata: {labels: {app: web-primary}}
    spec: {containers: [{name: app, image: "example.com/web:1"}]}
`, text(o, "metadata.uid"))))
}

// fromStorage takes the inventory away that older controllers do not write:
// Helm's Secret has the same.
func (s *story) fromStorage() {
	s.Helper()
	before := s.tree()
	s.run("flux", "suspend", "helmrelease", "shop", "--namespace=apps")
	s.run("kubectl", "patch", "helmrelease", "shop", "--namespace=apps", "--subresource=status", "--type=json", `--patch=[{"op":"remove","path":"/status/inventory"}]`)
	if diff := cmp.Diff(before, s.tree()); diff != "" {
		s.Errorf("-inventory +storage:\n%s", diff)
	}
	if lines := strings.Count(before, "\n"); lines < 10 {
		s.Errorf("a tree of %d lines", lines)
	}
}

// unseen shows the tree to somebody who may see Flux and Deployments only.
func (s *story) unseen(kinds ...string) {
	s.Helper()
	s.run("kubectl", "apply", "--filename="+s.write("viewer.yaml", viewerRole))
	stdout, stderr, err := s.try("flux", "tree", "kustomization", "fleet", "--namespace=apps", "--as=viewer", "--output=wide")
	if err != nil || strings.Count(stderr, "\n") != 1 {
		s.Errorf("the tree for a viewer ends with %v and says\n%s", err, stderr)
	}
	for _, kind := range kinds {
		if strings.Count(stderr, " "+kind) != 1 {
			s.Errorf("%s is not named once:\n%s", kind, stderr)
		}
	}
	for _, shown := range []string{"Deployment/apps/web ", "ReplicaSet/apps/web-", "Canary/apps/web ", "Kustomization/apps/workloads "} {
		if !strings.Contains(stdout, shown) {
			s.Errorf("%s is not shown:\n%s", shown, stdout)
		}
	}
}

const viewerRole = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: viewer}
rules:
- {apiGroups: [kustomize.toolkit.fluxcd.io, helm.toolkit.fluxcd.io], resources: ["*"], verbs: [get, list]}
- {apiGroups: [apps], resources: [deployments, replicasets], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: viewer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: viewer}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: viewer}]
`

// screen is what the test reads of a status.
type screen struct {
	Healthy  bool
	Object   tracedLink
	Sources  []tracedLink
	Needs    []tracedLink
	NeededBy []tracedLink `json:"neededBy"`
	Events   []struct{ Reason string }
	Unknown  []string
}

// screens shows a release and a chain of images.
func (s *story) screens() {
	for args, want := range map[string]screen{
		"hr-git": {Healthy: true, Object: tracedLink{Kind: "HelmRelease", Name: "hr-git"},
			Sources: []tracedLink{{Kind: "HelmChart", Name: "apps-hr-git"}, {Kind: "GitRepository", Name: "app"}}},
		"image update app": {Healthy: true, Object: tracedLink{Kind: "ImageUpdateAutomation", Name: "app"},
			Sources: []tracedLink{{Kind: "GitRepository", Name: "app"}}, Needs: []tracedLink{{Kind: "ImagePolicy", Name: "app"}}},
		"image policy app": {Healthy: true, Object: tracedLink{Kind: "ImagePolicy", Name: "app"},
			Sources: []tracedLink{{Kind: "ImageRepository", Name: "app"}}, NeededBy: []tracedLink{{Kind: "ImageUpdateAutomation", Name: "app"}}},
	} {
		words := append([]string{"status", "--namespace=apps"}, strings.Fields(args)...)
		var got screen
		if err := json.Unmarshal([]byte(s.run("flux", append(words, "--output=json")...)), &got); err != nil {
			s.Fatal(err)
		}
		s.tells(got.Object)
		for _, source := range got.Sources {
			s.tells(source)
		}
		if len(got.Events) == 0 {
			s.Errorf("status %s shows no events", args)
		}
		shown := screen{Healthy: got.Healthy, Object: bare(got.Object), Sources: namedAll(got.Sources), Needs: namedAll(got.Needs), NeededBy: namedAll(got.NeededBy), Unknown: got.Unknown}
		if diff := cmp.Diff(want, shown); diff != "" {
			s.Errorf("status %s: -want +got:\n%s", args, diff)
		}
		out, stderr, err := s.try("flux", words...)
		if err != nil || stderr != "" || !strings.HasPrefix(out, got.Object.Kind+"/apps/"+got.Object.Name+"  Ready\n") || strings.Count(out, "\n") > 40 {
			s.Errorf("flux %s ends with %v and prints\n%s%s", strings.Join(words, " "), err, out, stderr)
		}
	}
}

func bare(l tracedLink) tracedLink { return tracedLink{Kind: l.Kind, Name: l.Name} }

func namedAll(links []tracedLink) []tracedLink {
	var all []tracedLink
	for _, l := range links {
		all = append(all, bare(l))
	}
	return all
}
