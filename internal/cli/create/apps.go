package create

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/cli/create/creation"
	"github.com/fluxkit/flux/internal/input"
)

// healthKinds are the kinds that --health-check takes, with the versions of
// those that are no part of Kubernetes.
var healthKinds = map[string]string{"Deployment": "", "DaemonSet": "", "StatefulSet": "", "HelmRelease": "helm.toolkit.fluxcd.io/v2"}

// kustomizationFlags are the flags of create kustomization.
type kustomizationFlags struct {
	source, validation, account, decryption, decryptionSecret, target, kubeconfig string
	dependsOn, checks                                                             []string
	prune, wait                                                                   bool
	retry, timeout                                                                time.Duration
	path                                                                          creation.SourcePath
}

func buildKustomization() creation.Builder {
	o := &kustomizationFlags{path: "./", timeout: 2 * time.Minute}
	return creation.Builder{
		Kind: "Kustomization",
		Example: `  # Apply a folder of a repository and wait for what it makes
  flux create kustomization app --source=GitRepository/app --path=./deploy --prune --wait --interval=10m

  # After others, as the service account of a tenant, with secrets decrypted
  flux create kustomization app -n team --source=GitRepository/app.flux-system --path=./deploy --prune \
    --depends-on=infra/ingress --service-account=team --decryption-provider=sops --decryption-secret=sops-age

  # For a repository: print it
  flux create kustomization app --source=OCIRepository/app --prune --export > app.yaml`,
		Refers: map[string][]string{
			"source": creation.ManifestSources, "depends-on": {"Kustomization"}, "service-account": {"ServiceAccount"},
			"decryption-secret": {"Secret"}, "kubeconfig-secret-ref": {"Secret"},
		},
		Flags: o.add,
		Spec:  o.spec,
	}
}

func (o *kustomizationFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&o.source, "source", "", "where the manifests are: [<kind>/]<name>[.<namespace>] of "+strings.Join(creation.ManifestSources, ", "))
	fs.Var(&o.path, "path", "the folder in the source")
	fs.BoolVar(&o.prune, "prune", false, "delete what is no longer in the source")
	fs.BoolVar(&o.wait, "wait", false, "be ready when all that is applied is ready")
	fs.StringSliceVar(&o.checks, "health-check", nil, "be ready when this workload is ready: <kind>/<name>.<namespace> of HelmRelease, Deployment, DaemonSet, StatefulSet")
	fs.DurationVar(&o.timeout, "health-check-timeout", o.timeout, "how long to wait for what is applied to be ready")
	fs.StringSliceVar(&o.dependsOn, "depends-on", nil, "the Kustomizations that have to be ready first: [<namespace>/]<name>")
	fs.StringVar(&o.account, "service-account", "", "the ServiceAccount whose permissions bound what is applied")
	fs.Var(command.Choice{Value: &o.decryption, Allowed: []string{"sops"}}, "decryption-provider", "what the secrets in the source are encrypted with: sops")
	fs.StringVar(&o.decryptionSecret, "decryption-secret", "", "the Secret with the keys to decrypt with")
	fs.StringVar(&o.target, "target-namespace", "", "put everything into this namespace")
	fs.StringVar(&o.kubeconfig, "kubeconfig-secret-ref", "", "the Secret with the kubeconfig of the cluster to apply to")
	fs.DurationVar(&o.retry, "retry-interval", 0, "how soon to try again after a failure")
	fs.StringVar(&o.validation, "validation", "", "has no effect: the server checks everything")
	// Flux 2.9 accepts it without effect; cobra would announce that on standard output.
	_ = fs.MarkHidden("validation")
}

