package create

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/syntax"
	"github.com/fluxkit/flux/cmd/flux/internal/create/creation"
	"github.com/fluxkit/flux/internal/budget"
)

// healthKinds maps the kinds that --health-check accepts to their apiVersion,
// which is empty for the built-in workloads.
var healthKinds = map[string]string{"Deployment": "", "DaemonSet": "", "StatefulSet": "", "HelmRelease": "helm.toolkit.fluxcd.io/v2"}

func kustomization() creation.Builder {
	return creation.Builder{
		Kind: "Kustomization",
		Example: `  # Apply a directory of a repository, prune removed objects and wait for the applied ones
  flux create kustomization app --source=GitRepository/app --path=./deploy --prune --wait --interval=10m

  # Depend on another Kustomization, impersonate a tenant's ServiceAccount and decrypt secrets
  flux create kustomization app -n team --source=GitRepository/app.flux-system --path=./deploy --prune \
    --depends-on=infra/ingress --service-account=team --decryption-provider=sops --decryption-secret=sops-age

  # Export the manifest to commit it to Git
  flux create kustomization app --source=OCIRepository/app --prune --export > app.yaml

  # Copy an existing Kustomization and change its path
  flux create kustomization app-staging --from=app --path=./deploy/staging --target-namespace=staging`,
		Flags: []creation.Flag{
			creation.Reference("source", "sourceRef", "source of the manifests as [KIND/]NAME[.NAMESPACE]; kinds: "+strings.Join(creation.ManifestSources, ", "),
				syntax.Rules{Kinds: creation.ManifestSources, Default: "GitRepository"}).Required(),
			creation.Directory("path", "path", "./", "path to the directory in the source"),
			creation.Switch("prune", "", "delete objects that are no longer in the source").Replaces("prune"),
			creation.Switch("wait", "wait", "check the health of all applied objects"),
			creation.List("health-check", "", "workloads to health check as KIND/NAME.NAMESPACE; kinds: HelmRelease, Deployment, DaemonSet, StatefulSet").Replaces("healthChecks"),
			creation.Duration("health-check-timeout", "", "timeout of the health checks").Default(2 * time.Minute).Replaces("timeout"),
			creation.Dependencies("Kustomizations that must be ready first, as [NAMESPACE/]NAME", "Kustomization"),
			creation.ObjectName("service-account", "serviceAccountName", "ServiceAccount to impersonate when applying", "ServiceAccount"),
			creation.Choice("decryption-provider", "decryption.provider", "decryption provider of the secrets in the source: sops", "sops"),
			creation.ObjectName("decryption-secret", "decryption.secretRef.name", "name of the Secret with the decryption keys", "Secret"),
			creation.ObjectName("target-namespace", "targetNamespace", "namespace override for all applied objects"),
			creation.ObjectName("kubeconfig-secret-ref", "kubeConfig.secretRef.name", "name of the Secret with the kubeconfig of the cluster to apply to", "Secret").Replaces("kubeConfig"),
			creation.Duration("retry-interval", "retryInterval", "interval between attempts after a failure, e.g. 1m (default: --interval)"),
			creation.Interval(),
		},
		OtherFlags: func(fs *pflag.FlagSet) {
			fs.String("validation", "", "deprecated, has no effect: the API server validates all objects")
			// Flux 2.9 accepts the flag without effect. cobra would print its deprecation to
			// standard output.
			_ = fs.MarkHidden("validation")
		},
		Spec: func(c *creation.Creation, spec map[string]any) {
			c.Needs("decryption-provider", "decryption-secret")
			if c.Text("validation") != "" {
				c.App.UI.Warning("--validation has no effect: the API server validates all objects")
			}
			health, wait := healthChecks(c), c.Is("wait")
			if wait && len(health) > 0 {
				c.App.UI.Warning("--health-check has no effect: --wait checks all applied objects")
				health = nil
			}
			if wait || len(health) > 0 || c.Partial {
				creation.Put(spec, "timeout", c.Duration("health-check-timeout"))
			}
			creation.Put(spec, "healthChecks", health)
			spec["prune"] = c.Is("prune")
		},
	}
}

