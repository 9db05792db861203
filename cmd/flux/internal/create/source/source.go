// Package source has the builders of the source kinds for flux create source.
package source

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/input"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/syntax"
	"github.com/fluxkit/flux/cmd/flux/internal/create/creation"
	"github.com/fluxkit/flux/cmd/flux/internal/create/credentials"
)

// providers lists the authentication providers of registries and buckets.
var providers = []string{"generic", "aws", "azure", "gcp"}

// verifyFlags holds the flags for the signature verification of artifacts and charts.
type verifyFlags struct{ provider, secretRef, issuer, subject string }

func (v *verifyFlags) add(fs *pflag.FlagSet) {
	fs.Var(command.Choice{Value: &v.provider, Allowed: []string{"cosign", "notation"}}, "verify-provider", "signature verification provider: cosign, notation")
	fs.StringVar(&v.secretRef, "verify-secret-ref", "", "name of the Secret with the trusted public keys or certificates")
	fs.StringVar(&v.issuer, "verify-issuer", "", "regular expression that the OIDC issuer of keyless signatures must match")
	fs.StringVar(&v.subject, "verify-subject", "", "regular expression that the OIDC subject of keyless signatures must match")
}

// verified returns the fields of a builder with those of the signature verification, which are
// replaced together: a part of another verification could accept more signatures.
func verified(fields map[string][]string) map[string][]string {
	for _, flag := range []string{"verify-provider", "verify-secret-ref", "verify-issuer", "verify-subject"} {
		fields[flag] = []string{"verify"}
	}
	return fields
}

func (v *verifyFlags) put(c *creation.Creation, spec map[string]any) {
	c.Needs("verify-provider", "verify-secret-ref", "verify-issuer", "verify-subject")
	c.ObjectName("verify-secret-ref", v.secretRef)
	c.Pattern("verify-issuer", v.issuer)
	c.Pattern("verify-subject", v.subject)
	if v.provider == "notation" && v.secretRef == "" {
		c.Check(errors.New("--verify-provider=notation requires --verify-secret-ref with the trust policy and certificates"))
	}
	creation.Put(spec, "verify.provider", v.provider)
	creation.Put(spec, "verify.secretRef.name", v.secretRef)
	if v.issuer != "" || v.subject != "" {
		creation.Put(spec, "verify.matchOIDCIdentity", []any{map[string]any{"issuer": v.issuer, "subject": v.subject}})
	}
}

// putFetchFields sets the spec fields that all sources have.
func putFetchFields(c *creation.Creation, spec map[string]any, url, proxy string, ignore []string) {
	c.Positive(map[string]time.Duration{"fetch-timeout": c.FetchTimeout})
	c.ObjectName("proxy-secret-ref", proxy)
	creation.Put(spec, "url", url)
	creation.Put(spec, "interval", c.Interval)
	creation.Put(spec, "timeout", c.FetchTimeout)
	creation.Put(spec, "proxySecretRef.name", proxy)
	creation.Put(spec, "ignore", strings.Join(ignore, "\n"))
}

// ociRepositoryFlags holds the flags of create source oci.
type ociRepositoryFlags struct {
	url, tag, semver, digest, secretRef, account, certRef, proxy, layer, provider string
	ignore                                                                        []string
	insecure                                                                      bool
	verify                                                                        verifyFlags
}

