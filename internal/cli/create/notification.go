package create

import (
	"errors"
	"net/url"
	"strings"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/cli/create/creation"
	"github.com/fluxkit/flux/internal/input"
)

// eventKinds are the kinds that alerts and receivers can be about.
var eventKinds = []string{
	"Bucket", "GitRepository", "Kustomization", "HelmRelease", "HelmChart", "HelmRepository", "ImageRepository", "ImagePolicy",
	"ImageUpdateAutomation", "OCIRepository", "ArtifactGenerator", "ExternalArtifact",
}

// severities are what an Alert tells of.
var severities = []string{"info", "error"}

// providerTypes are where notifications can go.
var providerTypes = []string{
	"slack", "discord", "msteams", "rocket", "generic", "generic-hmac", "github", "gitlab", "gitea", "giteapullrequestcomment",
	"bitbucketserver", "bitbucket", "azuredevops", "googlechat", "googlepubsub", "webex", "sentry", "azureeventhub", "telegram",
	"lark", "matrix", "opsgenie", "alertmanager", "grafana", "githubdispatch", "githubpullrequestcomment",
	"gitlabmergerequestcomment", "pagerduty", "datadog", "nats", "zulip", "otel",
}

// objects reads references to the objects that events are about.
func objects(c *creation.Creation, flag string, list []string) []any {
	var refs []any
	for _, s := range list {
		refs = append(refs, creation.RefField(c.Refer(flag, s, input.Rules{Kinds: eventKinds, Any: true})))
	}
	return refs
}

func buildAlert() creation.Builder {
	var provider, severity string
	var sources []string
	return creation.Builder{
		Kind: "Alert",
		Example: `  # Tell of every failure of a namespace
  flux create alert on-error --provider-ref=slack --event-severity=error --event-source='Kustomization/*' --event-source='HelmRelease/*'

  # Tell of everything that happens to one object of another namespace
  flux create alert app --provider-ref=slack --event-source=Kustomization/app.apps`,
		Refers: map[string][]string{"provider-ref": {"Provider"}, "event-source": eventKinds},
		Words:  map[string][]string{"event-severity": severities},
		Flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&provider, "provider-ref", "", "the alert-provider to tell")
			fs.StringVar(&severity, "event-severity", "", "what to tell of: info is everything, error failures only")
			fs.StringSliceVar(&sources, "event-source", nil, "the objects to tell of: <kind>/<name>[.<namespace>], '*' for all names")
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
	return creation.Builder{
		Kind: "Provider",
		Example: `  # A channel of Slack; the address of the webhook is in a Secret
  flux create alert-provider slack --type=slack --channel=general --secret-ref=slack-url

  # The status of commits on GitHub
  flux create alert-provider status --type=github --address=https://github.com/org/app --secret-ref=github-token`,
		Refers: map[string][]string{"secret-ref": {"Secret"}},
		Words:  map[string][]string{"type": providerTypes},
		Flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&typ, "type", "", "where to tell: "+strings.Join(providerTypes, ", "))
			fs.StringVar(&channel, "channel", "", "the channel, room or project to tell in")
			fs.StringVar(&username, "username", "", "the name to tell under")
			fs.StringVar(&address, "address", "", "the address to send to")
			fs.StringVar(&secretRef, "secret-ref", "", "the Secret with the token or the address")
		},
		Spec: func(c *creation.Creation) map[string]any {
			spec := map[string]any{}
			c.Require("type", typ)
			c.OneOf("type", typ, providerTypes)
			c.ObjectName("secret-ref", secretRef)
			if u, err := url.Parse(address); err != nil {
				c.CheckFlag("address", errors.New("not a URL"))
			} else if _, has := u.User.Password(); has {
				c.CheckFlag("address", errors.New("it has a password in it: put the address into a Secret and name that with --secret-ref"))
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
		Example: `  # Fetch a repository as soon as something is pushed to it on GitHub
  flux create receiver app --type=github --event=ping --event=push --secret-ref=webhook-token --resource=GitRepository/app`,
		Refers: map[string][]string{"secret-ref": {"Secret"}, "resource": eventKinds},
		Flags: func(fs *pflag.FlagSet) {
			fs.Var(command.Choice{Value: &typ, Allowed: creation.ReceiverTypes}, "type", "who calls: "+strings.Join(creation.ReceiverTypes, ", "))
			fs.StringVar(&secretRef, "secret-ref", "", "the Secret with the token, made by 'flux create secret receiver'")
			fs.StringSliceVar(&events, "event", nil, "the events to listen to; all unless given")
			fs.StringSliceVar(&resources, "resource", nil, "the objects to reconcile: <kind>/<name>[.<namespace>]")
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
