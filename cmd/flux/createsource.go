package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/credential"
	"github.com/fluxkit/flux/internal/input"
)

// clouds are whose workload identity opens registries and buckets.
var clouds = []string{"generic", "aws", "azure", "gcp"}

// strategies are what makes a new chart out of a source.
var strategies = []string{"ChartVersion", "Revision"}

// verifyFlags say whose signature an artifact or chart has to carry.
type verifyFlags struct{ provider, secretRef, issuer, subject string }

func (v *verifyFlags) add(fs *pflag.FlagSet) {
	fs.Var(choice{&v.provider, []string{"cosign", "notation"}}, "verify-provider", "what the signature was made with: cosign, notation")
	fs.StringVar(&v.secretRef, "verify-secret-ref", "", "the Secret with the public keys or certificates that are trusted")
	fs.StringVar(&v.issuer, "verify-issuer", "", "a regular expression for the OIDC issuer of keyless signatures")
	fs.StringVar(&v.subject, "verify-subject", "", "a regular expression for the OIDC subject of keyless signatures")
}

func (v *verifyFlags) put(c *creation, spec map[string]any) {
	c.needs("verify-provider", "verify-secret-ref", "verify-issuer", "verify-subject")
	c.objectName("verify-secret-ref", v.secretRef)
	c.pattern("verify-issuer", v.issuer)
	c.pattern("verify-subject", v.subject)
	if v.provider == "notation" && v.secretRef == "" {
		c.wrong(errors.New("--verify-provider=notation needs --verify-secret-ref with the trust policy and certificates"))
	}
	put(spec, "verify.provider", v.provider)
	put(spec, "verify.secretRef.name", v.secretRef)
	if v.issuer != "" || v.subject != "" {
		put(spec, "verify.matchOIDCIdentity", []any{map[string]any{"issuer": v.issuer, "subject": v.subject}})
	}
}

// fetching puts what all sources have.
func (c *creation) fetching(spec map[string]any, url, proxy string, ignore []string) {
	c.positive(map[string]time.Duration{"fetch-timeout": c.fetchTimeout})
	c.objectName("proxy-secret-ref", proxy)
	put(spec, "url", url)
	put(spec, "interval", c.interval)
	put(spec, "timeout", c.fetchTimeout)
	put(spec, "proxySecretRef.name", proxy)
	put(spec, "ignore", strings.Join(ignore, "\n"))
}

// ociRepositoryFlags are the flags of create source oci.
type ociRepositoryFlags struct {
	url, tag, semver, digest, secretRef, account, certRef, proxy, layer, provider string
	ignore                                                                        []string
	insecure                                                                      bool
	verify                                                                        verifyFlags
}

