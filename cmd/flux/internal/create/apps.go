package create

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/syntax"
	"github.com/fluxkit/flux/cmd/flux/internal/create/creation"
	"github.com/fluxkit/flux/internal/budget"
)

// healthKinds maps the kinds that --health-check accepts to their apiVersion,
// which is empty for the built-in workloads.
var healthKinds = map[string]string{"Deployment": "", "DaemonSet": "", "StatefulSet": "", "HelmRelease": "helm.toolkit.fluxcd.io/v2"}

// kustomizationFlags holds the flags of create kustomization.
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
		Example: `  # Apply a directory of a repository, prune removed objects and wait for the applied ones
  flux create kustomization app --source=GitRepository/app --path=./deploy --prune --wait --interval=10m

  # Depend on another Kustomization, impersonate a tenant's ServiceAccount and decrypt secrets
  flux create kustomization app -n team --source=GitRepository/app.flux-system --path=./deploy --prune \
    --depends-on=infra/ingress --service-account=team --decryption-provider=sops --decryption-secret=sops-age

  # Export the manifest to commit it to Git
  flux create kustomization app --source=OCIRepository/app --prune --export > app.yaml

  # Apply another directory in the same way as an existing Kustomization
  flux create kustomization app-staging --from=app --path=./deploy/staging --target-namespace=staging`,
		Refers: map[string][]string{
			"source": creation.ManifestSources, "depends-on": {"Kustomization"}, "service-account": {"ServiceAccount"},
			"decryption-secret": {"Secret"}, "kubeconfig-secret-ref": {"Secret"},
		},
		Fields: map[string][]string{
			"source": {"sourceRef"}, "path": {"path"}, "prune": {"prune"}, "wait": {"wait"}, "health-check": {"healthChecks"},
			"health-check-timeout": {"timeout"}, "depends-on": {"dependsOn"}, "service-account": {"serviceAccountName"},
			"decryption-provider": {"decryption.provider"}, "decryption-secret": {"decryption.secretRef"}, "target-namespace": {"targetNamespace"},
			"kubeconfig-secret-ref": {"kubeConfig"}, "retry-interval": {"retryInterval"},
		},
		Flags: o.add,
		Spec:  o.spec,
	}
}

func (o *kustomizationFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&o.source, "source", "", "source of the manifests as [KIND/]NAME[.NAMESPACE]; kinds: "+strings.Join(creation.ManifestSources, ", "))
	fs.Var(&o.path, "path", "path to the directory in the source")
	fs.BoolVar(&o.prune, "prune", false, "delete objects that are no longer in the source")
	fs.BoolVar(&o.wait, "wait", false, "health checks for all applied objects")
	fs.StringSliceVar(&o.checks, "health-check", nil, "workloads to health check as KIND/NAME.NAMESPACE; kinds: HelmRelease, Deployment, DaemonSet, StatefulSet")
	fs.DurationVar(&o.timeout, "health-check-timeout", o.timeout, "timeout of the health checks")
	fs.StringSliceVar(&o.dependsOn, "depends-on", nil, "Kustomizations that must be ready first, as [NAMESPACE/]NAME")
	fs.StringVar(&o.account, "service-account", "", "ServiceAccount to impersonate when applying")
	fs.Var(command.Choice{Value: &o.decryption, Allowed: []string{"sops"}}, "decryption-provider", "decryption provider of the secrets in the source: sops")
	fs.StringVar(&o.decryptionSecret, "decryption-secret", "", "name of the Secret with the decryption keys")
	fs.StringVar(&o.target, "target-namespace", "", "namespace override for all applied objects")
	fs.StringVar(&o.kubeconfig, "kubeconfig-secret-ref", "", "name of the Secret with the kubeconfig of the cluster to apply to")
	fs.DurationVar(&o.retry, "retry-interval", 0, "interval between attempts after a failure, e.g. 1m (default --interval)")
	fs.StringVar(&o.validation, "validation", "", "deprecated, has no effect: the API server validates all objects")
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
		c.App.UI.Warning("--validation has no effect: the API server validates all objects")
	}
	health := healthChecks(c, o.checks)
	if o.wait && len(health) > 0 {
		c.App.UI.Warning("--health-check has no effect: --wait checks all applied objects")
		health = nil
	}
	if o.wait || len(health) > 0 || c.Partial {
		creation.Put(spec, "timeout", o.timeout)
	}
	creation.Put(spec, "dependsOn", c.Depends(o.dependsOn))
	creation.Put(spec, "interval", c.Interval)
	creation.Put(spec, "path", string(o.path))
	creation.Put(spec, "sourceRef", creation.RefField(c.Refer("source", o.source, syntax.Rules{Kinds: creation.ManifestSources, Default: "GitRepository"})))
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

