package root

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clusters"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/ci"
	"github.com/fluxkit/flux/internal/config"
	"github.com/fluxkit/flux/internal/terminal/fit"
	"github.com/fluxkit/flux/pkg/controllers"
)

// newTopic returns a constructor for a help topic, which has no run function.
func newTopic(name, short string, text func() string) func(*app.App) *cobra.Command {
	return func(*app.App) *cobra.Command {
		return &cobra.Command{Use: name, Short: short, Long: text()}
	}
}

// newExitCodes returns the help topic about the exit codes of all commands.
func newExitCodes(*app.App) *cobra.Command {
	topic := &cobra.Command{Use: "exit-codes", Short: "Exit codes of the commands"}
	topic.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		cmd.Long = command.ExitDocument(cmd.Root(), topicWidth)
		cmd.Parent().HelpFunc()(cmd, args)
	})
	return topic
}

// isTopic reports whether a command is a help topic. cobra considers commands
// without a run function help topics unless they have subcommands.
func isTopic(cmd *cobra.Command) bool {
	return cmd.HasParent() && cmd.IsAdditionalHelpTopicCommand() && !cmd.Hidden
}

// The width of help topics, and the indentation of variable lists.
const (
	topicWidth     = 80
	variableIndent = 2
)

// environmentTopic returns the help text on environment variables.
func environmentTopic() string {
	return `Environment variables of flux. Flags take precedence over variables, variables
over the configuration file.

Flags from variables and the configuration file:
  ` + strings.Join(config.Variables(), "\n  ") + `
      The global flag with the same name, such as --timeout for FLUX_TIMEOUT.
      Credentials, server addresses and TLS verification cannot be set this way.
  FLUX_CONFIG
      Path to the configuration file: YAML with the names of these flags as
      keys, such as "timeout: 10m". Default: flux/config.yaml in
      XDG_CONFIG_HOME, else in ~/.config. The file must not be writable by other
      users. "ui-guardrails" restricts the actions of flux ui by context:
        ui-guardrails:
        - {context: "prod-*", mode: read-only} # no actions
        - {context: "staging", mode: type-name} # type the name of the cluster
      "context-groups" defines groups of contexts: see "flux help clusters".
  FLUX_SYSTEM_NAMESPACE
      Default of --namespace and namespace of the Flux controllers
      (default flux-system).

Cluster:
  KUBECONFIG
      Paths to kubeconfig files, separated as in PATH. Default: ~/.kube/config.
  KUBERNETES_SERVICE_HOST
      Set in pods: without a kubeconfig, flux uses the ServiceAccount of the
      pod.
  HTTP_PROXY, HTTPS_PROXY, NO_PROXY
      Proxy for requests to the API server, registries and Git hosts.

Credentials:
  GITHUB_TOKEN, GITLAB_TOKEN, GITEA_TOKEN, BITBUCKET_TOKEN
      Token of the Git host for flux bootstrap and flux diff.
  GIT_PASSWORD
      Password for flux bootstrap git, or passphrase of the SSH key.
  SSH_AUTH_SOCK
      Socket of the SSH agent for flux bootstrap git.
  SOPS_AGE_KEY, SOPS_AGE_KEY_FILE
      age keys for flux build and flux diff, or the file with them. Default:
      sops/age/keys.txt in the configuration directory of the user, as in
      sops: XDG_CONFIG_HOME, else ~/.config, on macOS ~/Library/Application
      Support; on Windows %AppData%.
  VAULT_ADDR, SOPS_HC_VAULT_ALLOWLIST
      Address of the Vault server that decrypts SOPS documents, and the
      addresses that a token may be sent to (default VAULT_ADDR). The clients of
      AWS, Azure, Google Cloud and Vault also read their usual variables.
  AWS_PROFILE, AWS_ROLE_ARN
      Profile and role that SOPS documents may use for AWS KMS.
  AWS_EC2_METADATA_DISABLED=false, GCE_METADATA_HOST
      Use the metadata service of the machine for AWS and for Google Cloud.
  SOPS_GCP_KMS_ENDPOINT, SOPS_GCP_KMS_UNIVERSE_DOMAIN
      Endpoint and domain of Google Cloud KMS, instead of the default.
  AZURE_TOKEN_CREDENTIALS, AZURE_AUTHORITY_HOST
      Kind of Azure credentials, for example AzureCLICredential (default: from
      the other variables of Azure), and the server that issues tokens.
  SOPS_GPG_EXEC, GNUPGHOME
      Program and directory of gpg, which is run only if one of them is set.
  DOCKER_CONFIG, REGISTRY_AUTH_FILE
      Credentials of OCI registries as "docker login" and "podman login" store
      them.
  AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_PROFILE,
  AWS_ROLE_ARN, AWS_WEB_IDENTITY_TOKEN_FILE, AWS_CONTAINER_CREDENTIALS_FULL_URI
      Identity for --provider aws. Default: the default profile in ~/.aws, else
      the role of the task, pod or instance; AWS_EC2_METADATA_DISABLED=true
      disables the metadata service of the instance.
  AZURE_TENANT_ID, AZURE_CLIENT_ID, AZURE_CLIENT_SECRET,
  AZURE_FEDERATED_TOKEN_FILE, IDENTITY_ENDPOINT
      Identity for --provider azure. Default: the managed identity, else the
      login of the Azure CLI. AZURE_TOKEN_CREDENTIALS selects one kind.
  GOOGLE_APPLICATION_CREDENTIALS
      File with the identity for --provider gcp. Default: the login of the
      gcloud CLI, else the service account of the machine or pod; its metadata
      service is at GCE_METADATA_HOST if set.
  GITHUB_TOKEN, GITHUB_ACTOR, GITHUB_SERVER_URL
      Login for --provider github.
  CI_REGISTRY, CI_REGISTRY_USER, CI_JOB_TOKEN
      Set by GitLab: registry and login for --provider gitlab.
  GITLAB_OIDC_TOKEN
      OIDC token of a GitLab job (id_tokens) for --provider aws, azure or gcp.
      In GitHub Actions, flux requests the token. The variables select the
      identity: AWS_ROLE_ARN, AZURE_TENANT_ID and AZURE_CLIENT_ID, or
      GCP_WORKLOAD_IDENTITY_PROVIDER and optionally GCP_SERVICE_ACCOUNT.
  FLUX_TRIGGER_RECEIVER_OIDC_TOKEN
      OIDC token for flux trigger receiver.
  ACTIONS_ID_TOKEN_REQUEST_URL, ACTIONS_ID_TOKEN_REQUEST_TOKEN
      Set by GitHub and Forgejo Actions: flux requests OIDC tokens there, for
      trigger receiver and --provider aws, azure or gcp.

Git repository of flux diff --base:
  GIT_DIR, GIT_WORK_TREE
      The repository and its work tree, as for git. Default: the repository that
      contains the current directory.
  GITHUB_TOKEN, GH_TOKEN, GITLAB_TOKEN, GITEA_TOKEN, FORGEJO_TOKEN,
  BITBUCKET_TOKEN
      Token of the Git host for --comment and --status.
  SSL_CERT_FILE
      File with CA certificates, e.g. of a private Git host.
` + "  " + strings.TrimSpace(fit.Fold("  "+strings.Join(ci.Variables(), ", "), variableIndent, topicWidth)) + `
      Set by CI systems: the pull request, its target branch and its commits,
      for --base auto, --comment and --status.

Terminal:
  NO_COLOR
      Disables colors if set. TERM=dumb disables colors and redrawing.
  CLICOLOR, CLICOLOR_FORCE
      CLICOLOR=0 disables colors. CLICOLOR_FORCE=1 also colors messages and
      trees in pipes and files; tables in pipes never have colors.
  COLUMNS, LINES
      Size of the terminal. Default: the size that the terminal reports.
  CI
      Disables redrawing if set.

Plugins and processes:
  FLUXCD_PLUGINS
      Directory of plugins (default ~/.fluxcd/plugins).
  FLUXCD_PLUGIN_CATALOG
      URL of the plugin catalog.
  PATH
      Directories with more plugins, named flux-NAME.
  HOME, USERPROFILE
      Home directory; USERPROFILE on Windows if HOME is not set.
  GOMEMLIMIT
      Soft memory limit of flux, such as 1GiB (default 768MiB).`
}

