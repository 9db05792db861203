// Package trigger implements flux trigger receiver.
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

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/input"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/syntax"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/secrets/credential"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/web"
	"github.com/fluxkit/flux/internal/web/webhook"
	"github.com/fluxkit/flux/pkg/controllers"
)

// oidcVariable is the environment variable with the OIDC token, if no flag sets it.
const oidcVariable = "FLUX_TRIGGER_RECEIVER_OIDC_TOKEN"

// actionsProviders lists the CI systems that issue OIDC tokens to jobs.
var actionsProviders = []string{"github", "forgejo"}

type flags struct {
	typeName, url, event string
	payload, payloadFile string
	token, oidc          *input.SecretFlag
	provider, audience   string
	fluxNamespace        string
	retries              int
	delay                time.Duration
}

func (o *flags) add(fs *pflag.FlagSet, systemNamespace string) {
	o.token, o.oidc = input.NewSecretFlag("token"), input.NewSecretFlag("oidc-token")
	fs.StringVar(&o.typeName, "type", "generic", "type of the Receiver, if not read from the cluster")
	fs.StringVar(&o.url, "url", "", "base URL of the webhooks (default: a connection through the Kubernetes API)")
	o.token.Add(fs, "", "token of the Receiver", " (default: the token in its Secret)")
	fs.StringVar(&o.payload, "payload", "{}", "request body")
	fs.StringVar(&o.payloadFile, "payload-file", "", "path to a file with the request body, '-' for standard input")
	fs.StringVar(&o.event, "event", "", "event type of the request, e.g. push (default: the first of spec.events)")
	fs.StringVar(&o.provider, "oidc-provider", "", "CI system to request an OIDC token from (only with --type=generic-oidc): "+strings.Join(actionsProviders, ", "))
	o.oidc.Add(fs, "", "OIDC token", " (only with --type=generic-oidc or gcr, default $"+oidcVariable+")")
	fs.StringVar(&o.audience, "oidc-audience", "", "audience of the token from --oidc-provider (default \""+webhook.Audience+"\")")
	fs.IntVar(&o.retries, "retries", 10, "number of retries if the webhook is unreachable or returns a server error")
	fs.DurationVar(&o.delay, "retry-delay", 10*time.Second, "time between retries, e.g. 10s")
	if systemNamespace == "" {
		systemNamespace = app.DefaultNamespace
	}
	fs.StringVar(&o.fluxNamespace, "flux-namespace", systemNamespace, "namespace of notification-controller (only without --url)")
}

// NewCommand returns the trigger command.
func NewCommand(a *app.App) *cobra.Command {
	o := &flags{}
	k, _ := controllers.FindKind("Receiver")
	cmd := &cobra.Command{
		Use:   "receiver [name]",
		Short: "Call the webhook of a Receiver",
		Long: `Call the webhook of a Receiver, as a Git host or registry would, to reconcile
the resources of the Receiver. The type, path and token are read from the
Receiver and its Secret, and the request is sent through the Kubernetes API. With
--url, and --token if the type requires it, no cluster access is needed.`,
		Example: `  # Call the webhook of a Receiver in the cluster
  flux trigger receiver app

  # Send a push event with a recorded request body
  flux trigger receiver app --event=push --payload-file=./push.json

  # Call the webhook from a CI job without access to the cluster
  flux trigger receiver app --url=https://flux.example.com --type=generic-hmac --token-stdin < token

  # Call the webhook from a GitHub Actions job with 'permissions: id-token: write'
  flux trigger receiver app --url=https://flux.example.com --type=generic-oidc --oidc-provider=github

  # Call the webhook from a GitLab job whose 'id_tokens' set FLUX_TRIGGER_RECEIVER_OIDC_TOKEN
  flux trigger receiver app --url=https://flux.example.com --type=generic-oidc`,
		ValidArgsFunction: complete.Names(a, k),
		RunE:              func(cmd *cobra.Command, args []string) error { return run(a, cmd, o, args) },
	}
	o.add(cmd.Flags(), a.Env("FLUX_SYSTEM_NAMESPACE"))
	complete.Flag(cmd, "flux-namespace", complete.Namespaces(a))
	complete.Flag(cmd, "type", cobra.FixedCompletions(webhook.Names(), cobra.ShellCompDirectiveNoFileComp))
	complete.Flag(cmd, "oidc-provider", cobra.FixedCompletions(actionsProviders, cobra.ShellCompDirectiveNoFileComp))
	group := command.ObjectGroup("trigger", "Call the webhook of a Receiver", cmd)
	group.ValidArgsFunction = complete.OfSubcommands(a)
	return group
}

// triggering is the state of one invocation.
type triggering struct {
	*flags
	input.Input
	typ     webhook.Type
	base    *url.URL
	request webhook.Request
	// path is the path of the webhook below the base URL.
	path string
	// client, receiver and resources are set if the Receiver was read. resources lists the objects that it reconciles.
	client    *kube.Client
	receiver  controllers.Object
	resources []string
	// absent is a resource of the Receiver that does not exist.
	absent controllers.ID
}

