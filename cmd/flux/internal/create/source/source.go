// Package source has the builders of the source kinds for flux create source.
package source

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/input"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/syntax"
	"github.com/fluxkit/flux/cmd/flux/internal/create/creation"
	"github.com/fluxkit/flux/cmd/flux/internal/create/credentials"
)

// providers lists the authentication providers of registries and buckets.
var providers = []string{"generic", "aws", "azure", "gcp"}

// withVerification adds the signature verification flags for artifacts and charts. Their fields are replaced
// together: mixing two verifications could accept more signatures.
func withVerification(flags ...creation.Flag) []creation.Flag {
	pattern := (*creation.Creation).Pattern
	return append(flags,
		creation.Choice("verify-provider", "verify.provider", "signature verification provider: cosign, notation", "cosign", "notation").Replaces("verify"),
		creation.ObjectName("verify-secret-ref", "verify.secretRef.name", "name of the Secret with the trusted public keys or certificates", "Secret").Replaces("verify"),
		creation.Text("verify-issuer", "", "regular expression that the OIDC issuer of keyless signatures must match").Checked(pattern).Replaces("verify"),
		creation.Text("verify-subject", "", "regular expression that the OIDC subject of keyless signatures must match").Checked(pattern).Replaces("verify"),
	)
}

func putVerification(c *creation.Creation, spec map[string]any) {
	c.Needs("verify-provider", "verify-secret-ref", "verify-issuer", "verify-subject")
	if c.Text("verify-provider") == "notation" && c.Text("verify-secret-ref") == "" {
		c.Check(errors.New("--verify-provider=notation requires --verify-secret-ref with the trust policy and certificates"))
	}
	if issuer, subject := c.Text("verify-issuer"), c.Text("verify-subject"); issuer+subject != "" {
		creation.Put(spec, "verify.matchOIDCIdentity", []any{map[string]any{"issuer": issuer, "subject": subject}})
	}
}

// fetched adds the flags of all sources that are fetched from a server.
func fetched(flags ...creation.Flag) []creation.Flag {
	return append(flags, creation.Interval(), creation.Inherited("fetch-timeout", "timeout").Checked((*creation.Creation).Positive))
}

// files adds the flags of sources whose artifacts contain several files.
func files(flags ...creation.Flag) []creation.Flag {
	return fetched(append(flags,
		creation.ObjectName("proxy-secret-ref", "proxySecretRef.name", "name of the Secret with the proxy address and credentials", "Secret"),
		creation.List("ignore-paths", "ignore", "paths to exclude, in .gitignore format").
			As(func(c *creation.Creation) any { return strings.Join(c.List("ignore-paths"), "\n") }),
	)...)
}

// OCIRepository returns the builder of OCIRepositories.
func OCIRepository() creation.Builder {
	return creation.Builder{
		Kind: "OCIRepository",
		Example: `  # Track a tag
  flux create source oci podinfo --url=oci://ghcr.io/stefanprodan/manifests/podinfo --tag=latest --interval=10m

  # Track a semver range and verify the keyless signature
  flux create source oci podinfo --url=oci://ghcr.io/stefanprodan/manifests/podinfo --tag-semver='6.x' \
    --verify-provider=cosign --verify-issuer='^https://token.actions.githubusercontent.com$' --verify-subject='^https://github.com/stefanprodan/'

  # Use a Helm chart as the artifact
  flux create source oci chart --url=oci://ghcr.io/stefanprodan/charts/podinfo --tag=6.9.0 \
    --layer-selector=application/vnd.cncf.helm.chart.content.v1.tar+gzip:copy`,
		Flags: withVerification(files(
			creation.Text("url", "url", "URL of the artifact, oci://HOST/PATH"),
			creation.Text("tag", "ref.tag", "tag to track").Replaces("ref"),
			creation.Text("tag-semver", "ref.semver", "semver range of the tags to track").Replaces("ref").Checked((*creation.Creation).Versions),
			creation.Text("digest", "ref.digest", "digest to pin, sha256:…").Replaces("ref").Checked((*creation.Creation).Digest),
			creation.Choice("provider", "provider", "authentication provider of the registry: "+strings.Join(providers, ", "), providers...).Default("generic"),
			creation.ObjectName("secret-ref", "secretRef.name", "name of the Secret with the registry credentials", "Secret"),
			creation.ObjectName("service-account", "serviceAccountName", "name of the ServiceAccount with image pull secrets", "ServiceAccount"),
			creation.ObjectName("cert-ref", "certSecretRef.name", "name of the Secret with TLS certificates", "Secret"),
			creation.Text("layer-selector", "", "artifact layer and operation: MEDIATYPE or MEDIATYPE:OPERATION; operations: "+strings.Join(syntax.LayerOperations, ", ")+" (default: extract)").
				Suggests(layerSelectors()...).Replaces("layerSelector"),
			creation.Switch("insecure", "insecure", "connect to the registry over plain HTTP"),
		)...),
		Spec: func(c *creation.Creation, spec map[string]any) {
			c.URL("url", c.Text("url"), "oci")
			if c.Text("tag")+c.Text("tag-semver")+c.Text("digest") == "" && !c.Partial {
				c.Check(errors.New("--tag, --tag-semver or --digest is required"))
			}
			c.Exclusive("tag", "tag-semver", "digest")
			if layer := c.Text("layer-selector"); layer != "" {
				l, err := syntax.ParseLayer(layer)
				c.CheckFlag("layer-selector", err)
				creation.Put(spec, "layerSelector.mediaType", l.MediaType)
				creation.Put(spec, "layerSelector.operation", l.Operation)
			}
			putVerification(c, spec)
		},
	}
}