func (o *kustomizationFlags) spec(c *creation.Creation) map[string]any {
	spec := map[string]any{"prune": o.prune}
	c.Require("source", o.source)
	c.Needs("decryption-provider", "decryption-secret")
	c.Positive(map[string]time.Duration{"health-check-timeout": o.timeout, "retry-interval": o.retry})
	c.ObjectNames(map[string]string{"service-account": o.account, "decryption-secret": o.decryptionSecret, "target-namespace": o.target, "kubeconfig-secret-ref": o.kubeconfig})
	if o.validation != "" {
		c.App.UI.Warning("--validation has no effect: the server checks everything")
	}
	health := healthChecks(c, o.checks)
	if o.wait && len(health) > 0 {
		c.App.UI.Warning("--health-check has no effect: --wait looks at everything")
		health = nil
	}
	if o.wait || len(health) > 0 {
		creation.Put(spec, "timeout", o.timeout)
	}
	creation.Put(spec, "dependsOn", c.Depends(o.dependsOn))
	creation.Put(spec, "interval", c.Interval)
	creation.Put(spec, "path", string(o.path))
	creation.Put(spec, "sourceRef", creation.RefField(c.Refer("source", o.source, input.Rules{Kinds: creation.ManifestSources, Default: "GitRepository"})))
	creation.Put(spec, "targetNamespace", o.target)
	creation.Put(spec, "kubeConfig.secretRef.name", o.kubeconfig)
	creation.Put(spec, "healthChecks", health)
	creation.Put(spec, "wait", o.wait)
	creation.Put(spec, "serviceAccountName", o.account)
	creation.Put(spec, "decryption.provider", o.decryption)
	creation.Put(spec, "decryption.secretRef.name", o.decryptionSecret)
	creation.Put(spec, "retryInterval", o.retry)
	return spec
}

// healthChecks reads the workloads of --health-check.
func healthChecks(c *creation.Creation, list []string) []any {
	var checks []any
	for _, s := range list {
		ref := c.Refer("health-check", s, input.Rules{Kinds: []string{"HelmRelease", "Deployment", "DaemonSet", "StatefulSet"}})
		if ref.Name != "" && ref.Namespace == "" {
			c.CheckFlag("health-check", fmt.Errorf("%q has to be of the form <kind>/<name>.<namespace>", s))
		}
		check := creation.RefField(ref)
		creation.Put(check, "apiVersion", healthKinds[ref.Kind])
		checks = append(checks, check)
	}
	return checks
}

// helmReleaseFlags are the flags of create helmrelease.
type helmReleaseFlags struct {
	name, source, chart, chartRef, version, target, storage, account, crds, kubeconfig, strategy string
	dependsOn, files, valuesFrom                                                                 []string
	createNamespace                                                                              bool
	chartInterval                                                                                time.Duration
}

func buildHelmRelease() creation.Builder {
	o := &helmReleaseFlags{strategy: creation.Strategies[0]}
	return creation.Builder{
		Kind: "HelmRelease",
		Example: `  # A chart of a Helm repository, a range of versions
  flux create helmrelease podinfo --source=HelmRepository/podinfo --chart=podinfo --chart-version='>6.0.0' --interval=10m

  # A chart in a registry
  flux create helmrelease podinfo --chart-ref=OCIRepository/podinfo

  # With values of your own, later files over earlier ones
  flux create helmrelease podinfo --source=GitRepository/podinfo --chart=./charts/podinfo --values=./base.yaml --values=./production.yaml

  # With values out of the cluster, into another namespace
  flux create helmrelease podinfo --chart-ref=OCIRepository/podinfo --values-from=Secret/podinfo-values --target-namespace=web --create-target-namespace`,
		Refers: map[string][]string{
			"source": creation.ChartSources, "chart-ref": creation.WholeCharts, "depends-on": {"HelmRelease"}, "values-from": {"Secret", "ConfigMap"},
			"service-account": {"ServiceAccount"}, "kubeconfig-secret-ref": {"Secret"},
		},
		Words: map[string][]string{"reconcile-strategy": creation.Strategies},
		Flags: o.add,
		Spec:  o.spec,
	}
}

func (o *helmReleaseFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&o.name, "release-name", "", "the name of the release; the object's, after the target namespace's, unless given")
	fs.StringVar(&o.source, "source", "", "where the chart is: <kind>/<name>[.<namespace>] of "+strings.Join(creation.ChartSources, ", "))
	fs.StringVar(&o.chart, "chart", "", "the name of the chart, or its path")
	fs.StringVar(&o.version, "chart-version", "", "the version or range of versions, in a HelmRepository")
	fs.StringVar(&o.chartRef, "chart-ref", "", "the chart instead of --source and --chart: <kind>/<name>[.<namespace>] of "+strings.Join(creation.WholeCharts, ", "))
	fs.StringSliceVar(&o.dependsOn, "depends-on", nil, "the HelmReleases that have to be ready first: [<namespace>/]<name>")
	fs.StringVar(&o.target, "target-namespace", "", "the namespace to install into")
	fs.StringVar(&o.storage, "storage-namespace", "", "the namespace to keep the release's history in; the target's unless given")
	fs.BoolVar(&o.createNamespace, "create-target-namespace", false, "make the target namespace where there is none")
	fs.StringVar(&o.account, "service-account", "", "the ServiceAccount whose permissions bound what is installed")
	fs.StringVar(&o.strategy, "reconcile-strategy", o.strategy, "what makes a new chart: "+strings.Join(creation.Strategies, ", "))
	fs.DurationVar(&o.chartInterval, "chart-interval", 0, "how often to look for a new chart")
	fs.StringSliceVar(&o.files, "values", nil, "files with values, later ones over earlier ones; '-' is standard input")
	fs.StringSliceVar(&o.valuesFrom, "values-from", nil, "objects with values: <kind>/<name> of Secret, ConfigMap")
	fs.Var(command.Choice{Value: &o.crds, Allowed: []string{"Skip", "Create", "CreateReplace"}}, "crds", "what an upgrade does with the chart's definitions: Skip, Create, CreateReplace")
	fs.StringVar(&o.kubeconfig, "kubeconfig-secret-ref", "", "the Secret with the kubeconfig of the cluster to install on")
}

