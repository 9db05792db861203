package create

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/syntax"
	"github.com/fluxkit/flux/cmd/flux/internal/create/creation"
	"github.com/fluxkit/flux/internal/hint"
)

// eventKinds lists the kinds that Alerts and Receivers can refer to.
var eventKinds = []string{
	"Bucket", "GitRepository", "Kustomization", "HelmRelease", "HelmChart", "HelmRepository", "ImageRepository", "ImagePolicy",
	"ImageUpdateAutomation", "OCIRepository", "ArtifactGenerator", "ExternalArtifact",
}

// providerTypes lists the types of a notification Provider.
var providerTypes = []string{
	"slack", "discord", "msteams", "rocket", "generic", "generic-hmac", "github", "gitlab", "gitea", "giteapullrequestcomment",
	"bitbucketserver", "bitbucket", "azuredevops", "googlechat", "googlepubsub", "webex", "sentry", "azureeventhub", "telegram",
	"lark", "matrix", "opsgenie", "alertmanager", "grafana", "githubdispatch", "githubpullrequestcomment",
	"gitlabmergerequestcomment", "pagerduty", "datadog", "nats", "zulip", "otel",
}

// newProviderTypes lists the types that require Flux 2.10.
var newProviderTypes = []string{"zoom", "incident.io", "mastodon"}

// tokenTypes lists the provider types for which notification-controller requires a token, which must be in a
// Secret.
var tokenTypes = []string{
	"github", "githubdispatch", "githubpullrequestcomment", "gitlab", "gitlabmergerequestcomment", "gitea", "giteapullrequestcomment",
	"bitbucket", "bitbucketserver", "datadog", "opsgenie", "telegram",
}

// channelTypes lists the provider types that notification-controller rejects without a channel.
var channelTypes = []string{"googlepubsub", "nats", "telegram"}

// checkProvider returns errors for missing fields of a Flux 2.9 Provider that make notification-controller
// reject every event. The address may be in the Secret.
func checkProvider(typ, address, secret, channel string) []error {
	var errs []error
	switch {
	case secret != "" || !slices.Contains(providerTypes, typ):
	case slices.Contains(tokenTypes, typ):
		errs = append(errs, hint.Errorf("set --secret-ref to a Secret with the token", "--type=%s requires --secret-ref", typ))
	case address == "":
		errs = append(errs, hint.Errorf("set --address, or --secret-ref to a Secret with the address", "--type=%s requires --address or --secret-ref", typ))
	}
	if channel == "" && slices.Contains(channelTypes, typ) {
		errs = append(errs, fmt.Errorf("--type=%s requires --channel", typ))
	}
	return errs
}

// events returns a flag for event sources or resources.
func events(name, path, usage string) creation.Flag {
	return creation.List(name, path, usage).Required().Completes(eventKinds...).As(func(c *creation.Creation) any {
		return c.References(name, syntax.Rules{Kinds: eventKinds, Any: true})
	})
}

func alert() creation.Builder {
	return creation.Builder{
		Kind: "Alert",
		Example: `  # Send an alert for every failure in a namespace
  flux create alert on-error --provider-ref=slack --event-severity=error --event-source='Kustomization/*' --event-source='HelmRelease/*'

  # Send all events of one object in another namespace
  flux create alert app --provider-ref=slack --event-source=Kustomization/app.apps`,
		Flags: []creation.Flag{
			creation.ObjectName("provider-ref", "providerRef.name", "name of the Provider that receives the alerts", "Provider").Required(),
			creation.OneOf("event-severity", "eventSeverity", "minimum severity of the events: info, error (default: info)", "info", "error"),
			events("event-source", "eventSources", "objects to send events for, as KIND/NAME[.NAMESPACE]; '*' for all names"),
		},
	}
}

func provider() creation.Builder {
	types := slices.Concat(providerTypes, newProviderTypes)
	return creation.Builder{
		Kind: "Provider",
		Example: `  # Send to a Slack channel; the webhook URL is in a Secret
  flux create alert-provider slack --type=slack --channel=general --secret-ref=slack-url

  # Update the commit status on GitHub
  flux create alert-provider status --type=github --address=https://github.com/org/app --secret-ref=github-token`,
		Flags: []creation.Flag{
			creation.OneOf("type", "type", "type of the provider: "+strings.Join(types, ", "), types...).Required(),
			creation.Text("channel", "channel", "channel, room or project to post to"),
			creation.Text("username", "username", "user name to post as"),
			creation.Text("address", "address", "URL of the webhook or API to send alerts to").Checked(checkAddress),
			creation.ObjectName("secret-ref", "secretRef.name", "name of the Secret with the token or the address", "Secret"),
		},
		Spec: func(c *creation.Creation, _ map[string]any) {
			if typ := c.Text("type"); slices.Contains(newProviderTypes, typ) {
				c.RequireFlux("type", typ, "2.10")
			}
			if c.Partial {
				return // the copied object has the fields
			}
			for _, err := range checkProvider(c.Text("type"), c.Text("address"), c.Text("secret-ref"), c.Text("channel")) {
				if c.Export { // the manifest may be completed
					c.App.UI.Warning("incomplete Provider: %s", err)
				} else {
					c.Check(err)
				}
			}
		},
	}
}

// checkAddress checks that an address is a URL without a password.
func checkAddress(c *creation.Creation, flag, address string) {
	if u, err := url.Parse(address); err != nil {
		c.CheckFlag(flag, errors.New("not a URL"))
	} else if _, has := u.User.Password(); has {
		c.CheckFlag(flag, errors.New("the URL contains a password: store the address in a Secret and set --secret-ref"))
	}
}

func receiver() creation.Builder {
	return creation.Builder{
		Kind: "Receiver",
		Example: `  # Reconcile a GitRepository on every push to GitHub
  flux create receiver app --type=github --event=ping --event=push --secret-ref=webhook-token --resource=GitRepository/app`,
		Flags: []creation.Flag{
			creation.Choice("type", "type", "type of the webhook sender: "+strings.Join(creation.ReceiverTypes, ", "), creation.ReceiverTypes...).Required(),
			creation.ObjectName("secret-ref", "secretRef.name", "name of the Secret with the token, created with 'flux create secret receiver'", "Secret").Required(),
			creation.List("event", "events", "event types to handle (default: all)"),
			events("resource", "resources", "objects to reconcile, as KIND/NAME[.NAMESPACE]"),
		},
	}
}
