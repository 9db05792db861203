package manifests

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/controllers"
)

//go:embed cluster.yaml controller.yaml
var templates embed.FS

// Render returns the objects of an installation in the order in which they are
// applied. The same options give the same bytes. It returns ErrNoCRDs in a
// program that was built without the CRDs.
func Render(o Options) (*Set, error) { return render(o, crdFiles) }

func render(o Options, crds fs.FS) (*Set, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	distribution, _ := controllers.FindDistribution(o.Version)
	o.Components = distinct(o.Components)
	set := &Set{Namespace: o.Namespace, Version: "v" + distribution.Version, Components: o.Components}

	cluster, err := execute("cluster.yaml", common{Options: o, Distribution: distribution, Release: set.Version})
	if err != nil {
		return nil, err
	}
	set.objects = cluster
	for _, name := range o.Components {
		definitions, err := definitions(crds, distribution.Version, name)
		if err != nil {
			return nil, err
		}
		for _, crd := range definitions {
			label(crd, name, set)
		}
		workload, err := execute("controller.yaml", newWorkload(o, distribution, name))
		if err != nil {
			return nil, err
		}
		set.objects = append(append(set.objects, definitions...), workload...)
	}
	return set, nil
}

// common is the data of cluster.yaml.
type common struct {
	Options
	Distribution controllers.Distribution
	// Release is the version of the distribution in labels.
	Release string
}

// workload is the data of controller.yaml.
type workload struct {
	common
	profile
	Image string
	Args  []string
	// FileServer is true if the readiness probe asks the file server, to which
	// only the leader listens.
	FileServer bool
}

func newWorkload(o Options, d controllers.Distribution, name string) workload {
	row := profiles[slices.IndexFunc(profiles, func(p profile) bool { return p.Name == name })]
	return workload{
		common:     common{Options: o, Distribution: d, Release: "v" + d.Version},
		profile:    row,
		Image:      o.Registry + "/" + name + ":" + d.Tags[name],
		Args:       row.args(o),
		FileServer: row.Artifacts && !slices.Contains(d.Probed, name),
	}
}

// args returns the arguments of the controller. Without notification-controller,
// --events-addr is empty but present, so that patches by index stay valid.
func (p profile) args(o Options) []string {
	host := func(service string) string { return service + ".$(RUNTIME_NAMESPACE).svc." + o.ClusterDomain + "." }
	var args []string
	if !p.Silent {
		events := ""
		if slices.Contains(o.Components, "notification-controller") {
			events = "http://" + host("notification-controller") + "/"
		}
		args = append(args, "--events-addr="+events)
	}
	args = append(args,
		fmt.Sprintf("--watch-all-namespaces=%t", o.WatchAllNamespaces),
		"--log-level="+o.LogLevel,
		"--log-encoding=json",
		"--enable-leader-election")
	if p.Artifacts {
		args = append(args, "--storage-path=/data", "--storage-adv-addr="+host(p.Name))
	}
	if p.External && slices.Contains(o.Components, "source-watcher") {
		args = append(args, "--feature-gates=ExternalArtifact=true")
	}
	return args
}

func execute(name string, data any) ([]*unstructured.Unstructured, error) {
	parsed, err := template.ParseFS(templates, name)
	if err != nil {
		return nil, fmt.Errorf("parsing %s: %w", name, err)
	}
	var text bytes.Buffer
	if err := parsed.Execute(&text, data); err != nil {
		return nil, fmt.Errorf("rendering %s: %w", name, err)
	}
	objects, err := decode(text.Bytes())
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", name, err)
	}
	return objects, nil
}

// label adds the labels of the installation to a CRD, by which `check` and
// `uninstall` find it.
func label(crd *unstructured.Unstructured, component string, set *Set) {
	crd.SetLabels(map[string]string{
		"app.kubernetes.io/component": component,
		"app.kubernetes.io/instance":  set.Namespace,
		"app.kubernetes.io/part-of":   "flux",
		"app.kubernetes.io/version":   set.Version,
	})
}

func distinct(names []string) []string {
	var once []string
	for _, name := range names {
		if !slices.Contains(once, name) {
			once = append(once, name)
		}
	}
	return once
}

func byName(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) }
