// Package source has the commands below create source.
package source

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/cli/create/creation"
	"github.com/fluxkit/flux/internal/cli/create/credentials"
	"github.com/fluxkit/flux/internal/cli/validate"
	"github.com/fluxkit/flux/internal/input"
)

// clouds are whose workload identity opens registries and buckets.
var clouds = []string{"generic", "aws", "azure", "gcp"}

// verifyFlags say whose signature an artifact or chart has to carry.
type verifyFlags struct{ provider, secretRef, issuer, subject string }

func (v *verifyFlags) add(fs *pflag.FlagSet) {
	fs.Var(command.Choice{Value: &v.provider, Allowed: []string{"cosign", "notation"}}, "verify-provider", "what the signature was made with: cosign, notation")
	fs.StringVar(&v.secretRef, "verify-secret-ref", "", "the Secret with the public keys or certificates that are trusted")
	fs.StringVar(&v.issuer, "verify-issuer", "", "a regular expression for the OIDC issuer of keyless signatures")
	fs.StringVar(&v.subject, "verify-subject", "", "a regular expression for the OIDC subject of keyless signatures")
}

func (v *verifyFlags) put(c *creation.Creation, spec map[string]any) {
	c.Needs("verify-provider", "verify-secret-ref", "verify-issuer", "verify-subject")
	c.ObjectName("verify-secret-ref", v.secretRef)
	c.Pattern("verify-issuer", v.issuer)
	c.Pattern("verify-subject", v.subject)
	if v.provider == "notation" && v.secretRef == "" {
		c.Check(errors.New("--verify-provider=notation needs --verify-secret-ref with the trust policy and certificates"))
	}
	creation.Put(spec, "verify.provider", v.provider)
	creation.Put(spec, "verify.secretRef.name", v.secretRef)
	if v.issuer != "" || v.subject != "" {
		creation.Put(spec, "verify.matchOIDCIdentity", []any{map[string]any{"issuer": v.issuer, "subject": v.subject}})
	}
}

// fetching puts what all sources have.
func fetching(c *creation.Creation, spec map[string]any, url, proxy string, ignore []string) {
	c.Positive(map[string]time.Duration{"fetch-timeout": c.FetchTimeout})
	c.ObjectName("proxy-secret-ref", proxy)
	creation.Put(spec, "url", url)
	creation.Put(spec, "interval", c.Interval)
	creation.Put(spec, "timeout", c.FetchTimeout)
	creation.Put(spec, "proxySecretRef.name", proxy)
	creation.Put(spec, "ignore", strings.Join(ignore, "\n"))
}

// ociRepositoryFlags are the flags of create source oci.
type ociRepositoryFlags struct {
	url, tag, semver, digest, secretRef, account, certRef, proxy, layer, provider string
	ignore                                                                        []string
	insecure                                                                      bool
	verify                                                                        verifyFlags
}

// OCIRepository returns what makes an OCIRepository.
func OCIRepository() creation.Builder {
	o := &ociRepositoryFlags{provider: "generic"}
	return creation.Builder{
		Kind: "OCIRepository",
		Example: `  # Follow a tag
  flux create source oci podinfo --url=oci://ghcr.io/stefanprodan/manifests/podinfo --tag=latest --interval=10m

  # Follow a range of versions, signed by its release workflow
  flux create source oci podinfo --url=oci://ghcr.io/stefanprodan/manifests/podinfo --tag-semver='6.x' \
    --verify-provider=cosign --verify-issuer='^https://token.actions.githubusercontent.com$' --verify-subject='^https://github.com/stefanprodan/'

  # Take a Helm chart as it is
  flux create source oci chart --url=oci://ghcr.io/stefanprodan/charts/podinfo --tag=6.9.0 \
    --layer-selector=application/vnd.cncf.helm.chart.content.v1.tar+gzip:copy`,
		Refers: map[string][]string{"secret-ref": {"Secret"}, "cert-ref": {"Secret"}, "proxy-secret-ref": {"Secret"}, "verify-secret-ref": {"Secret"}, "service-account": {"ServiceAccount"}},
		Words:  map[string][]string{"layer-selector": layerSelectors()},
		Flags:  o.add,
		Spec:   o.spec,
	}
}

// layerSelectors returns the selectors that completion offers: the layers of
// artifacts of Flux and of Helm charts.
func layerSelectors() []string {
	var all []string
	for _, media := range []string{"application/vnd.cncf.flux.content.v1.tar+gzip", "application/vnd.cncf.helm.chart.content.v1.tar+gzip"} {
		for _, operation := range input.LayerOperations {
			all = append(all, media+":"+operation)
		}
	}
	return all
}

