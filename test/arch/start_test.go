package arch_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// heavy lists packages that flux must not link, with the reason: their
// initialization slows down every command. Measure before removing one.
var heavy = map[string]string{
	"k8s.io/client-go/kubernetes/scheme":       "registers all types of Kubernetes: 2 ms and 7 MiB",
	"k8s.io/cli-runtime/pkg/genericclioptions": "links kubernetes/scheme: internal/kube/kubeconfig has the flags",
	"k8s.io/cli-runtime/pkg/resource":          "links kubernetes/scheme",
	"k8s.io/client-go/discovery":               "links kubernetes/scheme: internal/kube has its own discovery",
	"github.com/fluxcd/cli-utils/pkg/object":   "links kubernetes/scheme: pkg/controllers reads inventories",
	"github.com/fluxcd/pkg/ssa/normalize":      "links kubernetes/scheme: pkg/diff normalizes",
	"helm.sh/helm/v4/pkg/action":               "takes 6 ms to initialize: flux-helper has it",
	"github.com/getsops/sops/v3":               "links the SDKs of cloud providers: flux-helper has it",
	"github.com/fluxcd/pkg/auth":               "links the SDKs of cloud providers: flux-helper has it",
	"k8s.io/apiserver/pkg/cel/environment":     "compiles the declarations of CEL: flux-helper has it",
	"helm.sh/helm/v3/pkg/action":               "takes 6 ms to initialize: flux-helper has it",
	"github.com/tetratelabs/wazero":            "adds 3 MiB, and Graphviz 1.5 MiB: flux-helper has it",
}

func TestStartIsLight(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/flux")
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Fields(string(out))
	if !slices.Contains(linked, module+"internal/kube") {
		t.Fatalf("%d packages are linked, and internal/kube is not among them", len(linked))
	}
	for name, cost := range heavy {
		if slices.Contains(linked, name) {
			t.Errorf("flux links %s, which %s", name, cost)
		}
	}
}