// layerSelectors returns the completions of --layer-selector: the media types of
// Flux artifacts and Helm charts with each operation.
func layerSelectors() []string {
	var all []string
	for _, media := range []string{"application/vnd.cncf.flux.content.v1.tar+gzip", "application/vnd.cncf.helm.chart.content.v1.tar+gzip"} {
		for _, operation := range syntax.LayerOperations {
			all = append(all, media+":"+operation)
		}
	}
	return all
}

// Bucket returns the builder of Buckets.
func Bucket() creation.Builder {
	secretKey := input.NewSecretFlag("secret-key")
	return creation.Builder{
		Kind: "Bucket",
		Example: `  # Use an S3-compatible server: create a Secret with the keys
  flux create source bucket podinfo --bucket-name=podinfo --endpoint=minio.minio.svc.cluster.local:9000 \
    --insecure --access-key=me --secret-key-file=./secret-key --interval=10m

  # Use Amazon S3 with workload identity
  flux create source bucket podinfo --bucket-name=podinfo --endpoint=s3.amazonaws.com --region=us-east-1 --provider=aws`,
		SecretFlags: append(secretKey.FlagNames(), "access-key"),
		Flags: files(
			creation.Choice("provider", "provider", "provider of the bucket: "+strings.Join(providers, ", "), providers...).Default("generic"),
			creation.Text("bucket-name", "bucketName", "name of the bucket").Required(),
			creation.Text("endpoint", "endpoint", "host and optional port of the bucket server").Required().
				Checked(func(c *creation.Creation, flag, value string) { c.Endpoint(flag, value) }),
			creation.Text("access-key", "", "access key to store in a Secret"),
			creation.Text("region", "region", "region of the bucket"),
			creation.ObjectName("secret-ref", "secretRef.name", "name of the Secret with the keys", "Secret"),
			creation.Switch("insecure", "insecure", "connect to the bucket server over plain HTTP"),
		),
		OtherFlags: func(fs *pflag.FlagSet) { secretKey.Add(fs, "", "secret key", " to store in a Secret") },
		Spec: func(c *creation.Creation, _ map[string]any) {
			c.Excludes("secret-ref", "the keys are in the Secret", append(secretKey.FlagNames(), "access-key")...)
			if (c.Text("access-key") != "") != c.SecretGiven(secretKey) {
				c.Check(errors.New("--access-key and --secret-key must be set together"))
			}
		},
		Secret: func(_ context.Context, c *creation.Creation, spec map[string]any) (*unstructured.Unstructured, error) {
			key := c.Text("access-key")
			if key == "" {
				return nil, nil // no credentials are set
			}
			name := "bucket-" + c.Name
			creation.Put(spec, "secretRef.name", name)
			secret := credentials.NewSecret(c, name, "", map[string]string{"accesskey": key, "secretkey": c.Secret(secretKey)})
			return secret, c.Err()
		},
	}
}

