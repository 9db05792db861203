package root

// pullRequestsTopic returns the help text on flux diff --base.
func pullRequestsTopic() string {
	return `How flux diff --base compares pull requests, without cluster access: it builds
the Kustomizations and HelmReleases in the cluster directory (--path) at two
revisions of the repository, renders only the affected ones, and compares
the objects.

Revisions:
  --base is a branch, tag or commit, or auto: the merge base with the target
  branch of the pull request, which CI systems pass in environment variables, or
  else with the default branch of origin. The other revision is the work tree
  with its uncommitted files, unless --head is set. The repository is not
  modified unless --fetch is set.

Clusters:
  Without --path, all cluster directories that are detected in either revision
  are compared: those that bootstrap created, that a Kustomization inside them
  applies, or that a FluxInstance syncs. To select clusters, repeat --path or
  quote a pattern. The report is grouped by cluster; objects that several
  clusters share are rendered once, and their changes come first.

Sources:
  Sources whose URL is a remote of the repository are read from the clone; a
  GitRepository with another reference is read at that reference. Set other
  sources with --map, --vendor or --local-sources. ExternalArtifacts are
  rendered from their ArtifactGenerator, ResourceSets as in flux-operator (see
  "flux help flux-operator"). Files that .sourceignore or spec.ignore excludes
  are omitted.

  Sources that cannot be rendered, such as other repositories, are listed as not
  compared. The result is undetermined if the change may affect a Kustomization
  or HelmRelease that is not compared: if its definition or its source changes,
  or files that it may read because the artifact of its source may have been
  pushed from this repository. If the remotes are on github.com or gitlab.com,
  artifacts of other owners in the registries of these hosts are assumed to be
  pushed from other repositories, unless the change is in a directory of the
  repository that ends with spec.path.

Secrets:
  Secret values are masked. Values encrypted with SOPS are decrypted for the
  comparison if a key is available, unless --untrusted is set.

Comment and status:
  --comment creates a comment on the pull request of the CI system, even if the
  comparison fails; later runs update it. --status sets the commit status. The
  token is read from the environment only: GITHUB_TOKEN, GITLAB_TOKEN,
  GITEA_TOKEN or BITBUCKET_TOKEN. For pull requests from forks, whose token has
  no write access, a warning is printed instead.`
}

// timelineTopic returns the help text on the order of changes.
func timelineTopic() string {
	return `Timelines list the changes to a cluster in order: objects that are created,
changed, restarted, recreated or deleted, Helm releases, and failures.

Prediction:
  flux diff --base --timeline predicts the order without a cluster. All objects
  are rendered, not only the affected ones. The order follows from
  dependsOn, wait and the objects that define each other. The timeline includes
  objects that are deleted before their replacement exists, and updates that
  fail because a field is immutable. Changes in the same step happen in any
  order; changes that depend on timing are marked. The prediction does not
  include API server defaults, webhooks, health checks and drift.

Test:
  flux test --base observes the order in a sandbox: the controllers reconcile
  the base and then the head. The timeline also lists workloads whose pods
  restart, and temporary failures.`
}

// testingTopic returns the help text on tests in a sandbox.
func testingTopic() string {
	return `Tests of a repository with the Flux controllers, in a temporary sandbox on this
machine: flux test, flux bisect and flux rehearse. They require no cluster and
no containers. A sandbox requires 2 GiB of memory and is always removed at the
end, even after Ctrl-C.

Differences from a cluster:
  Workloads do not run: their pods become ready without images. Alerts, image
  updates, and Kustomizations and HelmReleases for other clusters are suspended,
  so that nothing outside the sandbox changes. They do not block objects that
  wait for them. The sandbox installs Flux itself, with the version, components
  and patches of a FluxInstance: see "flux help flux-operator".

Sources:
  The sandbox serves the work tree, or a revision, instead of the remote
  repository. It has no network access: in flux test, --map replaces another
  source with a directory, and --vendor uses the sources that "flux test vendor"
  has fetched.

  With --allow-network, the controllers fetch sources from their URLs with the
  credentials in the repository. Use it only for trusted repositories: the
  controllers can also connect to local services and to the network of this
  machine. It is required on systems without network namespaces, such as macOS.

Secrets:
  Missing Secrets and ConfigMaps are reported with the objects that refer to
  them. --fake-secrets creates them with generated values, and serves stub
  values for data encrypted with SOPS; flux rehearse uses the same values for
  both versions. With --age-key-file, SOPS_AGE_KEY or SOPS_AGE_KEY_FILE,
  kustomize-controller decrypts the data.

Test files:
  flux test runs the test files of the repository (*.fluxtest.yaml), or the test
  files in its arguments, after the first reconciliation. They test how the
  controllers handle commits, other changes and faults; the sandbox receives
  notifications and image updates. Each step has a separate timeout.
  docs/test-files.md describes the format.

Pull requests:
  With --base, flux test reconciles the base, then the head, and then runs the
  test files of the head. The report includes a timeline: see "flux help
  timeline".`
}