func (o *ociRepositoryFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&o.url, "url", "", "the address of the artifact, oci://HOST/PATH")
	fs.StringVar(&o.tag, "tag", "", "the tag to follow")
	fs.StringVar(&o.semver, "tag-semver", "", "the range of versions to follow the newest tag of")
	fs.StringVar(&o.digest, "digest", "", "the digest to stay at, sha256:…")
	fs.Var(command.Choice{Value: &o.provider, Allowed: clouds}, "provider", "whose identity opens the registry: "+strings.Join(clouds, ", "))
	fs.StringVar(&o.secretRef, "secret-ref", "", "the Secret with the registry's credentials")
	fs.StringVar(&o.account, "service-account", "", "the ServiceAccount whose image pull secrets are used")
	fs.StringVar(&o.certRef, "cert-ref", "", "the Secret with TLS certificates")
	fs.StringVar(&o.proxy, "proxy-secret-ref", "", "the Secret with the address and credentials of a proxy")
	fs.StringVar(&o.layer, "layer-selector", "", "layer of the artifact and what to do with it: MEDIATYPE or MEDIATYPE:OPERATION; operations: "+strings.Join(input.LayerOperations, ", ")+" (default extract)")
	fs.StringSliceVar(&o.ignore, "ignore-paths", nil, "leave out these paths, in the format of .gitignore")
	fs.BoolVar(&o.insecure, "insecure", false, "speak plain HTTP to the registry")
	o.verify.add(fs)
}

func (o *ociRepositoryFlags) spec(c *creation.Creation) map[string]any {
	spec := map[string]any{}
	c.URL("url", o.url, "oci")
	if o.tag == "" && o.semver == "" && o.digest == "" {
		c.Check(errors.New("--tag, --tag-semver or --digest is required"))
	}
	c.Exclusive("an OCIRepository follows one of them", "tag", "tag-semver", "digest")
	c.Versions("tag-semver", o.semver)
	c.Digest("digest", o.digest)
	c.ObjectNames(map[string]string{"secret-ref": o.secretRef, "cert-ref": o.certRef, "service-account": o.account})
	fetching(c, spec, o.url, o.proxy, o.ignore)
	creation.Put(spec, "provider", o.provider)
	creation.Put(spec, "ref.digest", o.digest)
	creation.Put(spec, "ref.semver", o.semver)
	creation.Put(spec, "ref.tag", o.tag)
	creation.Put(spec, "secretRef.name", o.secretRef)
	creation.Put(spec, "certSecretRef.name", o.certRef)
	creation.Put(spec, "serviceAccountName", o.account)
	creation.Put(spec, "insecure", o.insecure)
	if o.layer != "" {
		l, err := input.ParseLayer(o.layer)
		c.CheckFlag("layer-selector", err)
		creation.Put(spec, "layerSelector.mediaType", l.MediaType)
		creation.Put(spec, "layerSelector.operation", l.Operation)
	}
	o.verify.put(c, spec)
	return spec
}

// Bucket returns what makes a Bucket.
func Bucket() creation.Builder {
	var bucket, endpoint, accessKey, region, secretRef, proxy string
	var ignore []string
	var insecure bool
	provider, secretKey := "generic", validate.NewSecretFlag("secret-key")
	return creation.Builder{
		Kind: "Bucket",
		Example: `  # A bucket of an S3-compatible server, with a Secret made from the keys
  flux create source bucket podinfo --bucket-name=podinfo --endpoint=minio.minio.svc.cluster.local:9000 \
    --insecure --access-key=me --secret-key-file=./secret-key --interval=10m

  # A bucket of Amazon, opened by the identity of the cluster
  flux create source bucket podinfo --bucket-name=podinfo --endpoint=s3.amazonaws.com --region=us-east-1 --provider=aws`,
		Refers:      map[string][]string{"secret-ref": {"Secret"}, "proxy-secret-ref": {"Secret"}},
		SecretFlags: append(secretKey.Names(), "access-key"),
		Flags: func(fs *pflag.FlagSet) {
			fs.Var(command.Choice{Value: &provider, Allowed: clouds}, "provider", "whose store it is: "+strings.Join(clouds, ", "))
			fs.StringVar(&bucket, "bucket-name", "", "the name of the bucket")
			fs.StringVar(&endpoint, "endpoint", "", "the host, and port, of the store")
			fs.StringVar(&accessKey, "access-key", "", "the access key, to make a Secret from")
			secretKey.Add(fs, "", "the secret key", ", to make a Secret from")
			fs.StringVar(&region, "region", "", "the region of the bucket")
			fs.StringVar(&secretRef, "secret-ref", "", "the Secret with the keys")
			fs.StringVar(&proxy, "proxy-secret-ref", "", "the Secret with the address and credentials of a proxy")
			fs.StringSliceVar(&ignore, "ignore-paths", nil, "leave out these paths, in the format of .gitignore")
			fs.BoolVar(&insecure, "insecure", false, "speak plain HTTP to the store")
		},
		Spec: func(c *creation.Creation) map[string]any {
			spec := map[string]any{}
			c.Require("bucket-name", bucket)
			c.Require("endpoint", endpoint)
			c.Endpoint("endpoint", endpoint)
			c.ObjectName("secret-ref", secretRef)
			c.Excludes("secret-ref", "the keys are in the Secret", append(secretKey.Names(), "access-key")...)
			if (accessKey != "") != c.Asked(secretKey) {
				c.Check(errors.New("--access-key and --secret-key go together"))
			}
			fetching(c, spec, "", proxy, ignore)
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
				return nil, nil //nolint:nilnil // no Secret is asked for
			}
			name := "bucket-" + c.Name
			creation.Put(spec, "secretRef.name", name)
			secret := credentials.NewSecret(c, name, "", map[string]string{"accesskey": accessKey, "secretkey": c.Secret(secretKey)})
			return secret, c.Err()
		},
	}
}