// OCIRepository returns the builder of OCIRepositories.
func OCIRepository() creation.Builder {
	o := &ociRepositoryFlags{provider: "generic"}
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
		Refers: map[string][]string{"secret-ref": {"Secret"}, "cert-ref": {"Secret"}, "proxy-secret-ref": {"Secret"}, "verify-secret-ref": {"Secret"}, "service-account": {"ServiceAccount"}},
		Fields: verified(map[string][]string{
			"url": {"url"}, "tag": {"ref"}, "tag-semver": {"ref"}, "digest": {"ref"}, "provider": {"provider"}, "secret-ref": {"secretRef"},
			"service-account": {"serviceAccountName"}, "cert-ref": {"certSecretRef"}, "proxy-secret-ref": {"proxySecretRef"},
			"layer-selector": {"layerSelector"}, "ignore-paths": {"ignore"}, "insecure": {"insecure"},
		}),
		Words: map[string][]string{"layer-selector": layerSelectors()},
		Flags: o.add,
		Spec:  o.spec,
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

func (o *ociRepositoryFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&o.url, "url", "", "URL of the artifact, oci://HOST/PATH")
	fs.StringVar(&o.tag, "tag", "", "tag to track")
	fs.StringVar(&o.semver, "tag-semver", "", "semver range of the tags to track")
	fs.StringVar(&o.digest, "digest", "", "digest to pin, sha256:…")
	fs.Var(command.Choice{Value: &o.provider, Allowed: providers}, "provider", "authentication provider of the registry: "+strings.Join(providers, ", "))
	fs.StringVar(&o.secretRef, "secret-ref", "", "name of the Secret with the registry credentials")
	fs.StringVar(&o.account, "service-account", "", "name of the ServiceAccount with image pull secrets")
	fs.StringVar(&o.certRef, "cert-ref", "", "name of the Secret with TLS certificates")
	fs.StringVar(&o.proxy, "proxy-secret-ref", "", "name of the Secret with the proxy address and credentials")
	fs.StringVar(&o.layer, "layer-selector", "", "layer of the artifact and what to do with it: MEDIATYPE or MEDIATYPE:OPERATION; operations: "+strings.Join(syntax.LayerOperations, ", ")+" (default extract)")
	fs.StringSliceVar(&o.ignore, "ignore-paths", nil, "paths to exclude, in the .gitignore format")
	fs.BoolVar(&o.insecure, "insecure", false, "connect to the registry over plain HTTP")
	o.verify.add(fs)
}

func (o *ociRepositoryFlags) spec(c *creation.Creation) map[string]any {
	spec := map[string]any{}
	c.URL("url", o.url, "oci")
	if o.tag == "" && o.semver == "" && o.digest == "" && !c.Partial {
		c.Check(errors.New("--tag, --tag-semver or --digest is required"))
	}
	c.Exclusive("tag", "tag-semver", "digest")
	c.Versions("tag-semver", o.semver)
	c.Digest("digest", o.digest)
	c.ObjectNames(map[string]string{"secret-ref": o.secretRef, "cert-ref": o.certRef, "service-account": o.account})
	putFetchFields(c, spec, o.url, o.proxy, o.ignore)
	creation.Put(spec, "provider", o.provider)
	creation.Put(spec, "ref.digest", o.digest)
	creation.Put(spec, "ref.semver", o.semver)
	creation.Put(spec, "ref.tag", o.tag)
	creation.Put(spec, "secretRef.name", o.secretRef)
	creation.Put(spec, "certSecretRef.name", o.certRef)
	creation.Put(spec, "serviceAccountName", o.account)
	creation.Put(spec, "insecure", o.insecure)
	if o.layer != "" {
		l, err := syntax.ParseLayer(o.layer)
		c.CheckFlag("layer-selector", err)
		creation.Put(spec, "layerSelector.mediaType", l.MediaType)
		creation.Put(spec, "layerSelector.operation", l.Operation)
	}
	o.verify.put(c, spec)
	return spec
}