func formattingTopic() string {
	return `Output of flux. Results are written to standard output; messages, progress and
prompts are written to standard error.

Formats of -o, --output for commands that list objects, such as get and events:
  json, yaml
      The objects as the API server returns them, without managed fields: a
      single named object, otherwise a List.
  name
      KIND.GROUP/NAME, one object per line.
  wide
      The table with more columns.
  jsonpath=TEMPLATE, jsonpath-file=FILE, jsonpath-as-json=TEMPLATE
      A JSONPath template, such as '{.status.conditions[*].message}'.
  go-template=TEMPLATE, go-template-file=FILE
      A Go template, such as '{{.metadata.name}}'.
  custom-columns=HEADER:PATH,…
      A table, such as NAME:.metadata.name,URL:.spec.url.
  kyaml
      A YAML subset with explicit quotes and brackets.

With more than one object, templates are applied to a List: use .items, or
'{range .items[*]}…{end}'. Other commands list their formats in their help. The
fields of reports in JSON and YAML are lower case and stable.

Tables on a terminal are fitted to its width: messages are truncated and less
important columns are omitted (--no-trunc prints everything), and colors mark
objects that are not ready. Output that is not a terminal has no colors and is
never truncated. --no-header omits the header of a table.

Secret values that are only displayed are masked; some commands have the flags
--mask-secrets and --show-secrets to override this.

  # Names and revisions of the Kustomizations that are not ready
  flux get ks -A --not-ready -o custom-columns=NAME:.metadata.name,REVISION:.status.lastAppliedRevision

  # Message of the Ready condition
  flux get ks my-app -o jsonpath='{.status.conditions[?(@.type=="Ready")].message}'`
}