// validationTopic returns the help text on the checks of flux validate.
func validationTopic() string {
	return `How flux validate checks manifests. It builds the Kustomizations and HelmReleases
in a cluster directory as in flux diff --base, and validates each object.

Checks:
  - unknown fields and invalid values (schemas of Kubernetes and of CRDs)
  - validation rules (CEL), and common rules of the API server that schemas do
    not contain, for example that a label selector matches the template's labels
  - references to sources and other Flux objects, dependsOn, missing namespaces
  - variables without a value, deprecated API versions
  - objects that two Kustomizations apply, Secrets that are not decrypted
  - custom resources in the Kustomization that installs their CRD with a chart
  - invalid expressions in healthCheckExprs and readyExpr
  - labels that are not strings, unknown fields in kustomization.yaml

CRDs:
  CRDs come from the repository and its charts. If the repository does not
  contain the Flux CRDs, the CRDs of --flux-version or the FluxInstance are
  used (see "flux help flux-operator"). Without either, only values that all
  supported Flux versions reject are errors; other violations and unknown fields
  are listed as not validated.

Other schemas:
  --schema-location sets the location of schemas for kinds whose CRD is not in
  the repository: a directory, or a URL template as in kubeconform with the
  fields .Group, .ResourceKind and .ResourceAPIVersion. The files are CRDs or
  JSON schemas. Downloaded schemas are cached for 24 hours. Objects whose schema
  cannot be read are listed, and the exit code is 2.

API server:
  --sandbox starts an empty API server with the default feature gates (others:
  --feature-gates Name=true) and no admission webhooks, dry-runs each object
  against it, and removes it.

Not in Git:
  Objects without a known schema, and Kustomizations and HelmReleases whose
  source, chart, variables or values are unavailable, are listed. References to
  objects that may be created on the cluster are notes: namespaces, Secrets,
  ConfigMaps, ServiceAccounts, roles, and the pods of Services, autoscalers and
  disruption budgets.`
}

// diagnosisTopic returns the help text on the checks and the report of flux why.
func diagnosisTopic() string {
	return `How flux why checks resources.

Namespace or cluster:
  flux why checks the Flux resources of all namespaces and the controllers, or
  with --namespace the Flux resources of that namespace. Problems are grouped by
  root cause; causes that block most resources come first. With several root
  causes, descriptions are shortened to 10 lines unless --verbose is set.

Resources:
  For one resource, flux why also checks for problems that its status does not
  show: undelivered notifications, and objects in its inventory that were
  deleted or changed outside Flux (drift), are still being deleted, contain
  SOPS-encrypted values, or are also applied by another resource.

  If no problem is found, the report shows the applied and the fetched revision
  and the time of the next fetch. In a clone of the source, it lists the fetched
  commits that are not applied yet, with their authors; elsewhere it shows only
  their range.

Progress:
  Resources that have been reconciling for less than a minute, or for less than
  the wait time of their controller, are listed as progress, not as problems.
  Deletions are not problems for the first half minute. If the controller is in
  a crash loop, all of these count as problems.

JSON and YAML:
  healthy     true if no problem was found
  checked     number of resources
  summary     problems, rootCauses, shown
  cases       object, root (code, message, details, remedies), the chain of
              findings from the object to the root cause, and blocked objects
  progress    cases that are not problems yet
  facts       revisions of the resource
  unapplied   commits that are not live
  unknown     objects that could not be checked`
}