func (o *helmReleaseFlags) spec(c *creation.Creation) map[string]any {
	spec := map[string]any{}
	if o.chart == "" && o.chartRef == "" {
		c.Check(errors.New("chart or chart-ref is required"))
	}
	c.Excludes("chart-ref", "it names the whole chart", "chart", "source", "chart-version", "chart-interval")
	c.Versions("chart-version", o.version)
	c.OneOf("reconcile-strategy", o.strategy, creation.Strategies)
	c.Positive(map[string]time.Duration{"chart-interval": o.chartInterval})
	c.ObjectNames(map[string]string{"release-name": o.name, "target-namespace": o.target, "storage-namespace": o.storage, "service-account": o.account, "kubeconfig-secret-ref": o.kubeconfig})
	if o.chart != "" {
		c.Require("source", o.source)
		creation.Put(spec, "chart.spec.chart", o.chart)
		creation.Put(spec, "chart.spec.version", o.version)
		creation.Put(spec, "chart.spec.sourceRef", creation.RefField(c.Refer("source", o.source, input.Rules{Kinds: creation.ChartSources})))
		creation.Put(spec, "chart.spec.reconcileStrategy", o.strategy)
		creation.Put(spec, "chart.spec.interval", o.chartInterval)
	}
	if o.chartRef != "" {
		creation.Put(spec, "chartRef", creation.RefField(c.Refer("chart-ref", o.chartRef, input.Rules{Kinds: creation.WholeCharts})))
	}
	if o.storage == "" {
		o.storage = o.target
	}
	creation.Put(spec, "dependsOn", c.Depends(o.dependsOn))
	creation.Put(spec, "interval", c.Interval)
	creation.Put(spec, "releaseName", o.name)
	creation.Put(spec, "targetNamespace", o.target)
	creation.Put(spec, "storageNamespace", o.storage)
	creation.Put(spec, "serviceAccountName", o.account)
	creation.Put(spec, "kubeConfig.secretRef.name", o.kubeconfig)
	creation.Put(spec, "install.createNamespace", o.createNamespace)
	if o.crds != "" {
		creation.Put(spec, "install.crds", "Create")
		creation.Put(spec, "upgrade.crds", o.crds)
	}
	if values := values(c, o.files); len(o.files) > 0 {
		spec["values"] = values
	}
	creation.Put(spec, "valuesFrom", valuesFrom(c, o.valuesFrom))
	return spec
}

// values merges files of values, later ones over earlier ones.
func values(c *creation.Creation, files []string) map[string]any {
	merged := map[string]any{}
	for _, file := range files {
		var values map[string]any
		if err := budget.Unmarshal("", c.File("values", file), &values); err != nil {
			c.CheckFlag("values", fmt.Errorf("%s has to hold a map of values: %w", file, err))
		}
		merge(merged, values)
	}
	return merged
}

// merge puts values over others, maps within maps one by one.
func merge(onto, values map[string]any) {
	for key, value := range values {
		above, isMap := value.(map[string]any)
		below, areMaps := onto[key].(map[string]any)
		if isMap && areMaps {
			merge(below, above)
			continue
		}
		onto[key] = value
	}
}

// valuesFrom reads the objects of --values-from, each once.
func valuesFrom(c *creation.Creation, list []string) []any {
	var refs []any
	for i, s := range list {
		ref := c.Refer("values-from", s, input.Rules{Kinds: []string{"Secret", "ConfigMap"}, Local: true})
		if !slices.Contains(list[:i], s) {
			refs = append(refs, creation.RefField(ref))
		}
	}
	return refs
}