// operatorTopic returns the help text on repositories that use flux-operator.
func operatorTopic() string {
	return `flux-operator installs Flux from a FluxInstance and applies the objects of
ResourceSets. flux diff --base, flux validate and flux build kustomization
--recursive render both without a cluster, including the Kustomizations and
HelmReleases in the result.

FluxInstance:
  The cluster directory contains the FluxInstance, and is its spec.sync.path.
  The source and the Kustomization that the operator creates are rendered with
  spec.kustomize.patches and spec.commonMetadata; the controllers are not.
  flux validate, test and rehearse use the newest embedded version that
  spec.distribution.version selects, unless --flux-version or --from is set.
  flux test also uses spec.components, spec.cluster.multitenant and
  spec.kustomize.patches.

ResourceSet:
  The templates in spec.resources, spec.resourcesTemplate and spec.steps are
  executed with each set of inputs, from spec.inputs and from the static
  ResourceSetInputProviders in the repository.

  Providers of other types read their inputs from a Git host, a registry or a
  service. Set them in a file: --inputs NAMESPACE/NAME=FILE. The file contains a
  list of inputs, or the provider with its status:

    kubectl get resourcesetinputprovider NAME -n NAMESPACE -o yaml >FILE

  Without inputs, the ResourceSet is listed as not rendered, and the exit code
  is 2 if a change may affect it.

  flux test runs flux-operator in the sandbox, with the inputs of --inputs, and
  exits with 2 if others are required. The operator sends no events there.

On a cluster:
  FluxInstance, ResourceSet (rset), ResourceSetInputProvider (rsip) and
  FluxReport are supported like Flux kinds in get, export, tree, status, why,
  deps, trace, events, suspend, resume, reconcile and wait:

    flux get rset -A --not-ready
    flux why rset/NAMESPACE/NAME

  Specify these kinds: "all" selects Flux kinds only. flux why without arguments
  includes them. flux check reports whether the FluxInstance is ready.

Values that differ on a cluster:
  inputs.id of static providers, which the operator derives from their UID, and
  the checksums that fluxcd.controlplane.io/checksumFrom requests: flux derives
  both from the repository. Objects that copy a ConfigMap or Secret that is not
  in the repository are rendered without its data.
`
}