// Bucket returns the builder of Buckets.
func Bucket() creation.Builder {
	var bucket, endpoint, accessKey, region, secretRef, proxy string
	var ignore []string
	var insecure bool
	provider, secretKey := "generic", input.NewSecretFlag("secret-key")
	return creation.Builder{
		Kind: "Bucket",
		Example: `  # Use an S3-compatible server: create a Secret with the keys
  flux create source bucket podinfo --bucket-name=podinfo --endpoint=minio.minio.svc.cluster.local:9000 \
    --insecure --access-key=me --secret-key-file=./secret-key --interval=10m

  # Use Amazon S3 with workload identity
  flux create source bucket podinfo --bucket-name=podinfo --endpoint=s3.amazonaws.com --region=us-east-1 --provider=aws`,
		Refers: map[string][]string{"secret-ref": {"Secret"}, "proxy-secret-ref": {"Secret"}},
		Fields: map[string][]string{
			"provider": {"provider"}, "bucket-name": {"bucketName"}, "endpoint": {"endpoint"}, "region": {"region"}, "secret-ref": {"secretRef"},
			"proxy-secret-ref": {"proxySecretRef"}, "ignore-paths": {"ignore"}, "insecure": {"insecure"},
		},
		SecretFlags: append(secretKey.FlagNames(), "access-key"),
		Flags: func(fs *pflag.FlagSet) {
			fs.Var(command.Choice{Value: &provider, Allowed: providers}, "provider", "provider of the bucket: "+strings.Join(providers, ", "))
			fs.StringVar(&bucket, "bucket-name", "", "name of the bucket")
			fs.StringVar(&endpoint, "endpoint", "", "host and optional port of the bucket server")
			fs.StringVar(&accessKey, "access-key", "", "access key to store in a Secret")
			secretKey.Add(fs, "", "secret key", " to store in a Secret")
			fs.StringVar(&region, "region", "", "region of the bucket")
			fs.StringVar(&secretRef, "secret-ref", "", "name of the Secret with the keys")
			fs.StringVar(&proxy, "proxy-secret-ref", "", "name of the Secret with the proxy address and credentials")
			fs.StringSliceVar(&ignore, "ignore-paths", nil, "paths to exclude, in the .gitignore format")
			fs.BoolVar(&insecure, "insecure", false, "connect to the bucket server over plain HTTP")
		},
		Spec: func(c *creation.Creation) map[string]any {
			spec := map[string]any{}
			c.Require("bucket-name", bucket)
			c.Require("endpoint", endpoint)
			c.Endpoint("endpoint", endpoint)
			c.ObjectName("secret-ref", secretRef)
			c.Excludes("secret-ref", "the keys are in the Secret", append(secretKey.FlagNames(), "access-key")...)
			if (accessKey != "") != c.SecretGiven(secretKey) {
				c.Check(errors.New("--access-key and --secret-key must be set together"))
			}
			putFetchFields(c, spec, "", proxy, ignore)
			creation.Put(spec, "bucketName", bucket)
			creation.Put(spec, "endpoint", endpoint)
			creation.Put(spec, "insecure", insecure)
			creation.Put(spec, "provider", provider)
			creation.Put(spec, "region", region)
			creation.Put(spec, "secretRef.name", secretRef)
			return spec
		},
		Secret: func(_ context.Context, c *creation.Creation, spec map[string]any) (*unstructured.Unstructured, error) {
			if accessKey == "" {
				return nil, nil // no credentials are set
			}
			name := "bucket-" + c.Name
			creation.Put(spec, "secretRef.name", name)
			secret := credentials.NewSecret(c, name, "", map[string]string{"accesskey": accessKey, "secretkey": c.Secret(secretKey)})
			return secret, c.Err()
		},
	}
}