func buildOCIRepository() builder {
	o := &ociRepositoryFlags{provider: "generic"}
	return builder{
		kind: "OCIRepository",
		example: `  # Follow a tag
  flux create source oci podinfo --url=oci://ghcr.io/stefanprodan/manifests/podinfo --tag=latest --interval=10m

  # Follow a range of versions, signed by its release workflow
  flux create source oci podinfo --url=oci://ghcr.io/stefanprodan/manifests/podinfo --tag-semver='6.x' \
    --verify-provider=cosign --verify-issuer='^https://token.actions.githubusercontent.com$' --verify-subject='^https://github.com/stefanprodan/'

  # Take a Helm chart as it is
  flux create source oci chart --url=oci://ghcr.io/stefanprodan/charts/podinfo --tag=6.9.0 \
    --layer-selector=application/vnd.cncf.helm.chart.content.v1.tar+gzip:copy`,
		refers: map[string][]string{"secret-ref": {"Secret"}, "cert-ref": {"Secret"}, "proxy-secret-ref": {"Secret"}, "verify-secret-ref": {"Secret"}, "service-account": {"ServiceAccount"}},
		words:  map[string][]string{"layer-selector": layerSelectors()},
		flags:  o.add,
		spec:   o.spec,
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
	fs.Var(choice{&o.provider, clouds}, "provider", "whose identity opens the registry: "+strings.Join(clouds, ", "))
	fs.StringVar(&o.secretRef, "secret-ref", "", "the Secret with the registry's credentials")
	fs.StringVar(&o.account, "service-account", "", "the ServiceAccount whose image pull secrets are used")
	fs.StringVar(&o.certRef, "cert-ref", "", "the Secret with TLS certificates")
	fs.StringVar(&o.proxy, "proxy-secret-ref", "", "the Secret with the address and credentials of a proxy")
	fs.StringVar(&o.layer, "layer-selector", "", "layer of the artifact and what to do with it: MEDIATYPE or MEDIATYPE:OPERATION; operations: "+strings.Join(input.LayerOperations, ", ")+" (default extract)")
	fs.StringSliceVar(&o.ignore, "ignore-paths", nil, "leave out these paths, in the format of .gitignore")
	fs.BoolVar(&o.insecure, "insecure", false, "speak plain HTTP to the registry")
	o.verify.add(fs)
}

func (o *ociRepositoryFlags) spec(c *creation) map[string]any {
	spec := map[string]any{}
	c.address("url", o.url, "oci")
	if o.tag == "" && o.semver == "" && o.digest == "" {
		c.wrong(errors.New("--tag, --tag-semver or --digest is required"))
	}
	c.exclusive("an OCIRepository follows one of them", "tag", "tag-semver", "digest")
	c.versions("tag-semver", o.semver)
	c.digest("digest", o.digest)
	c.objectNames(map[string]string{"secret-ref": o.secretRef, "cert-ref": o.certRef, "service-account": o.account})
	c.fetching(spec, o.url, o.proxy, o.ignore)
	put(spec, "provider", o.provider)
	put(spec, "ref.digest", o.digest)
	put(spec, "ref.semver", o.semver)
	put(spec, "ref.tag", o.tag)
	put(spec, "secretRef.name", o.secretRef)
	put(spec, "certSecretRef.name", o.certRef)
	put(spec, "serviceAccountName", o.account)
	put(spec, "insecure", o.insecure)
	if o.layer != "" {
		l, err := input.ParseLayer(o.layer)
		c.flagged("layer-selector", err)
		put(spec, "layerSelector.mediaType", l.MediaType)
		put(spec, "layerSelector.operation", l.Operation)
	}
	o.verify.put(c, spec)
	return spec
}

func buildBucket() builder {
	var bucket, endpoint, accessKey, region, secretRef, proxy string
	var ignore []string
	var insecure bool
	provider, secretKey := "generic", newSecretFlag("secret-key")
	return builder{
		kind: "Bucket",
		example: `  # A bucket of an S3-compatible server, with a Secret made from the keys
  flux create source bucket podinfo --bucket-name=podinfo --endpoint=minio.minio.svc.cluster.local:9000 \
    --insecure --access-key=me --secret-key-file=./secret-key --interval=10m

  # A bucket of Amazon, opened by the identity of the cluster
  flux create source bucket podinfo --bucket-name=podinfo --endpoint=s3.amazonaws.com --region=us-east-1 --provider=aws`,
		refers:      map[string][]string{"secret-ref": {"Secret"}, "proxy-secret-ref": {"Secret"}},
		secretFlags: append(secretKey.names(), "access-key"),
		flags: func(fs *pflag.FlagSet) {
			fs.Var(choice{&provider, clouds}, "provider", "whose store it is: "+strings.Join(clouds, ", "))
			fs.StringVar(&bucket, "bucket-name", "", "the name of the bucket")
			fs.StringVar(&endpoint, "endpoint", "", "the host, and port, of the store")
			fs.StringVar(&accessKey, "access-key", "", "the access key, to make a Secret from")
			secretKey.add(fs, "", "the secret key", ", to make a Secret from")
			fs.StringVar(&region, "region", "", "the region of the bucket")
			fs.StringVar(&secretRef, "secret-ref", "", "the Secret with the keys")
			fs.StringVar(&proxy, "proxy-secret-ref", "", "the Secret with the address and credentials of a proxy")
			fs.StringSliceVar(&ignore, "ignore-paths", nil, "leave out these paths, in the format of .gitignore")
			fs.BoolVar(&insecure, "insecure", false, "speak plain HTTP to the store")
		},
		spec: func(c *creation) map[string]any {
			spec := map[string]any{}
			c.need("bucket-name", bucket)
			c.need("endpoint", endpoint)
			c.endpoint("endpoint", endpoint)
			c.objectName("secret-ref", secretRef)
			c.excludes("secret-ref", "the keys are in the Secret", append(secretKey.names(), "access-key")...)
			if (accessKey != "") != c.asked(secretKey) {
				c.wrong(errors.New("--access-key and --secret-key go together"))
			}
			c.fetching(spec, "", proxy, ignore)
			put(spec, "bucketName", bucket)
			put(spec, "endpoint", endpoint)
			put(spec, "insecure", insecure)
			put(spec, "provider", provider)
			put(spec, "region", region)
			put(spec, "secretRef.name", secretRef)
			return spec
		},
		secret: func(_ context.Context, c *creation, spec map[string]any) (*unstructured.Unstructured, error) {
			if accessKey == "" {
				return nil, nil //nolint:nilnil // no Secret is asked for
			}
			name := "bucket-" + c.name
			put(spec, "secretRef.name", name)
			secret := c.secretObject(name, "", map[string]string{"accesskey": accessKey, "secretkey": c.secret(secretKey)})
			return secret, c.verdict()
		},
	}
}

func buildHelmRepository() builder {
	var url, username, secretRef, provider string
	var passCredentials bool
	password, files := newSecretFlag("password"), tlsFlags{ca: "ca-file", cert: "cert-file", key: "key-file"}
	return builder{
		kind: "HelmRepository",
		example: `  # A public repository
  flux create source helm podinfo --url=https://stefanprodan.github.io/podinfo --interval=10m

  # A private one, with a Secret made from the credentials
  flux create source helm podinfo --url=https://charts.example.com --username=me --password-stdin < password

  # Charts in a registry
  flux create source helm podinfo --url=oci://ghcr.io/stefanprodan/charts --secret-ref=ghcr`,
		refers:      map[string][]string{"secret-ref": {"Secret"}},
		words:       map[string][]string{"oci-provider": clouds},
		secretFlags: append(password.names(), "username", "ca-file", "cert-file", "key-file"),
		flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&url, "url", "", "the address of the repository: https, http or oci")
			fs.StringVarP(&username, "username", "u", "", "the user name, to make a Secret from")
			password.add(fs, "p", "the password", ", to make a Secret from")
			files.add(fs)
			fs.StringVar(&secretRef, "secret-ref", "", "the Secret with the credentials")
			fs.StringVar(&provider, "oci-provider", "", "whose identity opens the registry: "+strings.Join(clouds, ", "))
			fs.BoolVar(&passCredentials, "pass-credentials", false, "send the credentials to other hosts that the index names too")
		},
		spec: func(c *creation) map[string]any {
			spec := map[string]any{}
			u := c.address("url", url, "https", "http", "oci")
			c.oneOf("oci-provider", provider, clouds)
			c.objectName("secret-ref", secretRef)
			c.excludes("secret-ref", "the credentials are in the Secret", append(password.names(), "username")...)
			if (username != "") != c.asked(password) {
				c.wrong(errors.New("--username and --password go together"))
			}
			files.check(c)
			c.fetching(spec, url, "", nil)
			if u != nil && u.Scheme == "oci" {
				put(spec, "type", "oci")
				put(spec, "provider", provider)
			} else if provider != "" {
				c.wrong(errors.New("--oci-provider is for oci:// addresses"))
			}
			put(spec, "secretRef.name", secretRef)
			put(spec, "passCredentials", passCredentials)
			return spec
		},
		secret: func(_ context.Context, c *creation, spec map[string]any) (*unstructured.Unstructured, error) {
			name, data := "helm-"+c.name, files.read(c)
			if len(data) > 0 {
				put(spec, "certSecretRef.name", name)
			}
			if username != "" {
				put(spec, "secretRef.name", name)
				data["username"], data["password"] = username, c.secret(password)
			}
			if len(data) == 0 {
				return nil, nil //nolint:nilnil // no Secret is asked for
			}
			return c.secretObject(name, "", data), c.verdict()
		},
	}
}

