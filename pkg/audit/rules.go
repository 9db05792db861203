package audit

import (
	"slices"
	"sync"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff/review"
	"github.com/fluxkit/flux/pkg/validate"
)

// Rules returns all rules: about secrets, sources, Kustomizations, HelmReleases, tenants, image automation, flux-operator,
// and workloads.
func Rules() []Rule { return rules() }

var rules = sync.OnceValue(func() []Rule {
	rules := slices.Clone(own)
	for _, r := range review.Rules() {
		if r.About() {
			rules = append(rules, standing(r))
		}
	}
	return rules
})

var own = []Rule{
	{
		ID: "plain-secret", Severity: validate.Invalid, Summary: "A Secret is in Git in plain text.", Offline: true, find: plainSecrets,
		Reason: "Users who can read the repository, a clone or its history can read the values. Encrypt the Secret with SOPS, or create it " +
			"on the cluster, and replace the credentials.",
	},
	{
		ID: "plain-credential", Severity: validate.Warning, Summary: "A field looks like a password or token in plain text.", find: plainCredentials,
		Reason: "Chart values, ConfigMaps, substitutions and environment variables are not confidential. Use a Secret: spec.valuesFrom of a " +
			"HelmRelease, postBuild.substituteFrom of a Kustomization, or secretKeyRef of a container. A URL with a password is always reported.",
	},
	{
		ID: "insecure-source", Severity: validate.Invalid, Summary: "A source is fetched without TLS.", find: insecureSources,
		Reason: "An attacker on the network path can replace what Flux applies. Use https, ssh, or a registry with TLS.",
	},
	{
		ID: "unpinned-chart", Severity: validate.Warning, Summary: "A release does not pin its chart version.", find: unpinnedCharts,
		Reason: "Without a version, or with \"*\", latest or a branch of a GitRepository, each new chart version is installed without a commit. " +
			"Set a version or a range such as 1.x.",
	},
	{
		ID: "helm-repository-oci", Severity: validate.Note, Summary: "A HelmRepository has the type oci.", find: ociRepositories,
		Reason: "The type is in maintenance mode. An OCIRepository with spec.chartRef of the HelmRelease supports digests, verification and events.",
	},
	{
		ID: "registry-provider", Severity: validate.Note, Summary: "A cloud provider's registry is used without credentials.", find: registryProviders,
		Reason: "With spec.provider, the controller authenticates with the workload identity of its pod. Without it, and without a Secret, a private " +
			"registry rejects the request.",
	},
	{
		ID: "git-provider", Severity: validate.Note, Summary: "A repository on GitHub is fetched with a token.", find: gitProviders,
		Reason: "A personal access token belongs to a user, and stops working when the user is removed. A GitHub App (spec.provider: github) belongs to the organization.",
	},
	{
		ID: "prune", Severity: validate.Warning, Summary: "A Kustomization does not prune objects that are removed from Git.", find: prunes,
		Reason: "Without spec.prune, removed objects stay on the cluster, and nothing reports them.",
	},
	{
		ID: "wait", Severity: validate.Warning, Summary: "A Kustomization on which others depend does not wait for its objects.", find: waits,
		Reason: "Without spec.wait or spec.healthChecks it is ready as soon as its objects are applied, and the others start before the objects are ready.",
	},
	{
		ID: "timeout", Severity: validate.Note, Summary: "A Kustomization with health checks has no timeout.", find: timeouts,
		Reason: "The default of spec.timeout is the interval: with an interval of 1h, a failed rollout is reported after an hour.",
	},
	{
		ID: "retry-interval", Severity: validate.Note, Summary: "A failed Kustomization is retried only after its interval.", find: retryIntervals,
		Reason: "The default of spec.retryInterval is the interval. Set it if the interval is longer than 10 minutes.",
	},
	{
		ID: "missing-dependency", Severity: validate.Warning, Summary: "An object does not declare a required dependency.", Offline: true, find: missingDependencies,
		Reason: "Another Kustomization or HelmRelease applies its CustomResourceDefinition, ConfigMap or Secret. On a new cluster, the reconciliation fails until then. Set spec.dependsOn.",
	},
	{
		ID: "overlapping-paths", Severity: validate.Warning, Summary: "A Kustomization applies the directory of another Kustomization.", Offline: true, find: overlappingPaths,
		Reason: "Both apply the same objects, and either may prune objects that the other still applies. Exclude the directory, or remove one of the Kustomizations.",
	},
	{
		ID: "force", Severity: validate.Warning, Summary: "A Kustomization recreates objects, or a HelmRelease replaces them.", find: forces,
		Reason: "With spec.force of a Kustomization, a change to an immutable field deletes the object, with its pods and its data. Set the field only for changes that require it.",
	},
	{
		ID: "suspended", Severity: validate.Warning, Summary: "An object is suspended without a reason.", find: suspensions,
		Reason: "Other users do not know whether they may resume it. Set the annotation " + controllers.SuspendReasonAnnotation + ", as flux suspend --reason does.",
	},
	{
		ID: "remediation", Severity: validate.Warning, Summary: "A HelmRelease does not retry a failed installation or upgrade.", find: remediations,
		Reason: "By default, a failed release stays failed until its chart, its values or its spec change. Set a strategy such as RetryOnFailure, or remediation.retries.",
	},
	{
		ID: "drift-detection", Severity: validate.Note, Summary: "A HelmRelease does not detect drift.", find: driftDetections,
		Reason: "helm-controller does not notice that an object of the release was changed or deleted. Set spec.driftDetection.mode to enabled or warn.",
	},
	{
		ID: "create-namespace", Severity: validate.Note, Summary: "A HelmRelease creates its namespace.", find: createdNamespaces,
		Reason: "The namespace then has no labels, such as those for Pod Security, and is not deleted with the release. Add the Namespace to Git.",
	},
	{
		ID: "storage-namespace", Severity: validate.Note, Summary: "A release is stored in a different namespace than its objects.", find: storageNamespaces,
		Reason: "helm list -n TARGET does not show it, and an installation with helm in the target namespace is not recognized. Set spec.storageNamespace.",
	},
	{
		ID: "default-namespace", Severity: validate.Note, Summary: "A workload is deployed to the default namespace.", find: defaultNamespaces,
		Reason: "Quotas, network policies and permissions cannot isolate applications in one namespace. Use a namespace for each application.",
	},
	{
		ID: "watch-label", Severity: validate.Note, Summary: "A change to a ConfigMap or Secret is not applied immediately.", Offline: true, find: watchLabels,
		Reason: "ConfigMaps and Secrets in valuesFrom and substituteFrom are read at the next reconciliation, unless they have the label " + watchLabel + ": Enabled.",
	},
	{
		ID: "cross-namespace", Severity: validate.Note, Summary: "An object refers to a source in another namespace.", find: crossNamespaces,
		Reason: "Controllers with --no-cross-namespace-refs, as on multi-tenant clusters, reject such references.",
	},
	{
		ID: "service-account", Severity: validate.Warning, Summary: "A tenant's object is applied with the permissions of the controller.", Offline: true, find: serviceAccounts,
		Reason: "The controller is cluster-admin by default. With spec.serviceAccountName, the permissions of the tenant apply.",
	},
	{
		ID: "tenant-label", Severity: validate.Note, Summary: "An admission policy for tenants does not select the namespace of a tenant.", Offline: true, find: unlabeledTenants,
		Reason: "The namespaceSelector of a ValidatingAdmissionPolicyBinding requires a label such as toolkit.fluxcd.io/role: tenant. The policy does not check objects in namespaces without it.",
	},
	{
		ID: "image-filter", Severity: validate.Note, Summary: "An ImagePolicy does not filter tags.", find: imageFilters,
		Reason: "spec.filterTags selects the tags that are meant for deployment. Without it, a tag such as 99.0.0-test may be selected.",
	},
	{
		ID: "image-push-branch", Severity: validate.Note, Summary: "Image updates are pushed to the deployed branch.", find: pushBranches,
		Reason: "They are deployed without a review. Set spec.git.push.branch to another branch, and open a pull request from it.",
	},
	{
		ID: "cluster-size", Severity: validate.Note, Summary: "A FluxInstance has no cluster size.", find: clusterSizes,
		Reason: "spec.cluster.size sets the concurrency and the resource limits of the controllers.",
	},
	{
		ID: "mutable-image", Severity: validate.Warning, Summary: "A container image has no fixed version.", Offline: true, find: mutableImages,
		Reason: "With the tag latest, or without a tag, nodes may run different images, and a restart may change the image without a commit. Use a version or a digest.",
	},
	{
		ID: "writable-root-filesystem", Severity: validate.Note, Summary: "A container may write to its root filesystem.", Offline: true, find: writableRoots,
		Reason: "readOnlyRootFilesystem is set to false, often by a patch. An attacker can replace programs in the container.",
	},
}

// standing turns a rule about changes into a rule about objects.
func standing(r review.Rule) Rule {
	return Rule{
		ID: r.ID, Severity: validate.Warning, Summary: "An object " + r.Effect + ".", Reason: r.Explanation, Offline: true,
		find: func(s *state, o *Object) []hit {
			if s.ofFlux(o) {
				return nil
			}
			var found []hit
			for _, at := range r.In(o.Unstructured.Object) {
				h := hit{field: at.Field, value: at.Value, message: r.Effect, severity: ofChart(o)}
				if at.Detail != "" {
					h.message += ": " + at.Detail
				}
				found = append(found, h)
			}
			return found
		},
	}
}
