// Package trigger has the command trigger.
package trigger

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/cli/complete"
	"github.com/fluxkit/flux/internal/cli/validate"
	"github.com/fluxkit/flux/internal/credential"
	"github.com/fluxkit/flux/internal/input"
	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/internal/webhook"
	"github.com/fluxkit/flux/pkg/controllers"
)

// oidcVariable holds a token of OpenID Connect where no flag gives one.
const oidcVariable = "FLUX_TRIGGER_RECEIVER_OIDC_TOKEN"

// actionsProviders are the CI systems whose runners give tokens to jobs.
var actionsProviders = []string{"github", "forgejo"}

type flags struct {
	typeName, url, event string
	payload, payloadFile string
	token, oidc          *validate.SecretFlag
	provider, audience   string
	fluxNamespace        string
	retries              int
	delay                time.Duration
}

func (o *flags) add(fs *pflag.FlagSet, systemNamespace string) {
	o.token, o.oidc = validate.NewSecretFlag("token"), validate.NewSecretFlag("oidc-token")
	fs.StringVar(&o.typeName, "type", "generic", "the type of the Receiver; its own unless given, where the cluster is asked")
	fs.StringVar(&o.url, "url", "", "the address under which webhooks are reached; by way of the Kubernetes API unless given")
	o.token.Add(fs, "", "the token of the Receiver", ", that of its Secret unless given")
	fs.StringVar(&o.payload, "payload", "{}", "the body of the request")
	fs.StringVar(&o.payloadFile, "payload-file", "", "a file with the body of the request; '-' is standard input")
	fs.StringVar(&o.event, "event", "", "the event to tell of, such as push; the first that the Receiver listens to unless given")
	fs.StringVar(&o.provider, "oidc-provider", "", "for generic-oidc: the CI system to get a token from: "+strings.Join(actionsProviders, ", "))
	o.oidc.Add(fs, "", "the OpenID Connect token", " for generic-oidc and gcr, that of "+oidcVariable+" unless given")
	fs.StringVar(&o.audience, "oidc-audience", "", "with --oidc-provider: whom the token is for (default \""+webhook.Audience+"\")")
	fs.IntVar(&o.retries, "retries", 10, "how often to try again while the webhook cannot be reached or is in trouble")
	fs.DurationVar(&o.delay, "retry-delay", 10*time.Second, "how long to wait before each of these")
	if systemNamespace == "" {
		systemNamespace = app.DefaultNamespace
	}
	fs.StringVar(&o.fluxNamespace, "flux-namespace", systemNamespace, "the namespace of notification-controller, where --url is not given")
}

// NewCommand returns the command trigger.
func NewCommand(a *app.App) *cobra.Command {
	o := &flags{}
	k, _ := controllers.FindKind("Receiver")
	cmd := &cobra.Command{
		Use:   "receiver [name]",
		Short: "Call the webhook of a Receiver",
		Long: `Call the webhook of a Receiver as the service would that it is made for, so that
its objects are reconciled now. Type, path and token are those of the Receiver
and its Secret, and the webhook is reached by way of the Kubernetes API.

With --url, and --token where the type needs one, no cluster is asked: so can a
CI job call that has no access to it.`,
		Example: `  # Call the webhook of a Receiver in the cluster
  flux trigger receiver app

  # As a push to GitHub does, with the body of a recorded event
  flux trigger receiver app --event=push --payload-file=./push.json

  # From a CI job without access to the cluster
  flux trigger receiver app --url=https://flux.example.com --type=generic-hmac --token-stdin < token

  # From a job of GitHub Actions that has 'permissions: id-token: write'
  flux trigger receiver app --url=https://flux.example.com --type=generic-oidc --oidc-provider=github

  # From a job of GitLab whose 'id_tokens' set FLUX_TRIGGER_RECEIVER_OIDC_TOKEN
  flux trigger receiver app --url=https://flux.example.com --type=generic-oidc`,
		ValidArgsFunction: complete.Names(a, k),
		RunE:              func(cmd *cobra.Command, args []string) error { return run(a, cmd, o, args) },
	}
	o.add(cmd.Flags(), a.Env("FLUX_SYSTEM_NAMESPACE"))
	complete.Flag(cmd, "flux-namespace", complete.Namespaces(a))
	complete.Flag(cmd, "type", cobra.FixedCompletions(webhook.Names(), cobra.ShellCompDirectiveNoFileComp))
	complete.Flag(cmd, "oidc-provider", cobra.FixedCompletions(actionsProviders, cobra.ShellCompDirectiveNoFileComp))
	return command.Group("trigger", "Call the webhook of a Receiver", cmd)
}

// triggering is one run of the command.
type triggering struct {
	*flags
	validate.Input
	typ     webhook.Type
	base    *url.URL
	request webhook.Request
	// path is where the webhook is below its address.
	path string
	// resources are what the Receiver reconciles, where the cluster was asked.
	resources []string
}

func run(a *app.App, cmd *cobra.Command, o *flags, args []string) error {
	t := &triggering{flags: o, Input: validate.New(a, cmd, args)}
	t.typ, _ = webhook.Find(o.typeName)
	t.read()
	if err := t.Err(); err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	client := &http.Client{}
	if t.asksCluster() {
		if err := t.resolve(ctx); err != nil {
			return err
		}
	} else {
		t.path = credential.WebhookPath(t.request.Token, t.Name, t.Namespace)
	}
	if t.base == nil {
		forward, err := t.forward()
		if err != nil {
			return err
		}
		defer forward.CloseIdleConnections()
		client.Transport, t.base = forward, &url.URL{Scheme: "http", Host: "notification-controller"}
	}
	if err := t.bear(ctx); err != nil {
		return err
	}
	return t.send(ctx, client)
}