// healthChecks parses the values of --health-check.
func healthChecks(c *creation.Creation, list []string) []any {
	var checks []any
	for _, s := range list {
		ref := c.Refer("health-check", s, syntax.Rules{Kinds: []string{"HelmRelease", "Deployment", "DaemonSet", "StatefulSet"}})
		if ref.Name != "" && ref.Namespace == "" {
			c.CheckFlag("health-check", fmt.Errorf("%q must be <kind>/<name>.<namespace>", s))
		}
		check := creation.RefField(ref)
		creation.Put(check, "apiVersion", healthKinds[ref.Kind])
		checks = append(checks, check)
	}
	return checks
}

// helmReleaseFlags holds the flags of create helmrelease.
type helmReleaseFlags struct {
	name, source, chart, chartRef, version, target, storage, account, crds, kubeconfig, strategy string
	dependsOn, files, valuesFrom                                                                 []string
	createNamespace                                                                              bool
	chartInterval                                                                                time.Duration
}

func buildHelmRelease() creation.Builder {
	o := &helmReleaseFlags{strategy: creation.ReconcileStrategies[0]}
	return creation.Builder{
		Kind: "HelmRelease",
		Example: `  # Install a chart from a Helm repository within a version range
  flux create helmrelease podinfo --source=HelmRepository/podinfo --chart=podinfo --chart-version='>6.0.0' --interval=10m

  # Install a chart from a registry
  flux create helmrelease podinfo --chart-ref=OCIRepository/podinfo

  # Set values from files; later files take precedence
  flux create helmrelease podinfo --source=GitRepository/podinfo --chart=./charts/podinfo --values=./base.yaml --values=./production.yaml

  # Take values from a Secret and install into another namespace
  flux create helmrelease podinfo --chart-ref=OCIRepository/podinfo --values-from=Secret/podinfo-values --target-namespace=web --create-target-namespace`,
		Refers: map[string][]string{
			"source": creation.ChartSources, "chart-ref": creation.ChartRefKinds, "depends-on": {"HelmRelease"}, "values-from": {"Secret", "ConfigMap"},
			"service-account": {"ServiceAccount"}, "kubeconfig-secret-ref": {"Secret"},
		},
		Fields: map[string][]string{
			"release-name": {"releaseName"}, "source": {"chart.spec.sourceRef", "chartRef"}, "chart": {"chart.spec.chart", "chartRef"},
			"chart-version": {"chart.spec.version"}, "chart-ref": {"chartRef", "chart"}, "depends-on": {"dependsOn"},
			"target-namespace": {"targetNamespace", "storageNamespace"}, "storage-namespace": {"storageNamespace"},
			"create-target-namespace": {"install.createNamespace"}, "service-account": {"serviceAccountName"},
			"reconcile-strategy": {"chart.spec.reconcileStrategy"}, "chart-interval": {"chart.spec.interval"}, "values": {"values"},
			"values-from": {"valuesFrom"}, "crds": {"install.crds", "upgrade.crds"}, "kubeconfig-secret-ref": {"kubeConfig"},
		},
		Words: map[string][]string{"reconcile-strategy": creation.ReconcileStrategies},
		Flags: o.add,
		Spec:  o.spec,
	}
}