// HelmRepository returns the builder of HelmRepositories.
func HelmRepository() creation.Builder {
	var url, username, secretRef, provider string
	var passCredentials bool
	password, files := input.NewSecretFlag("password"), credentials.TLS{Ca: "ca-file", Cert: "cert-file", Key: "key-file"}
	return creation.Builder{
		Kind: "HelmRepository",
		Example: `  # Use a public repository
  flux create source helm podinfo --url=https://stefanprodan.github.io/podinfo --interval=10m

  # Use a private repository: create a Secret with the credentials
  flux create source helm podinfo --url=https://charts.example.com --username=me --password-stdin < password

  # Use charts in a registry
  flux create source helm podinfo --url=oci://ghcr.io/stefanprodan/charts --secret-ref=ghcr`,
		Refers: map[string][]string{"secret-ref": {"Secret"}},
		Fields: map[string][]string{
			"url": {"url", "type", "provider"}, "oci-provider": {"url", "type", "provider"}, "secret-ref": {"secretRef"}, "pass-credentials": {"passCredentials"},
		},
		Words:       map[string][]string{"oci-provider": providers},
		SecretFlags: append(password.FlagNames(), "username", "ca-file", "cert-file", "key-file"),
		Flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&url, "url", "", "URL of the repository: https, http or oci")
			fs.StringVarP(&username, "username", "u", "", "user name to store in a Secret")
			password.Add(fs, "p", "password", " to store in a Secret")
			files.Add(fs)
			fs.StringVar(&secretRef, "secret-ref", "", "name of the Secret with the credentials")
			fs.StringVar(&provider, "oci-provider", "", "authentication provider of the registry: "+strings.Join(providers, ", "))
			fs.BoolVar(&passCredentials, "pass-credentials", false, "send the credentials also to other hosts that the index refers to")
		},
		Spec: func(c *creation.Creation) map[string]any {
			spec := map[string]any{}
			u := c.URL("url", url, "https", "http", "oci")
			c.OneOf("oci-provider", provider, providers)
			c.ObjectName("secret-ref", secretRef)
			c.Excludes("secret-ref", "the credentials are in the Secret", append(password.FlagNames(), "username")...)
			if (username != "") != c.SecretGiven(password) {
				c.Check(errors.New("--username and --password must be set together"))
			}
			files.Check(c)
			putFetchFields(c, spec, url, "", nil)
			if u != nil && u.Scheme == "oci" {
				creation.Put(spec, "type", "oci")
				creation.Put(spec, "provider", provider)
			} else if provider != "" {
				c.Check(errors.New("--oci-provider requires an oci:// URL"))
			}
			creation.Put(spec, "secretRef.name", secretRef)
			creation.Put(spec, "passCredentials", passCredentials)
			return spec
		},
		Secret: func(_ context.Context, c *creation.Creation, spec map[string]any) (*unstructured.Unstructured, error) {
			name, data := "helm-"+c.Name, files.Read(c)
			if len(data) > 0 {
				creation.Put(spec, "certSecretRef.name", name)
			}
			if username != "" {
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
	var source, chart, version string
	strategy, verify := creation.ReconcileStrategies[0], verifyFlags{}
	return creation.Builder{
		Kind: "HelmChart",
		Example: `  # Track a semver range of a chart in a Helm repository
  flux create source chart podinfo --source=HelmRepository/podinfo --chart=podinfo --chart-version=6.x

  # Package a chart from Git for every revision
  flux create source chart podinfo --source=GitRepository/podinfo --chart=./charts/podinfo --reconcile-strategy=Revision`,
		Refers: map[string][]string{"source": creation.ChartSources, "verify-secret-ref": {"Secret"}},
		Fields: verified(map[string][]string{
			"source": {"sourceRef"}, "chart": {"chart"}, "chart-version": {"version"}, "reconcile-strategy": {"reconcileStrategy"},
		}),
		Words: map[string][]string{"reconcile-strategy": creation.ReconcileStrategies},
		Flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&source, "source", "", "source of the chart as KIND/NAME; kinds: HelmRepository, GitRepository, Bucket")
			fs.StringVar(&chart, "chart", "", "name of the chart, or its path in a GitRepository or Bucket")
			fs.StringVar(&version, "chart-version", "", "version or semver range of the chart (only with a HelmRepository)")
			fs.StringVar(&strategy, "reconcile-strategy", strategy, "change that produces a new chart artifact: "+strings.Join(creation.ReconcileStrategies, ", "))
			verify.add(fs)
		},
		Spec: func(c *creation.Creation) map[string]any {
			spec := map[string]any{}
			c.Require("source", source)
			c.Require("chart", chart)
			c.Versions("chart-version", version)
			c.OneOf("reconcile-strategy", strategy, creation.ReconcileStrategies)
			ref := c.Refer("source", source, syntax.Rules{Kinds: creation.ChartSources, Local: true})
			putFetchFields(c, spec, "", "", nil)
			if c.FetchTimeout != 0 {
				c.Check(errors.New("--fetch-timeout is not supported by HelmCharts: set it on the source of the chart"))
			}
			creation.Put(spec, "chart", chart)
			creation.Put(spec, "version", version)
			creation.Put(spec, "reconcileStrategy", strategy)
			creation.Put(spec, "sourceRef", creation.RefField(ref))
			verify.put(c, spec)
			return spec
		},
	}
}
