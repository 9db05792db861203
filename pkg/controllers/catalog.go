package controllers

const (
	sourceGroup       = "source.toolkit.fluxcd.io"
	kustomizeGroup    = "kustomize.toolkit.fluxcd.io"
	helmGroup         = "helm.toolkit.fluxcd.io"
	notificationGroup = "notification.toolkit.fluxcd.io"
	imageGroup        = "image.toolkit.fluxcd.io"
	extensionsGroup   = "source.extensions.fluxcd.io"

	steered   = Get | Export | Suspend | Resume | Reconcile | Delete | Create
	inventory = "status.inventory.entries[]"
)

var (
	suspendField = Suspension{Field: Path{"spec.suspend"}}
	artifact     = Path{"status.artifact.revision"}
	sourceTable  = []Column{revision(artifact), suspended}
)

// Kinds is the catalog, in the order in which `get all` lists the kinds and
// uninstall removes their finalizers.
var Kinds = []Kind{
	{
		Group: sourceGroup, Version: "v1", Older: []string{"v1beta2"}, Kind: "OCIRepository", Resource: "ocirepositories",
		Examples:   Examples{Names: [2]string{"app-manifests", "app-chart"}, Revision: "1.2.0@sha256:2c26b46b"},
		Required:   "--url=<url> --tag=<tag>",
		Controller: "source-controller", Family: "source", Word: "oci", Plural: "oci", Verbs: steered | Tree,
		Columns: sourceTable, Suspension: suspendField, Done: "fetched revision %s", Result: artifact,
		Fetch:   Fetch{Address: "spec.url", Revision: "spec.ref", Pin: "spec.ref.digest", Credentials: "spec.secretRef", Login: "oci", CA: "spec.certSecretRef"},
		Secrets: []string{"spec.secretRef", "spec.certSecretRef", "spec.proxySecretRef", "spec.verify.secretRef", "spec.verify.trustedRootSecretRef"},
	},
	{
		Group: sourceGroup, Version: "v1", Older: []string{"v1beta2", "v1beta1"}, Kind: "Bucket", Resource: "buckets",
		Examples:   Examples{Names: [2]string{"my-app", "shared-config"}},
		Required:   "--bucket-name=<bucket> --endpoint=<host>",
		Controller: "source-controller", Family: "source", Word: "bucket", Plural: "bucket", Verbs: steered | Tree,
		Columns: sourceTable, Suspension: suspendField, Done: "fetched revision %s", Result: artifact,
		Fetch:   Fetch{Address: "spec.endpoint", Bucket: "spec.bucketName", Revision: "spec.bucketName", Credentials: "spec.secretRef", CA: "spec.certSecretRef"},
		Secrets: []string{"spec.secretRef", "spec.certSecretRef", "spec.proxySecretRef", "spec.sts.secretRef", "spec.sts.certSecretRef"},
	},
	{
		Group: sourceGroup, Version: "v1", Older: []string{"v1beta2", "v1beta1"}, Kind: "GitRepository", Resource: "gitrepositories",
		Examples:   Examples{Names: [2]string{"my-app", "flux-system"}, Revision: "main@sha1:6f9a1b2c"},
		Required:   "--url=<url> --branch=<branch>",
		Controller: "source-controller", Family: "source", Word: "git", Plural: "git", Verbs: steered | Tree,
		Columns: sourceTable, Suspension: suspendField, Done: "fetched revision %s", Result: artifact,
		Fetch:   Fetch{Address: "spec.url", Revision: "spec.ref", Pin: "spec.ref.commit", Credentials: "spec.secretRef", Login: "git", CA: "spec.secretRef"},
		Refs:    []Ref{{Relation: "include", Path: Path{"spec.include[]"}, Field: "repository", Kinds: []string{"GitRepository"}}},
		Secrets: []string{"spec.secretRef", "spec.proxySecretRef", "spec.verify.secretRef"},
	},
	{
		Group: sourceGroup, Version: "v1", Older: []string{"v1beta2", "v1beta1"}, Kind: "HelmRepository", Resource: "helmrepositories",
		Examples:   Examples{Names: [2]string{"podinfo", "team-charts"}},
		Required:   "--url=<url>",
		Controller: "source-controller", Family: "source", Word: "helm", Plural: "helm", Verbs: steered | Tree,
		Columns: sourceTable, Suspension: suspendField, Done: "fetched revision %s", Result: artifact,
		Static:  func(o Object) bool { return Path{"spec.type"}.String(o) == "oci" },
		Fetch:   Fetch{Address: "spec.url", Charts: true, Credentials: "spec.secretRef", Login: "helm", CA: "spec.certSecretRef"},
		Secrets: []string{"spec.secretRef", "spec.certSecretRef"},
	},
	{
		Group: sourceGroup, Version: "v1", Older: []string{"v1beta2", "v1beta1"}, Kind: "HelmChart", Resource: "helmcharts",
		Examples:   Examples{Names: [2]string{"apps-my-app", "apps-my-api"}, Revision: "1.2.0"},
		Required:   "--source=<source> --chart=<chart>",
		Controller: "source-controller", Family: "source", Word: "chart", Plural: "chart", Verbs: steered | Tree,
		Columns: sourceTable, Suspension: suspendField, Done: "fetched revision %s", Result: artifact,
		Attempts: []Attempt{{Path: Path{"status.observedSourceArtifactRevision"}}},
		Source:   &Ref{Relation: "source", Path: Path{"spec.sourceRef"}, Kinds: []string{"HelmRepository", "GitRepository", "Bucket"}},
		Fetch:    Fetch{Revision: "spec.version"},
		Secrets:  []string{"spec.verify.secretRef"},
	},
	{
		Group: sourceGroup, Version: "v1", Kind: "ExternalArtifact", Resource: "externalartifacts",
		Examples:   Examples{Names: [2]string{"backend", "frontend"}},
		Controller: "source-controller", Family: "source", Word: "external", Plural: "external", Verbs: Get | Export | Tree,
		Columns: []Column{revision(artifact), {Header: "SOURCE", Field: Path{"spec.sourceRef"}, Value: generator}}, Result: artifact, Server: "source-watcher",
		Source: &Ref{Relation: "source", Path: Path{"spec.sourceRef"}, Kinds: []string{"ArtifactGenerator"}, CrossNamespace: true},
	},
	{
		Group: extensionsGroup, Version: "v1beta1", Kind: "ArtifactGenerator", Resource: "artifactgenerators",
		Examples:   Examples{Names: [2]string{"my-app", "monorepo"}},
		Controller: "source-watcher", Family: "artifact", Word: "generator", Plural: "generators", Verbs: Get | Export | Tree,
		Columns: []Column{suspended}, Inventory: Path{"status.inventory[]"}, Done: "%s",
		Suspension: Suspension{Annotation: "source.extensions.fluxcd.io/reconcile", Value: "disabled"},
		Produces:   &Ref{Relation: "source", Path: Path{"spec.artifacts[]"}, Kinds: []string{"ExternalArtifact"}},
		Source: &Ref{
			Relation: "source", Path: Path{"spec.sources[]"}, CrossNamespace: true,
			Kinds: []string{"Bucket", "GitRepository", "OCIRepository", "HelmChart", "ExternalArtifact"},
		},
	},
	{
		Group: imageGroup, Version: "v1", Older: []string{"v1beta2", "v1beta1"}, Kind: "ImageRepository", Resource: "imagerepositories",
		Examples:   Examples{Names: [2]string{"my-app", "my-api"}},
		Required:   "--image=<image>",
		Controller: "image-reflector-controller", Family: "image", Word: "repository", Plural: "repository", Verbs: steered,
		Columns: []Column{text("LAST SCAN", "status.lastScanResult.scanTime"), suspended}, Suspension: suspendField,
		Done: "scan fetched %s tags", Result: Path{"status.lastScanResult.tagCount"},
		Fetch:   Fetch{Address: "spec.image", Credentials: "spec.secretRef", Login: "oci", CA: "spec.certSecretRef"},
		Secrets: []string{"spec.secretRef", "spec.certSecretRef", "spec.proxySecretRef"},
	},
	{
		Group: imageGroup, Version: "v1", Older: []string{"v1beta2", "v1beta1"}, Kind: "ImagePolicy", Resource: "imagepolicies",
		Examples:   Examples{Names: [2]string{"my-app", "my-api"}},
		Required:   "--image-ref=<name> --select-semver=<range>",
		Controller: "image-reflector-controller", Family: "image", Word: "policy", Plural: "policy", Verbs: steered,
		Columns: []Column{image, imageTag}, Suspension: suspendField,
		Done: "selected tag %s", Result: Path{"status.latestRef.tag", "status.latestImage"},
		Refs: []Ref{{Relation: "image", Path: Path{"spec.imageRepositoryRef"}, Kinds: []string{"ImageRepository"}, CrossNamespace: true}},
	},
	{
		Group: imageGroup, Version: "v1", Older: []string{"v1beta2", "v1beta1"}, Kind: "ImageUpdateAutomation", Resource: "imageupdateautomations",
		Examples:   Examples{Names: [2]string{"staging", "production"}},
		Controller: "image-automation-controller", Family: "image", Word: "update", Plural: "update", Verbs: steered,
		Columns: []Column{text("LAST RUN", "status.lastAutomationRunTime"), suspended}, Suspension: suspendField,
		Done: "last pushed commit %s", Result: Path{"status.lastPushCommit"},
		Source:  &Ref{Relation: "source", Path: Path{"spec.sourceRef"}, Kinds: []string{"GitRepository"}, CrossNamespace: true},
		Fetch:   Fetch{Revision: "spec.git.checkout.ref"},
		Secrets: []string{"spec.git.commit.signingKey.secretRef"},
		Results: &Ref{Relation: "image", Path: Path{"status.observedPolicies"}, Kinds: []string{"ImagePolicy"}, Keyed: true},
	},
	{
		Group: helmGroup, Version: "v2", Older: []string{"v2beta2", "v2beta1"}, Kind: "HelmRelease", Resource: "helmreleases",
		Examples:   Examples{Names: [2]string{"my-app", "my-api"}, Revision: "1.2.0"},
		Required:   "--source=<source> --chart=<chart>",
		Controller: "helm-controller", Word: "helmrelease", Plural: "helmreleases", Short: "hr", Verbs: steered | Tree | History | Rollback,
		Columns:    []Column{revision(Path{"status.history[0].chartVersion", "status.lastAppliedRevision", "status.lastAttemptedRevision"}), suspended},
		Suspension: suspendField, Done: "applied revision %s", Inventory: Path{inventory},
		Result: Path{"status.history[0].chartVersion", "status.lastAppliedRevision"},
		Drift:  Path{"spec.driftDetection.mode"}, Manager: "helm-controller", Release: true, Prunes: true, Actions: []string{"install", "upgrade"},
		Keep: Setting{"helm.sh/resource-policy", "keep"},
		Attempts: []Attempt{
			{Of: "HelmChart", Path: Path{"status.lastAttemptedRevision"}},
			{Of: "OCIRepository", Path: Path{"status.lastAttemptedRevisionDigest"}, Digest: true},
		},
		Source: &Ref{
			Relation: "source", Path: Path{"spec.chartRef", "spec.chart.spec.sourceRef"}, CrossNamespace: true,
			Kinds: []string{"OCIRepository", "HelmChart", "ExternalArtifact", "HelmRepository", "GitRepository", "Bucket"},
		},
		Refs:    []Ref{{Relation: "dependency", Path: Path{"spec.dependsOn[]"}, Kinds: []string{"HelmRelease"}, CrossNamespace: true}},
		Health:  &Health{Reasons: []string{"InstallFailed", "UpgradeFailed", "Progressing", "ProgressingWithRetry"}},
		Secrets: []string{"spec.kubeConfig.secretRef"}, Attempted: []string{"TestSuccess", "Released"},
	},
	{
		Group: kustomizeGroup, Version: "v1", Older: []string{"v1beta2", "v1beta1"}, Kind: "Kustomization", Resource: "kustomizations",
		Examples:   Examples{Names: [2]string{"my-app", "infrastructure"}, Revision: "main@sha1:6f9a1b2c"},
		Required:   "--source=<source>",
		Controller: "kustomize-controller", Word: "kustomization", Plural: "kustomizations", Short: "ks", Verbs: steered | Tree | History | Rollback,
		Columns:    []Column{revision(Path{"status.lastAppliedRevision"}), suspended},
		Suspension: suspendField, Done: "applied revision %s", Result: Path{"status.lastAppliedRevision"}, Inventory: Path{inventory},
		Manager: "kustomize-controller", Recorded: true, Decryption: Path{"spec.decryption.provider"},
		Recreate: "kustomize.toolkit.fluxcd.io/force",
		Keep:     Setting{"kustomize.toolkit.fluxcd.io/prune", "disabled"},
		Attempts: []Attempt{{Path: Path{"status.lastAttemptedRevision"}}},
		Source: &Ref{
			Relation: "source", Path: Path{"spec.sourceRef"}, CrossNamespace: true,
			Kinds: []string{"OCIRepository", "GitRepository", "Bucket", "ExternalArtifact"},
		},
		Refs: []Ref{{Relation: "dependency", Path: Path{"spec.dependsOn[]"}, Kinds: []string{"Kustomization"}, CrossNamespace: true}},
		Health: &Health{
			Checks: Ref{Relation: "health", Path: Path{"spec.healthChecks[]"}, CrossNamespace: true}, All: Path{"spec.wait"},
			Reasons: []string{"HealthCheckFailed", "Progressing", "ProgressingWithRetry"},
		},
		Secrets: []string{"spec.decryption.secretRef", "spec.kubeConfig.secretRef"},
	},
	{
		Group: notificationGroup, Version: "v1", Older: []string{"v1beta2", "v1beta1"}, Kind: "Receiver", Resource: "receivers",
		Examples:   Examples{Names: [2]string{"github-webhook", "registry-webhook"}},
		Controller: "notification-controller", Word: "receiver", Plural: "receivers", Verbs: steered,
		Columns: []Column{suspended}, Suspension: suspendField, Done: "webhook path %s", Result: Path{"status.webhookPath", "status.url"}, Webhook: true,
		Refs:  []Ref{{Relation: "resource", Path: Path{"spec.resources[]"}, CrossNamespace: true}},
		Fetch: Fetch{Credentials: "spec.secretRef", Login: "receiver"}, Secrets: []string{"spec.secretRef"},
	},
	{
		Group: notificationGroup, Version: "v1", Older: []string{"v1beta3", "v1beta2", "v1beta1"}, Portable: "v1beta3", Kind: "Provider", Resource: "providers",
		Removed: []Removed{
			{Field: "interval", In: "v1"},
			{Field: "proxy", In: "v1", Instead: "proxySecretRef", Remedy: "create a Secret with the URL under the key address, and set spec.proxySecretRef"},
		},
		Examples:   Examples{Names: [2]string{"slack", "msteams"}},
		Required:   "--type=<type> --address=<url>",
		Controller: "notification-controller", Word: "alert-provider", Plural: "alert-providers",
		Verbs: Get | Export | Suspend | Resume | Delete | Create, Suspension: suspendField, Static: noConditions,
		Fetch:   Fetch{Address: "spec.address", Credentials: "spec.secretRef", CA: "spec.certSecretRef"},
		Secrets: []string{"spec.secretRef", "spec.certSecretRef", "spec.proxySecretRef"},
	},
	{
		Group: notificationGroup, Version: "v1", Older: []string{"v1beta3", "v1beta2", "v1beta1"}, Portable: "v1beta3", Kind: "Alert", Resource: "alerts",
		Removed:    []Removed{{Field: "summary", In: "v1", Moved: "eventMetadata.summary"}},
		Examples:   Examples{Names: [2]string{"on-call", "deployments"}},
		Controller: "notification-controller", Word: "alert", Plural: "alerts",
		Verbs:   Get | Export | Suspend | Resume | Delete | Create,
		Columns: []Column{suspended}, Suspension: suspendField, Static: noConditions,
		Refs: []Ref{
			{Relation: "provider", Path: Path{"spec.providerRef"}, Kinds: []string{"Provider"}},
			{Relation: "resource", Path: Path{"spec.eventSources[]"}, CrossNamespace: true},
		},
	},
}