func run(a *app.App, cmd *cobra.Command, o *flags, args []string) error {
	t := &triggering{flags: o, Input: input.New(a, cmd, args)}
	t.typ, _ = webhook.Find(o.typeName)
	t.validate()
	if err := t.Err(); err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	if t.needsCluster() {
		if err := t.resolve(ctx); err != nil {
			return err
		}
	} else {
		t.path = credential.WebhookPath(t.request.Token, t.Name, t.Namespace)
	}
	var server web.Server
	if t.base == nil {
		var err error
		if server, err = t.forward(); err != nil {
			return err
		}
		t.base = &url.URL{Scheme: "http", Host: "notification-controller"}
	}
	if err := t.authenticate(ctx); err != nil {
		return err
	}
	client, err := web.Client{Server: server}.HTTP()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	return t.send(ctx, client)
}

// validate validates the flags and fills in the request.
func (t *triggering) validate() {
	t.base = t.address()
	t.request.Token = t.Secret(t.token)
	t.request.Bearer = t.Secret(t.oidc)
	t.request.Event = t.event
	t.request.Payload = []byte(t.payload)
	t.Exclusive("payload", "payload-file")
	if t.payloadFile != "" {
		before := len(t.Problems)
		if t.request.Payload = t.File("payload-file", t.payloadFile); len(t.request.Payload) == 0 && len(t.Problems) == before {
			t.CheckFlag("payload-file", errors.New("input is empty"))
		}
	}
	t.OneOf("type", t.typeName, webhook.Names())
	t.OneOf("oidc-provider", t.provider, actionsProviders)
	t.Exclusive(append(t.oidc.FlagNames(), "oidc-provider")...)
	t.Needs("oidc-provider", "oidc-audience")
	if t.retries < 0 || t.delay < 0 {
		t.Check(errors.New("--retries and --retry-delay must not be negative"))
	}
	if t.typeKnown() && t.typ.Name != "" {
		t.Check(t.checkType())
	}
}

// address parses --url and returns nil if it is not set. The URL may contain a
// password for an ingress with basic authentication.
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
	_, err = syntax.URL(bare.String(), "https", "http")
	t.CheckFlag("url", err)
	return u
}

// typeKnown reports whether the type is known without cluster access.
func (t *triggering) typeKnown() bool {
	return !t.needsCluster() || len(t.Given("type")) > 0
}

// needsCluster reports whether the Receiver must be read from the cluster.
func (t *triggering) needsCluster() bool {
	usesOIDC := len(t.Given("type")) > 0 && t.typ.Name == "generic-oidc"
	return t.url == "" || !t.SecretGiven(t.token) && !usesOIDC
}

// checkType returns an error for flags that the type of the Receiver does not support.
func (t *triggering) checkType() error {
	switch {
	case !t.typ.Bears && len(t.Given(append(t.oidc.FlagNames(), "oidc-provider")...)) > 0:
		return fmt.Errorf("%s requires a Receiver of type generic-oidc or gcr, not %s", t.Given(append(t.oidc.FlagNames(), "oidc-provider")...)[0], t.typ.Name)
	case t.typ.Name == "generic-oidc" && t.SecretGiven(t.token):
		return errors.New("a Receiver of type generic-oidc has no token: use --oidc-provider or --oidc-token")
	case t.event != "" && !t.typ.HasEvents():
		return fmt.Errorf("a Receiver of type %s does not support --event", t.typ.Name)
	case t.typ.Payload != "" && len(t.Given("payload", "payload-file")) == 0:
		return fmt.Errorf("--payload or --payload-file is required: a Receiver of type %s accepts only %s", t.typ.Name, t.typ.Payload)
	}
	return nil
}

// authenticate sets the OIDC token of the request if the type requires one.
func (t *triggering) authenticate(ctx context.Context) error {
	if !t.typ.Bears || t.request.Bearer != "" {
		return nil
	}
	if t.provider == "" {
		if t.request.Bearer = strings.TrimSpace(t.App.Env(oidcVariable)); t.request.Bearer == "" {
			return hint.Errorf("set --oidc-provider, --oidc-token-stdin or "+oidcVariable, "a Receiver of type %s requires an OIDC token", t.typ.Name)
		}
		return nil
	}
	audience := t.audience
	if audience == "" {
		audience = webhook.Audience
	}
	t.App.UI.Generate("requesting an OIDC token from %s for audience %s", t.provider, audience)
	client, err := web.Client{}.HTTP()
	if err != nil {
		return err
	}
	t.request.Bearer, err = webhook.ActionsToken(ctx, client, t.App.Env, audience)
	if errors.Is(err, webhook.ErrNoActions) {
		return hint.Errorf("the job requires 'permissions: id-token: write' (GitHub) or 'enable-openid-connect: true' (Forgejo)", "%w", err)
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
		Again: func(why error, left int) bool { return t.retry(ctx, why, left) },
	}
	if err := sender.Send(ctx, t.base.JoinPath(t.path), t.typ, t.request); err != nil {
		return t.explain(ctx, err)
	}
	if len(t.resources) > 0 {
		t.App.UI.Success("webhook called: reconciliation requested for %s", strings.Join(t.resources, ", "))
		return nil
	}
	t.App.UI.Success("webhook called")
	return nil
}

// retry reports whether to retry the request. A Forbidden error of the API server,
// a missing controller and a missing resource of the Receiver are final.
func (t *triggering) retry(ctx context.Context, why error, left int) bool {
	if t.missesResource(ctx, why) || apierrors.IsForbidden(why) || errors.As(why, new(*noControllerError)) {
		return false
	}
	t.App.UI.Waiting("%s; retrying in %s (%d left)", redact.Text(why.Error()), t.delay, left)
	return true
}