func (o *helmReleaseFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&o.name, "release-name", "", "name of the Helm release (default [TARGET-NAMESPACE-]NAME)")
	fs.StringVar(&o.source, "source", "", "source of the chart as KIND/NAME[.NAMESPACE]; kinds: "+strings.Join(creation.ChartSources, ", "))
	fs.StringVar(&o.chart, "chart", "", "name of the chart, or its path in a GitRepository or Bucket")
	fs.StringVar(&o.version, "chart-version", "", "version or semver range of the chart (only with a HelmRepository)")
	fs.StringVar(&o.chartRef, "chart-ref", "", "chart as KIND/NAME[.NAMESPACE], instead of --source and --chart; kinds: "+strings.Join(creation.ChartRefKinds, ", "))
	fs.StringSliceVar(&o.dependsOn, "depends-on", nil, "HelmReleases that must be ready first, as [NAMESPACE/]NAME")
	fs.StringVar(&o.target, "target-namespace", "", "namespace of the Helm release (default the namespace of the HelmRelease)")
	fs.StringVar(&o.storage, "storage-namespace", "", "namespace of the Helm storage (default --target-namespace)")
	fs.BoolVar(&o.createNamespace, "create-target-namespace", false, "create the target namespace if it does not exist")
	fs.StringVar(&o.account, "service-account", "", "ServiceAccount to impersonate when installing")
	fs.StringVar(&o.strategy, "reconcile-strategy", o.strategy, "change that produces a new chart artifact: "+strings.Join(creation.ReconcileStrategies, ", "))
	fs.DurationVar(&o.chartInterval, "chart-interval", 0, "interval between checks for a new chart, e.g. 10m (default --interval)")
	fs.StringSliceVar(&o.files, "values", nil, "values files, later files take precedence; '-' for standard input")
	fs.StringSliceVar(&o.valuesFrom, "values-from", nil, "objects with values as KIND/NAME; kinds: Secret, ConfigMap")
	fs.Var(command.Choice{Value: &o.crds, Allowed: []string{"Skip", "Create", "CreateReplace"}}, "crds", "policy for the CRDs of the chart on upgrades: Skip, Create, CreateReplace")
	fs.StringVar(&o.kubeconfig, "kubeconfig-secret-ref", "", "name of the Secret with the kubeconfig of the cluster to install on")
}

func (o *helmReleaseFlags) spec(c *creation.Creation) map[string]any {
	spec := map[string]any{}
	if o.chart == "" && o.chartRef == "" && !c.Partial {
		c.Check(errors.New("--chart or --chart-ref is required"))
	}
	c.Excludes("chart-ref", "the referenced object determines the chart", "chart", "source", "chart-version", "chart-interval")
	c.Versions("chart-version", o.version)
	c.OneOf("reconcile-strategy", o.strategy, creation.ReconcileStrategies)
	c.Positive(map[string]time.Duration{"chart-interval": o.chartInterval})
	c.ObjectNames(map[string]string{"release-name": o.name, "target-namespace": o.target, "storage-namespace": o.storage, "service-account": o.account, "kubeconfig-secret-ref": o.kubeconfig})
	if o.chart != "" || c.Partial && o.chartRef == "" {
		c.Require("source", o.source)
		creation.Put(spec, "chart.spec.chart", o.chart)
		creation.Put(spec, "chart.spec.version", o.version)
		creation.Put(spec, "chart.spec.sourceRef", creation.RefField(c.Refer("source", o.source, syntax.Rules{Kinds: creation.ChartSources})))
		creation.Put(spec, "chart.spec.reconcileStrategy", o.strategy)
		creation.Put(spec, "chart.spec.interval", o.chartInterval)
	}
	if o.chartRef != "" {
		creation.Put(spec, "chartRef", creation.RefField(c.Refer("chart-ref", o.chartRef, syntax.Rules{Kinds: creation.ChartRefKinds})))
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

// values merges values files; later files take precedence.
func values(c *creation.Creation, files []string) map[string]any {
	merged := map[string]any{}
	for _, file := range files {
		var values map[string]any
		if err := budget.Unmarshal("", c.File("values", file), &values); err != nil {
			c.CheckFlag("values", fmt.Errorf("%s must contain a YAML map: %w", file, err))
		}
		merge(merged, values)
	}
	return merged
}

// merge merges values into onto, recursively for maps.
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

// valuesFrom parses the values of --values-from and drops duplicates.
func valuesFrom(c *creation.Creation, list []string) []any {
	var refs []any
	for i, s := range list {
		ref := c.Refer("values-from", s, syntax.Rules{Kinds: []string{"Secret", "ConfigMap"}, Local: true})
		if !slices.Contains(list[:i], s) {
			refs = append(refs, creation.RefField(ref))
		}
	}
	return refs
}