// selectorsTopic returns the help text on selecting objects, with the kinds in the catalog.
func selectorsTopic() string {
	var kinds strings.Builder
	for _, k := range controllers.Known {
		words := slices.DeleteFunc(k.Words(), func(word string) bool { return strings.ContainsAny(word, "./ ") })
		slices.Sort(words)
		kinds.WriteString("\n  " + fit.Fold(k.Kind+": "+strings.Join(slices.Compact(words), ", "), 6, helpWidth-2))
	}
	return `Selection of objects on the command line.

  flux get kustomization NAME…      objects of a kind, in --namespace
  flux get ks NAME…                 the same with a short name
  flux get ks/NAME hr/NAME          objects of several kinds
  flux get ks/NAMESPACE/NAME        an object in another namespace
  flux get ks,hr                    all objects of several kinds
  flux get sources                  all objects of a kind family
  flux get all                      all objects of all kinds

Commands that change objects, and wait, require names or one of these flags:
  --all                             all objects in --namespace
  -l, --label-selector SELECTOR     objects with labels: 'team=blue',
                                    'env in (dev,test)', '!deprecated'
  -A, --all-namespaces              with --all or -l: in all namespaces
  --failed                          objects whose Ready condition is False (get,
                                    reconcile)

status, why, debug, diff ks and build ks show one or several objects: names,
KIND/NAME, -l and -A select them as above. Several objects are a list in JSON.
flux why ks -A and -l report the root causes of the selected objects together.

flux get also filters by status. An object is listed if it matches all filters:
  --not-ready                       objects that are not ready for any reason
  --stalled                         objects that are not retried until changed
  --suspended                       suspended objects
  --status-selector TYPE=STATUS     objects with a condition: Ready=False, for
                                    example, or Ready!=True
  --kind KIND,…                     objects of these kinds

The namespace is --namespace, else FLUX_NAMESPACE, FLUX_SYSTEM_NAMESPACE or
flux-system. --ns-follows-kube-context selects the namespace of the kubeconfig
context.

Kind names are case-insensitive. FAMILY/NAME, as in source/git/my-app, and
PLURAL.GROUP, as in alerts.notification.toolkit.fluxcd.io, are also accepted.

Kinds of projects that extend Flux, such as Terraform, are selected by the names
in their CRD: flux get terraforms. The CRD must have the label
app.kubernetes.io/part-of: flux or an API group ending in .fluxcd.io. If a name
resembles the name of a Flux kind, use PLURAL.GROUP.
` + kinds.String()
}

// newHelp returns the help command. Unlike cobra's, it fails for unknown commands and completes
// help topics.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		Long: `Print the help of a command, such as "flux help get kustomizations", or of a
topic, such as "flux help environment".`,
		Example: `  # Print the help of a command
  flux help get kustomizations

  # List the environment variables
  flux help environment`,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 && found.HasSubCommands() {
				return command.NoSubcommand(found, rest)
			}
			if found.Context() == nil {
				found.SetContext(cmd.Context())
			}
			return found.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var words []string
			for _, c := range found.Commands() {
				if (c.IsAvailableCommand() || isTopic(c)) && strings.HasPrefix(c.Name(), prefix) {
					words = append(words, c.Name()+"\t"+c.Short)
				}
			}
			return words, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// clustersTopic returns the text about commands on several clusters.
func clustersTopic() string {
	return `Commands on several clusters: --context selects several kubeconfig contexts.

Selection:
  --context a,b             the contexts a and b
  --context 'prod-*'        contexts that match a pattern
  --context 'prod-*,^*-eu'  contexts that match only the first pattern
  --context '^test'         all contexts except test
  --context production      a group in the configuration file:
      context-groups:
      - {name: production, contexts: ["prod-*", "^prod-test"]}

  A context with the name of a group takes precedence. A name or pattern that
  matches no context is an error.

Commands:
` + fit.Fold("  "+strings.Join(clusters.Commands(), ", ")+".", variableIndent, topicWidth) + `

Output:
  Tables have the column CLUSTER. Other output has a section for each cluster.
  -o json and -o yaml print one document: "clusters" has the cluster, exitCode,
  error and result of each context, in the order of the selection. Messages on
  standard error begin with the context. --watch is not supported. flux ui shows
  the resources of all clusters in one list.

Failures:
  The command runs on up to 8 clusters at the same time, with --timeout for
  each. A cluster that cannot be reached does not delay the others. flux wait
  stops on all clusters when it fails on one.

Exit codes:
  2 if the result is undetermined for a cluster, for example because it cannot
  be reached; else 1 if the command failed on a cluster; else 0.`
}