// read checks what the command line gives.
func (t *triggering) read() {
	t.base = t.address()
	t.request.Token = t.Secret(t.token)
	t.request.Bearer = t.Secret(t.oidc)
	t.request.Event = t.event
	t.request.Payload = []byte(t.payload)
	t.Exclusive("one of them is the body", "payload", "payload-file")
	if t.payloadFile != "" {
		before := len(t.Problems)
		if t.request.Payload = t.File("payload-file", t.payloadFile); len(t.request.Payload) == 0 && len(t.Problems) == before {
			t.CheckFlag("payload-file", errors.New("there is nothing in it"))
		}
	}
	t.OneOf("type", t.typeName, webhook.Names())
	t.OneOf("oidc-provider", t.provider, actionsProviders)
	t.Exclusive("one of them is the token", append(t.oidc.Names(), "oidc-provider")...)
	t.Needs("oidc-provider", "oidc-audience")
	if t.retries < 0 || t.delay < 0 {
		t.Check(errors.New("--retries and --retry-delay cannot be less than 0"))
	}
	if t.typeKnown() && t.typ.Name != "" {
		t.Check(t.fits())
	}
}

// address reads the address, nil where none is given. It may have a password,
// for a proxy that asks for one.
func (t *triggering) address() *url.URL {
	if t.url == "" {
		return nil
	}
	u, err := url.Parse(t.url)
	if err != nil {
		t.CheckFlag("url", errors.New("not a URL"))
		return nil
	}
	bare := *u
	bare.User = nil
	_, err = input.URL(bare.String(), "https", "http")
	t.CheckFlag("url", err)
	return u
}

// typeKnown tells whether the type is settled without the cluster.
func (t *triggering) typeKnown() bool {
	return !t.asksCluster() || len(t.Given("type")) > 0
}

// asksCluster tells whether something is missing that only the cluster knows.
func (t *triggering) asksCluster() bool {
	bears := len(t.Given("type")) > 0 && t.typ.Name == "generic-oidc"
	return t.url == "" || !t.Asked(t.token) && !bears
}

// fits says which flags do not fit the type.
func (t *triggering) fits() error {
	switch {
	case !t.typ.Bears && len(t.Given(append(t.oidc.Names(), "oidc-provider")...)) > 0:
		return fmt.Errorf("%s is for Receivers of type generic-oidc or gcr, and not for %s", t.Given(append(t.oidc.Names(), "oidc-provider")...)[0], t.typ.Name)
	case t.typ.Name == "generic-oidc" && t.Asked(t.token):
		return errors.New("a Receiver of type generic-oidc has no token: --oidc-provider or --oidc-token is what it asks for")
	case t.event != "" && !t.typ.HasEvents():
		return fmt.Errorf("a Receiver of type %s looks at no events: leave out --event", t.typ.Name)
	case t.typ.Payload != "" && len(t.Given("payload", "payload-file")) == 0:
		return fmt.Errorf("--payload or --payload-file is required: a Receiver of type %s takes nothing but %s", t.typ.Name, t.typ.Payload)
	}
	return nil
}

// bear gets the token of OpenID Connect, where the type asks for one.
func (t *triggering) bear(ctx context.Context) error {
	if !t.typ.Bears || t.request.Bearer != "" {
		return nil
	}
	if t.provider == "" {
		if t.request.Bearer = strings.TrimSpace(t.App.Env(oidcVariable)); t.request.Bearer == "" {
			return clierr.WithHint("give it with --oidc-provider, --oidc-token-stdin or "+oidcVariable, "a Receiver of type %s asks for an OpenID Connect token", t.typ.Name)
		}
		return nil
	}
	audience := t.audience
	if audience == "" {
		audience = webhook.Audience
	}
	t.App.UI.Generate("asking %s for a token for %s", t.provider, audience)
	var err error
	t.request.Bearer, err = webhook.ActionsToken(ctx, &http.Client{}, t.App.Env, audience)
	if errors.Is(err, webhook.ErrNoActions) {
		return clierr.WithHint("the job needs 'permissions: id-token: write' (GitHub) or 'enable-openid-connect: true' (Forgejo)", "%w", err)
	}
	return err
}

func (t *triggering) send(ctx context.Context, client *http.Client) error {
	where := "through the Kubernetes API"
	if t.url != "" {
		where = "at " + redact.URL(t.base.Scheme+"://"+t.base.Host)
	}
	t.App.UI.Action("calling Receiver %s in %s namespace %s", t.Name, t.Namespace, where)
	sender := webhook.Sender{
		Client: client, UserAgent: "flux/" + t.App.Build.Version, Retries: t.retries, Delay: t.delay,
		Again: t.again,
	}
	if err := sender.Send(ctx, t.base.JoinPath(t.path), t.typ, t.request); err != nil {
		return t.explain(ctx, err)
	}
	if len(t.resources) > 0 {
		t.App.UI.Success("webhook called, which requests the reconciliation of %s", strings.Join(t.resources, ", "))
		return nil
	}
	t.App.UI.Success("webhook called")
	return nil
}

// again tells of what another try may mend. What the cluster refuses stays refused.
func (t *triggering) again(why error, left int) bool {
	if apierrors.IsForbidden(why) || errors.As(why, new(*noControllerError)) {
		return false
	}
	t.App.UI.Waiting("%s; trying again in %s (%d left)", redact.Text(why.Error()), t.delay, left)
	return true
}
