package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/testcluster"
	"github.com/fluxkit/flux/pkg/build/helm"
	"github.com/fluxkit/flux/pkg/build/helmprocess"
)

// renderCharts is what flux-helm does, for the scripts.
func renderCharts() {
	ctx := context.Background()
	charts := &http.Client{Transport: http.DefaultTransport}
	cache, err := helmprocess.Contain(ctx, os.Args[1], os.Getenv, os.Exit)
	if err == nil {
		err = helmprocess.Serve(ctx, &helm.Renderer{Cache: cache, HTTP: charts}, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "✗", err)
		os.Exit(1)
	}
}

// TestAssumedKubernetes keeps the version with the libraries'.
func TestAssumedKubernetes(t *testing.T) {
	t.Parallel()
	modules, err := os.ReadFile(filepath.Join(testcluster.Root(), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	minor := strings.TrimSuffix(strings.TrimPrefix(assumedKubernetes, "v1."), ".0")
	if !strings.Contains(string(modules), "k8s.io/client-go v0."+minor+".") {
		t.Errorf("go.mod has another k8s.io/client-go than %s stands for", assumedKubernetes)
	}
}
