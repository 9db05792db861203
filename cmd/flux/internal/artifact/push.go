package artifact

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/oci"
	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/internal/web"
)

// NewPush returns the push command.
func NewPush(a *app.App) *cobra.Command {
	return command.Group("push", "Push artifacts to OCI registries", newPushArtifact(a))
}

type pushOptions struct {
	oci.PackOptions
	access           registry.Access
	source, revision string
	annotations      []string
	reproducible     bool
	debug            bool
	format           string
}

func newPushArtifact(a *app.App) *cobra.Command {
	o := &pushOptions{}
	cmd := &cobra.Command{
		Use:   "artifact [oci://address:tag]",
		Short: "Push a directory of manifests to an OCI registry",
		Long: `Pack a directory into an artifact and push it to an OCI registry, from which an
OCIRepository fetches it.

Credentials:
  By default, the command uses the credentials of "docker login"; --creds and
  --provider override them. --provider aws, azure or gcp requests credentials
  for the identity in the environment: environment variables, workload identity,
  the instance role, or the OIDC token of a CI job. --provider github or gitlab
  uses the token of the CI job for ghcr.io or the registry of the GitLab server:
  see "flux help environment".`,
		Example: `  # Push a directory of manifests with its commit
  flux push artifact oci://ghcr.io/org/manifests:$(git rev-parse --short HEAD) \
    --path ./deploy \
    --source "$(git config --get remote.origin.url)" \
    --revision "$(git branch --show-current)@sha1:$(git rev-parse HEAD)"

  # Push to AWS, Azure or Google Cloud with the identity in the environment
  flux push artifact oci://123456789012.dkr.ecr.eu-west-1.amazonaws.com/manifests:latest --provider aws \
    --path ./deploy --source https://github.com/org/app --revision "main@sha1:$(git rev-parse HEAD)"

  # Push to ghcr.io in a GitHub Actions job with 'permissions: packages: write'
  flux push artifact oci://ghcr.io/org/manifests:latest --provider github \
    --path ./deploy --source https://github.com/org/app --revision "main@sha1:$(git rev-parse HEAD)"

  # Sign the pushed artifact by its digest
  digest=$(flux push artifact oci://ghcr.io/org/manifests:v1.2.0 --path ./deploy \
    --source https://github.com/org/app --revision "v1.2.0@sha1:$(git rev-parse HEAD)" -o json | jq -r .digest)
  cosign sign ghcr.io/org/manifests@$digest

  # Push a reproducible artifact: identical files and flags produce the same digest
  flux push artifact oci://ghcr.io/org/manifests:latest --path ./deploy --reproducible \
    --source https://github.com/org/app --revision "main@sha1:$(git rev-parse HEAD)"

  # Push the output of another command
  kustomize build ./overlays/production | flux push artifact oci://ghcr.io/org/production:latest --path - \
    --source https://github.com/org/app --revision "main@sha1:$(git rev-parse HEAD)"`,
		ValidArgsFunction: oci.CompleteAddress,
		RunE:              func(cmd *cobra.Command, args []string) error { return pushArtifact(a, cmd, o, args) },
	}
	flags := cmd.Flags()
	o.Add(flags)
	oci.AddAccess(a, flags, &o.access)
	flags.StringVarP(&o.Path, "path", "f", "", "directory or file to push, '-' for standard input")
	flags.StringVar(&o.source, "source", "", "URL of the source, e.g. of the Git repository")
	flags.StringVar(&o.revision, "revision", "", "revision of the files, e.g. main@sha1:6f9a1b2c")
	flags.StringArrayVarP(&o.annotations, "annotations", "a", nil, "annotation for the artifact as key=value; can be repeated")
	flags.BoolVar(&o.reproducible, "reproducible", false, "set the creation time to 1970-01-01, so that identical files have the same digest")
	flags.BoolVar(&o.Resolve, "resolve-symlinks", false, "pack the targets of symbolic links instead of skipping the links")
	flags.BoolVar(&o.debug, "debug", false, "print the requests to the registry")
	command.AddOutput(flags, &o.format, "output format", "json", "yaml")
	return cmd
}

func pushArtifact(a *app.App, cmd *cobra.Command, o *pushOptions, args []string) error {
	address, err := oci.Address(cmd, args)
	if err != nil {
		return err
	}
	annotations, err := o.check(a)
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	line := a.UI.Progress(a.Now, "packing %s", o.Path)
	defer line.Done()
	archive, err := oci.Pack(ctx, a, &o.PackOptions)
	if err != nil {
		return err
	}
	created := time.Unix(0, 0)
	if !o.reproducible {
		created = a.Now()
	}
	if o.debug {
		secrets := o.access.Wrap
		o.access.Wrap = func(next http.RoundTripper) http.RoundTripper { return logged(a.UI.Line, secrets(next)) }
	}
	a.UI.Action("pushing artifact to %s", strings.TrimPrefix(address, registry.Scheme))
	line.Set("pushing")
	o.access.Progress = line.Bytes
	pushed, err := registry.Push(ctx, address, archive, annotations, created, o.access)
	line.Done()
	if err != nil {
		return registry.Explain(ctx, o.access, err)
	}
	a.UI.Success("artifact successfully pushed to %s@%s", pushed.Repository, pushed.Digest)
	if o.format == "" {
		return nil
	}
	// The annotations repeat the flags, so the output omits them.
	return a.Encode(o.format, oci.Entry{URL: pushed.URL(), Repository: pushed.Repository, Tag: pushed.Tag, Digest: pushed.Digest})
}

// check validates all flags, reports every error, and returns the annotations.
func (o *pushOptions) check(a *app.App) (map[string]string, error) {
	var wrong []error
	for _, needed := range []struct{ flag, value, example string }{
		{"path", o.Path, "./deploy"},
		{"source", o.source, `"$(git config --get remote.origin.url)"`},
		{"revision", o.revision, `"$(git branch --show-current)@sha1:$(git rev-parse HEAD)"`},
	} {
		if needed.value == "" {
			wrong = append(wrong, fmt.Errorf("--%s is required, such as --%s %s", needed.flag, needed.flag, needed.example))
		}
	}
	annotations := map[string]string{}
	for _, item := range o.annotations {
		key, value, ok := strings.Cut(item, "=")
		if !ok || key == "" {
			wrong = append(wrong, fmt.Errorf("invalid annotation %q: must be key=value", item))
		}
		if _, err := time.Parse(time.RFC3339, value); key == registry.CreatedAnnotation && err != nil {
			wrong = append(wrong, fmt.Errorf("annotation %s must be a time such as 2026-01-31T10:00:00Z", key))
		}
		annotations[key] = value
	}
	annotations[registry.SourceAnnotation] = oci.WithoutCredentials(o.source)
	annotations[registry.RevisionAnnotation] = o.revision
	if annotations[registry.SourceAnnotation] != o.source {
		a.UI.Warning("credentials removed from --source")
	}
	return annotations, errors.Join(wrong...)
}

// logged returns a transport that prints requests: the method, URL and status, which contain no secrets.
func logged(printf func(format string, args ...any), next http.RoundTripper) http.RoundTripper {
	return web.Wrap(next, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		status := "no response"
		if err == nil {
			status = response.Status
		}
		printf("%s %s://%s%s: %s", r.Method, r.URL.Scheme, r.URL.Host, r.URL.Path, status)
		return response, err
	})
}
