package sourcetree_test

import (
	"testing"

	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
)

const positioned = `# a comment
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: apps}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels:
    app.kubernetes.io/name: web
    app: web
spec:
  template: &template
    spec:
      containers:
      - name: a
        image: x
      - name: b
        ports: [{containerPort: 1},
          {containerPort: 2}]
  again: *template
---
data: {.dockerconfigjson: x,
  other: y}
`

func TestPositions(t *testing.T) {
	t.Parallel()
	documents := sourcetree.Positions([]byte(positioned + "---\n[invalid\n---\nkind: Unreachable\n"))
	if len(documents) != 3 {
		t.Fatalf("%d documents, want 3", len(documents))
	}
	if got, want := documents[0].ID(), (controllers.ID{Kind: "ConfigMap", Namespace: "apps", Name: "a"}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := documents[1].ID(), (controllers.ID{Group: "apps", Kind: "Deployment", Name: "web"}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, c := range []struct {
		document int
		field    string
		line     int
		whole    bool
	}{
		{0, "", 2, true},
		{1, "", 6, true},
		{1, "metadata.labels.app.kubernetes.io/name", 11, true},
		{1, "metadata.labels.app", 12, true},
		{1, "metadata.labels.other", 10, false},
		{1, "spec.template.spec.containers[1].ports[1].containerPort", 21, true},
		{1, "spec.template.spec.containers[0].ports[0].containerPort", 17, false},
		{1, "spec.template.spec.containers[2].image", 16, false},
		{1, "spec.again.spec.containers[0].image", 18, true},
		{1, "spec.replicas", 13, false},
		{2, "data[.dockerconfigjson]", 24, true},
		{2, "data[other]", 25, true},
		{2, "data.others", 24, false},
	} {
		if line, whole := documents[c.document].Line(c.field); line != c.line || whole != c.whole {
			t.Errorf("document %d, %q: line %d, %v, want %d, %v", c.document, c.field, line, whole, c.line, c.whole)
		}
	}
}