// HelmRepository returns the builder of HelmRepositories.
func HelmRepository() creation.Builder {
	password, tls := input.NewSecretFlag("password"), credentials.TLS{Ca: "ca-file", Cert: "cert-file", Key: "key-file"}
	return creation.Builder{
		Kind: "HelmRepository",
		Example: `  # Use a public repository
  flux create source helm podinfo --url=https://stefanprodan.github.io/podinfo --interval=10m

  # Use a private repository: create a Secret with the credentials
  flux create source helm podinfo --url=https://charts.example.com --username=me --password-stdin < password

  # Use charts in a registry
  flux create source helm podinfo --url=oci://ghcr.io/stefanprodan/charts --secret-ref=ghcr`,
		SecretFlags: append(password.FlagNames(), "username", "ca-file", "cert-file", "key-file"),
		Flags: fetched(
			creation.Text("url", "url", "URL of the repository: https, http or oci").Replaces("url", "type", "provider"),
			creation.Text("username", "", "user name to store in a Secret").Short("u"),
			creation.ObjectName("secret-ref", "secretRef.name", "name of the Secret with the credentials", "Secret"),
			creation.OneOf("oci-provider", "", "authentication provider of the registry: "+strings.Join(providers, ", "), providers...).Replaces("url", "type", "provider"),
			creation.Switch("pass-credentials", "passCredentials", "also send the credentials to other hosts in the repository index"),
		),
		OtherFlags: func(fs *pflag.FlagSet) {
			password.Add(fs, "p", "password", " to store in a Secret")
			tls.Add(fs)
		},
		Spec: func(c *creation.Creation, spec map[string]any) {
			u, provider := c.URL("url", c.Text("url"), "https", "http", "oci"), c.Text("oci-provider")
			c.Excludes("secret-ref", "the credentials are in the Secret", append(password.FlagNames(), "username")...)
			if (c.Text("username") != "") != c.SecretGiven(password) {
				c.Check(errors.New("--username and --password must be set together"))
			}
			tls.Check(c)
			if u != nil && u.Scheme == "oci" {
				creation.Put(spec, "type", "oci")
				creation.Put(spec, "provider", provider)
			} else if provider != "" {
				c.Check(errors.New("--oci-provider requires an oci:// URL"))
			}
		},
		Secret: func(_ context.Context, c *creation.Creation, spec map[string]any) (*unstructured.Unstructured, error) {
			name, data := "helm-"+c.Name, tls.Read(c)
			if len(data) > 0 {
				creation.Put(spec, "certSecretRef.name", name)
			}
			if username := c.Text("username"); username != "" {
				creation.Put(spec, "secretRef.name", name)
				data["username"], data["password"] = username, c.Secret(password)
			}
			if len(data) == 0 {
				return nil, nil // no credentials are set
			}
			return credentials.NewSecret(c, name, "", data), c.Err()
		},
	}
}

// HelmChart returns the builder of HelmCharts.
func HelmChart() creation.Builder {
	return creation.Builder{
		Kind: "HelmChart",
		Example: `  # Track a semver range of a chart in a Helm repository
  flux create source chart podinfo --source=HelmRepository/podinfo --chart=podinfo --chart-version=6.x

  # Package a chart from Git for every revision
  flux create source chart podinfo --source=GitRepository/podinfo --chart=./charts/podinfo --reconcile-strategy=Revision`,
		Flags: withVerification(
			creation.Reference("source", "sourceRef", "source of the chart as KIND/NAME; kinds: HelmRepository, GitRepository, Bucket",
				syntax.Rules{Kinds: creation.ChartSources, Local: true}).Required(),
			creation.Text("chart", "chart", "name of the chart, or its path in a GitRepository or Bucket").Required(),
			creation.Text("chart-version", "version", "version or semver range of the chart (only with a HelmRepository)").Checked((*creation.Creation).Versions),
			creation.OneOf("reconcile-strategy", "reconcileStrategy", "change that produces a new chart artifact: "+strings.Join(creation.ReconcileStrategies, ", "), creation.ReconcileStrategies...).
				Default(creation.ReconcileStrategies[0]),
			creation.Interval(),
		),
		Spec: func(c *creation.Creation, spec map[string]any) {
			if c.Duration("fetch-timeout") != 0 {
				c.Check(errors.New("--fetch-timeout is not supported by HelmCharts: set it on the source of the chart"))
			}
			putVerification(c, spec)
		},
	}
}