// healthChecks parses the values of --health-check.
func healthChecks(c *creation.Creation) []any {
	var checks []any
	for _, s := range c.List("health-check") {
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

func helmRelease() creation.Builder {
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
		Flags: []creation.Flag{
			creation.ObjectName("release-name", "releaseName", "name of the Helm release (default: [TARGET-NAMESPACE-]NAME)"),
			creation.Text("source", "", "source of the chart as KIND/NAME[.NAMESPACE]; kinds: "+strings.Join(creation.ChartSources, ", ")).
				Completes(creation.ChartSources...).Replaces("chart.spec.sourceRef", "chartRef"),
			creation.Text("chart", "", "name of the chart, or its path in a GitRepository or Bucket").Replaces("chart.spec.chart", "chartRef"),
			creation.Text("chart-version", "", "version or semver range of the chart (only with a HelmRepository)").Checked((*creation.Creation).Versions).Replaces("chart.spec.version"),
			creation.Reference("chart-ref", "chartRef", "chart as KIND/NAME[.NAMESPACE], instead of --source and --chart; kinds: "+strings.Join(creation.ChartRefKinds, ", "),
				syntax.Rules{Kinds: creation.ChartRefKinds}).Replaces("chartRef", "chart"),
			creation.Dependencies("HelmReleases that must be ready first, as [NAMESPACE/]NAME", "HelmRelease"),
			creation.ObjectName("target-namespace", "targetNamespace", "namespace of the Helm release (default: the namespace of the HelmRelease)").Replaces("targetNamespace", "storageNamespace"),
			creation.ObjectName("storage-namespace", "storageNamespace", "namespace of the Helm storage (default: --target-namespace)").
				As(func(c *creation.Creation) any { return cmp.Or(c.Text("storage-namespace"), c.Text("target-namespace")) }),
			creation.Switch("create-target-namespace", "install.createNamespace", "create the target namespace if it does not exist"),
			creation.ObjectName("service-account", "serviceAccountName", "ServiceAccount to impersonate when installing", "ServiceAccount"),
			creation.OneOf("reconcile-strategy", "", "change that produces a new chart artifact: "+strings.Join(creation.ReconcileStrategies, ", "), creation.ReconcileStrategies...).
				Default(creation.ReconcileStrategies[0]).Replaces("chart.spec.reconcileStrategy"),
			creation.Duration("chart-interval", "", "interval between checks for a new chart, e.g. 10m (default: --interval)").Replaces("chart.spec.interval"),
			creation.List("values", "", "values files, later files take precedence; '-' for standard input").Replaces("values"),
			creation.List("values-from", "valuesFrom", "objects with values as KIND/NAME; kinds: Secret, ConfigMap").Completes("Secret", "ConfigMap").As(valuesFrom),
			creation.Choice("crds", "upgrade.crds", "policy for the CRDs of the chart on upgrades: Skip, Create, CreateReplace", "Skip", "Create", "CreateReplace").Replaces("install.crds", "upgrade.crds"),
			creation.ObjectName("kubeconfig-secret-ref", "kubeConfig.secretRef.name", "name of the Secret with the kubeconfig of the cluster to install on", "Secret").Replaces("kubeConfig"),
			creation.Interval(),
		},
		Spec: func(c *creation.Creation, spec map[string]any) {
			chart, ref := c.Text("chart"), c.Text("chart-ref")
			if chart == "" && ref == "" && !c.Partial {
				c.Check(errors.New("--chart or --chart-ref is required"))
			}
			c.Excludes("chart-ref", "the referenced object determines the chart", "chart", "source", "chart-version", "chart-interval")
			if chart != "" || c.Partial && ref == "" {
				c.Require("source", c.Text("source"))
				creation.Put(spec, "chart.spec.chart", chart)
				creation.Put(spec, "chart.spec.version", c.Text("chart-version"))
				creation.Put(spec, "chart.spec.sourceRef", c.Reference("source", syntax.Rules{Kinds: creation.ChartSources}))
				creation.Put(spec, "chart.spec.reconcileStrategy", c.Text("reconcile-strategy"))
				creation.Put(spec, "chart.spec.interval", c.Duration("chart-interval"))
			}
			if c.Text("crds") != "" {
				creation.Put(spec, "install.crds", "Create")
			}
			if files := c.List("values"); len(files) > 0 {
				spec["values"] = values(c, files)
			}
		},
	}
}

// values merges values files. Later files take precedence.
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

// merge merges values into onto. Maps are merged recursively.
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
func valuesFrom(c *creation.Creation) any {
	var refs []any
	list := c.List("values-from")
	for i, ref := range c.References("values-from", syntax.Rules{Kinds: []string{"Secret", "ConfigMap"}, Local: true}) {
		if !slices.Contains(list[:i], list[i]) {
			refs = append(refs, ref)
		}
	}
	return refs
}
