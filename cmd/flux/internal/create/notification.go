package create

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/syntax"
	"github.com/fluxkit/flux/cmd/flux/internal/create/creation"
)

// eventKinds lists the kinds that Alerts and Receivers can refer to.
var eventKinds = []string{
	"Bucket", "GitRepository", "Kustomization", "HelmRelease", "HelmChart", "HelmRepository", "ImageRepository", "ImagePolicy",
	"ImageUpdateAutomation", "OCIRepository", "ArtifactGenerator", "ExternalArtifact",
}

// severities lists the event severities of an Alert.
var severities = []string{"info", "error"}

// providerTypes lists the types of a notification Provider.
var providerTypes = []string{
	"slack", "discord", "msteams", "rocket", "generic", "generic-hmac", "github", "gitlab", "gitea", "giteapullrequestcomment",
	"bitbucketserver", "bitbucket", "azuredevops", "googlechat", "googlepubsub", "webex", "sentry", "azureeventhub", "telegram",
	"lark", "matrix", "opsgenie", "alertmanager", "grafana", "githubdispatch", "githubpullrequestcomment",
	"gitlabmergerequestcomment", "pagerduty", "datadog", "nats", "zulip", "otel",
}

// newProviderTypes lists the types that need Flux 2.10.
var newProviderTypes = []string{"zoom", "incident.io", "mastodon"}

// objects parses the references to event sources or resources of a flag.
func objects(c *creation.Creation, flag string, list []string) []any {
	var refs []any
	for _, s := range list {
		refs = append(refs, creation.RefField(c.Refer(flag, s, syntax.Rules{Kinds: eventKinds, Any: true})))
	}
	return refs
}

func buildAlert() creation.Builder {
	var provider, severity string
	var sources []string
	return creation.Builder{
		Kind: "Alert",
		Example: `  # Send an alert for every failure in a namespace
  flux create alert on-error --provider-ref=slack --event-severity=error --event-source='Kustomization/*' --event-source='HelmRelease/*'

  # Send all events of one object in another namespace
  flux create alert app --provider-ref=slack --event-source=Kustomization/app.apps`,
		Refers: map[string][]string{"provider-ref": {"Provider"}, "event-source": eventKinds},
		Fields: map[string][]string{"provider-ref": {"providerRef"}, "event-severity": {"eventSeverity"}, "event-source": {"eventSources"}},
		Words:  map[string][]string{"event-severity": severities},
		Flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&provider, "provider-ref", "", "name of the Provider that receives the alerts")
			fs.StringVar(&severity, "event-severity", "", "minimum severity of the events: info, error (default info)")
			fs.StringSliceVar(&sources, "event-source", nil, "objects to send events for, as KIND/NAME[.NAMESPACE]; '*' for all names")
		},
		Spec: func(c *creation.Creation) map[string]any {
			spec := map[string]any{}
			c.Require("provider-ref", provider)
			c.Require("event-source", strings.Join(sources, ","))
			c.ObjectName("provider-ref", provider)
			c.OneOf("event-severity", severity, severities)
			creation.Put(spec, "providerRef.name", provider)
			creation.Put(spec, "eventSeverity", severity)
			creation.Put(spec, "eventSources", objects(c, "event-source", sources))
			return spec
		},
	}
}

func buildProvider() creation.Builder {
	var typ, channel, username, address, secretRef string
	types := slices.Concat(providerTypes, newProviderTypes)
	return creation.Builder{
		Kind: "Provider",
		Example: `  # Send to a Slack channel; the webhook URL is in a Secret
  flux create alert-provider slack --type=slack --channel=general --secret-ref=slack-url

  # Update the commit status on GitHub
  flux create alert-provider status --type=github --address=https://github.com/org/app --secret-ref=github-token`,
		Refers: map[string][]string{"secret-ref": {"Secret"}},
		Fields: map[string][]string{"type": {"type"}, "channel": {"channel"}, "username": {"username"}, "address": {"address"}, "secret-ref": {"secretRef"}},
		Words:  map[string][]string{"type": types},
		Flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&typ, "type", "", "type of the provider: "+strings.Join(types, ", "))
			fs.StringVar(&channel, "channel", "", "channel, room or project to post to")
			fs.StringVar(&username, "username", "", "user name to post as")
			fs.StringVar(&address, "address", "", "URL of the webhook or API to send alerts to")
			fs.StringVar(&secretRef, "secret-ref", "", "name of the Secret with the token or the address")
		},
		Spec: func(c *creation.Creation) map[string]any {
			spec := map[string]any{}
			c.Require("type", typ)
			c.OneOf("type", typ, types)
			if slices.Contains(newProviderTypes, typ) {
				c.RequireFlux("type", typ, "2.10")
			}
			c.ObjectName("secret-ref", secretRef)
			if u, err := url.Parse(address); err != nil {
				c.CheckFlag("address", errors.New("not a URL"))
			} else if _, has := u.User.Password(); has {
				c.CheckFlag("address", errors.New("the URL contains a password: store the address in a Secret and set --secret-ref"))
			}
			creation.Put(spec, "type", typ)
			creation.Put(spec, "channel", channel)
			creation.Put(spec, "username", username)
			creation.Put(spec, "address", address)
			creation.Put(spec, "secretRef.name", secretRef)
			return spec
		},
	}
}

func buildReceiver() creation.Builder {
	var typ, secretRef string
	var events, resources []string
	return creation.Builder{
		Kind: "Receiver",
		Example: `  # Reconcile a GitRepository on every push to GitHub
  flux create receiver app --type=github --event=ping --event=push --secret-ref=webhook-token --resource=GitRepository/app`,
		Refers: map[string][]string{"secret-ref": {"Secret"}, "resource": eventKinds},
		Fields: map[string][]string{"type": {"type"}, "event": {"events"}, "resource": {"resources"}, "secret-ref": {"secretRef"}},
		Flags: func(fs *pflag.FlagSet) {
			fs.Var(command.Choice{Value: &typ, Allowed: creation.ReceiverTypes}, "type", "type of the webhook sender: "+strings.Join(creation.ReceiverTypes, ", "))
			fs.StringVar(&secretRef, "secret-ref", "", "name of the Secret with the token, created with 'flux create secret receiver'")
			fs.StringSliceVar(&events, "event", nil, "event types to handle (default all)")
			fs.StringSliceVar(&resources, "resource", nil, "objects to reconcile, as KIND/NAME[.NAMESPACE]")
		},
		Spec: func(c *creation.Creation) map[string]any {
			spec := map[string]any{}
			c.Require("type", typ)
			c.Require("secret-ref", secretRef)
			c.Require("resource", strings.Join(resources, ","))
			c.ObjectName("secret-ref", secretRef)
			creation.Put(spec, "type", typ)
			creation.Put(spec, "events", events)
			creation.Put(spec, "resources", objects(c, "resource", resources))
			creation.Put(spec, "secretRef.name", secretRef)
			return spec
		},
	}
}