// HelmRepository returns what makes a HelmRepository.
func HelmRepository() creation.Builder {
	var url, username, secretRef, provider string
	var passCredentials bool
	password, files := validate.NewSecretFlag("password"), credentials.TLS{Ca: "ca-file", Cert: "cert-file", Key: "key-file"}
	return creation.Builder{
		Kind: "HelmRepository",
		Example: `  # A public repository
  flux create source helm podinfo --url=https://stefanprodan.github.io/podinfo --interval=10m

  # A private one, with a Secret made from the credentials
  flux create source helm podinfo --url=https://charts.example.com --username=me --password-stdin < password

  # Charts in a registry
  flux create source helm podinfo --url=oci://ghcr.io/stefanprodan/charts --secret-ref=ghcr`,
		Refers:      map[string][]string{"secret-ref": {"Secret"}},
		Words:       map[string][]string{"oci-provider": clouds},
		SecretFlags: append(password.Names(), "username", "ca-file", "cert-file", "key-file"),
		Flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&url, "url", "", "the address of the repository: https, http or oci")
			fs.StringVarP(&username, "username", "u", "", "the user name, to make a Secret from")
			password.Add(fs, "p", "the password", ", to make a Secret from")
			files.Add(fs)
			fs.StringVar(&secretRef, "secret-ref", "", "the Secret with the credentials")
			fs.StringVar(&provider, "oci-provider", "", "whose identity opens the registry: "+strings.Join(clouds, ", "))
			fs.BoolVar(&passCredentials, "pass-credentials", false, "send the credentials to other hosts that the index names too")
		},
		Spec: func(c *creation.Creation) map[string]any {
			spec := map[string]any{}
			u := c.URL("url", url, "https", "http", "oci")
			c.OneOf("oci-provider", provider, clouds)
			c.ObjectName("secret-ref", secretRef)
			c.Excludes("secret-ref", "the credentials are in the Secret", append(password.Names(), "username")...)
			if (username != "") != c.Asked(password) {
				c.Check(errors.New("--username and --password go together"))
			}
			files.Check(c)
			fetching(c, spec, url, "", nil)
			if u != nil && u.Scheme == "oci" {
				creation.Put(spec, "type", "oci")
				creation.Put(spec, "provider", provider)
			} else if provider != "" {
				c.Check(errors.New("--oci-provider is for oci:// addresses"))
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
				return nil, nil //nolint:nilnil // no Secret is asked for
			}
			return credentials.NewSecret(c, name, "", data), c.Err()
		},
	}
}

// HelmChart returns what makes a HelmChart.
func HelmChart() creation.Builder {
	var source, chart, version string
	strategy, verify := creation.Strategies[0], verifyFlags{}
	return creation.Builder{
		Kind: "HelmChart",
		Example: `  # The newest chart of a range out of a Helm repository
  flux create source chart podinfo --source=HelmRepository/podinfo --chart=podinfo --chart-version=6.x

  # A chart out of Git, anew with every commit
  flux create source chart podinfo --source=GitRepository/podinfo --chart=./charts/podinfo --reconcile-strategy=Revision`,
		Refers: map[string][]string{"source": creation.ChartSources, "verify-secret-ref": {"Secret"}},
		Words:  map[string][]string{"reconcile-strategy": creation.Strategies},
		Flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&source, "source", "", "where the chart is: HelmRepository, GitRepository or Bucket, as <kind>/<name>")
			fs.StringVar(&chart, "chart", "", "the name of the chart, or its path")
			fs.StringVar(&version, "chart-version", "", "the version or range of versions, in a HelmRepository")
			fs.StringVar(&strategy, "reconcile-strategy", strategy, "what makes a new chart: "+strings.Join(creation.Strategies, ", "))
			verify.add(fs)
		},
		Spec: func(c *creation.Creation) map[string]any {
			spec := map[string]any{}
			c.Require("source", source)
			c.Require("chart", chart)
			c.Versions("chart-version", version)
			c.OneOf("reconcile-strategy", strategy, creation.Strategies)
			ref := c.Refer("source", source, input.Rules{Kinds: creation.ChartSources, Local: true})
			fetching(c, spec, "", "", nil)
			if c.FetchTimeout != 0 {
				c.Check(errors.New("--fetch-timeout is for the source of a chart"))
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