func buildHelmChart() builder {
	var source, chart, version string
	strategy, verify := strategies[0], verifyFlags{}
	return builder{
		kind: "HelmChart",
		example: `  # The newest chart of a range out of a Helm repository
  flux create source chart podinfo --source=HelmRepository/podinfo --chart=podinfo --chart-version=6.x

  # A chart out of Git, anew with every commit
  flux create source chart podinfo --source=GitRepository/podinfo --chart=./charts/podinfo --reconcile-strategy=Revision`,
		refers: map[string][]string{"source": chartSources, "verify-secret-ref": {"Secret"}},
		words:  map[string][]string{"reconcile-strategy": strategies},
		flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&source, "source", "", "where the chart is: HelmRepository, GitRepository or Bucket, as <kind>/<name>")
			fs.StringVar(&chart, "chart", "", "the name of the chart, or its path")
			fs.StringVar(&version, "chart-version", "", "the version or range of versions, in a HelmRepository")
			fs.StringVar(&strategy, "reconcile-strategy", strategy, "what makes a new chart: "+strings.Join(strategies, ", "))
			verify.add(fs)
		},
		spec: func(c *creation) map[string]any {
			spec := map[string]any{}
			c.need("source", source)
			c.need("chart", chart)
			c.versions("chart-version", version)
			c.oneOf("reconcile-strategy", strategy, strategies)
			ref := c.refer("source", source, input.Rules{Kinds: chartSources, Local: true})
			c.fetching(spec, "", "", nil)
			if c.fetchTimeout != 0 {
				c.wrong(errors.New("--fetch-timeout is for the source of a chart"))
			}
			put(spec, "chart", chart)
			put(spec, "version", version)
			put(spec, "reconcileStrategy", strategy)
			put(spec, "sourceRef", refField(ref))
			verify.put(c, spec)
			return spec
		},
	}
}

