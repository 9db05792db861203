package main

import (
	"errors"
	"net/url"
	"strings"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/input"
)

// eventKinds are the kinds that alerts and receivers can be about.
var eventKinds = []string{
	"Bucket", "GitRepository", "Kustomization", "HelmRelease", "HelmChart", "HelmRepository", "ImageRepository", "ImagePolicy",
	"ImageUpdateAutomation", "OCIRepository", "ArtifactGenerator", "ExternalArtifact",
}

// severities are what an Alert tells of.
var severities = []string{"info", "error"}

// receiverTypes are who can call a Receiver's webhook.
var receiverTypes = []string{
	"generic", "generic-hmac", "github", "gitlab", "bitbucket", "harbor", "dockerhub", "quay", "gcr", "nexus", "acr", "cdevents",
}

// providerTypes are where notifications can go.
var providerTypes = []string{
	"slack", "discord", "msteams", "rocket", "generic", "generic-hmac", "github", "gitlab", "gitea", "giteapullrequestcomment",
	"bitbucketserver", "bitbucket", "azuredevops", "googlechat", "googlepubsub", "webex", "sentry", "azureeventhub", "telegram",
	"lark", "matrix", "opsgenie", "alertmanager", "grafana", "githubdispatch", "githubpullrequestcomment",
	"gitlabmergerequestcomment", "pagerduty", "datadog", "nats", "zulip", "otel",
}

// objects reads references to the objects that events are about.
func (c *creation) objects(flag string, list []string) []any {
	var refs []any
	for _, s := range list {
		refs = append(refs, refField(c.refer(flag, s, input.Rules{Kinds: eventKinds, Any: true})))
	}
	return refs
}

func buildAlert() builder {
	var provider, severity string
	var sources []string
	return builder{
		kind: "Alert",
		example: `  # Tell of every failure of a namespace
  flux create alert on-error --provider-ref=slack --event-severity=error --event-source='Kustomization/*' --event-source='HelmRelease/*'

  # Tell of everything that happens to one object of another namespace
  flux create alert app --provider-ref=slack --event-source=Kustomization/app.apps`,
		refers: map[string][]string{"provider-ref": {"Provider"}, "event-source": eventKinds},
		words:  map[string][]string{"event-severity": severities},
		flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&provider, "provider-ref", "", "the alert-provider to tell")
			fs.StringVar(&severity, "event-severity", "", "what to tell of: info is everything, error failures only")
			fs.StringSliceVar(&sources, "event-source", nil, "the objects to tell of: <kind>/<name>[.<namespace>], '*' for all names")
		},
		spec: func(c *creation) map[string]any {
			spec := map[string]any{}
			c.need("provider-ref", provider)
			c.need("event-source", strings.Join(sources, ","))
			c.objectName("provider-ref", provider)
			c.oneOf("event-severity", severity, severities)
			put(spec, "providerRef.name", provider)
			put(spec, "eventSeverity", severity)
			put(spec, "eventSources", c.objects("event-source", sources))
			return spec
		},
	}
}

func buildProvider() builder {
	var typ, channel, username, address, secretRef string
	return builder{
		kind: "Provider",
		example: `  # A channel of Slack; the address of the webhook is in a Secret
  flux create alert-provider slack --type=slack --channel=general --secret-ref=slack-url

  # The status of commits on GitHub
  flux create alert-provider status --type=github --address=https://github.com/org/app --secret-ref=github-token`,
		refers: map[string][]string{"secret-ref": {"Secret"}},
		words:  map[string][]string{"type": providerTypes},
		flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&typ, "type", "", "where to tell: "+strings.Join(providerTypes, ", "))
			fs.StringVar(&channel, "channel", "", "the channel, room or project to tell in")
			fs.StringVar(&username, "username", "", "the name to tell under")
			fs.StringVar(&address, "address", "", "the address to send to")
			fs.StringVar(&secretRef, "secret-ref", "", "the Secret with the token or the address")
		},
		spec: func(c *creation) map[string]any {
			spec := map[string]any{}
			c.need("type", typ)
			c.oneOf("type", typ, providerTypes)
			c.objectName("secret-ref", secretRef)
			if u, err := url.Parse(address); err != nil {
				c.flagged("address", errors.New("it is not a URL"))
			} else if _, has := u.User.Password(); has {
				c.flagged("address", errors.New("it has a password in it: put the address into a Secret and name that with --secret-ref"))
			}
			put(spec, "type", typ)
			put(spec, "channel", channel)
			put(spec, "username", username)
			put(spec, "address", address)
			put(spec, "secretRef.name", secretRef)
			return spec
		},
	}
}

func buildReceiver() builder {
	var typ, secretRef string
	var events, resources []string
	return builder{
		kind: "Receiver",
		example: `  # Fetch a repository as soon as something is pushed to it on GitHub
  flux create receiver app --type=github --event=ping --event=push --secret-ref=webhook-token --resource=GitRepository/app`,
		refers: map[string][]string{"secret-ref": {"Secret"}, "resource": eventKinds},
		flags: func(fs *pflag.FlagSet) {
			fs.Var(choice{&typ, receiverTypes}, "type", "who calls: "+strings.Join(receiverTypes, ", "))
			fs.StringVar(&secretRef, "secret-ref", "", "the Secret with the token, made by 'flux create secret receiver'")
			fs.StringSliceVar(&events, "event", nil, "the events to listen to; all unless given")
			fs.StringSliceVar(&resources, "resource", nil, "the objects to reconcile: <kind>/<name>[.<namespace>]")
		},
		spec: func(c *creation) map[string]any {
			spec := map[string]any{}
			c.need("type", typ)
			c.need("secret-ref", secretRef)
			c.need("resource", strings.Join(resources, ","))
			c.objectName("secret-ref", secretRef)
			put(spec, "type", typ)
			put(spec, "events", events)
			put(spec, "resources", c.objects("resource", resources))
			put(spec, "secretRef.name", secretRef)
			return spec
		},
	}
}