// tlsFlags are the files of a TLS connection, by the names of their flags.
type tlsFlags struct {
	ca, cert, key             string
	caFile, certFile, keyFile string
}

func (t *tlsFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&t.caFile, t.ca, "", "a file with the certificates to trust; '-' is standard input")
	if t.cert != "" {
		fs.StringVar(&t.certFile, t.cert, "", "a file with the client's certificate; '-' is standard input")
		fs.StringVar(&t.keyFile, t.key, "", "a file with the key of the client's certificate; '-' is standard input")
	}
}

func (t *tlsFlags) check(c *creation) {
	if (t.certFile != "") != (t.keyFile != "") {
		c.wrong(errors.New("--" + t.cert + " and --" + t.key + " go together"))
	}
}

// read returns the data of a Secret with what the files hold, checked.
func (t *tlsFlags) read(c *creation) map[string]string {
	data := map[string]string{}
	if ca := c.file(t.ca, t.caFile); len(ca) > 0 || t.caFile != "" && len(c.problems) == 0 {
		c.flagged(t.ca, credential.Certificates(ca))
		data["ca.crt"] = string(ca)
	}
	if t.certFile == "" || t.keyFile == "" {
		return data
	}
	cert, key := c.file(t.cert, t.certFile), c.file(t.key, t.keyFile)
	if len(c.problems) == 0 {
		c.flagged(t.cert, credential.Pair(cert, key))
	}
	data["tls.crt"], data["tls.key"] = string(cert), string(key)
	return data
}

// secretType is the type of a Secret with the files alone: kubernetes.io/tls
// has to have a certificate and a key.
func (t *tlsFlags) secretType() string {
	if t.certFile != "" {
		return "kubernetes.io/tls"
	}
	return "Opaque"
}
