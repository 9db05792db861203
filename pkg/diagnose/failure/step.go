package failure

import (
	"regexp"
	"strings"
	"sync"
)

// Step is a failed operation of a controller.
type Step string

// The operations in the prefixes of the controllers.
const (
	Apply       Step = "apply"       // an object, by server-side apply
	Delete      Step = "delete"      // an object
	Health      Step = "health"      // health checks
	Build       Step = "build"       // a kustomize build
	Decrypt     Step = "decrypt"     // SOPS
	Substitute  Step = "substitute"  // post-build substitution
	Path        Step = "path"        // looking for the path of a Kustomization
	Credentials Step = "credentials" // reading the Secret with credentials
	Clone       Step = "clone"       // fetching a Git repository
	Checkout    Step = "checkout"    // cloning the Git repository to commit to
	Configure   Step = "configure"   // configuring access to the Git repository to commit to
	Push        Step = "push"        // commits
	Verify      Step = "verify"      // a signature
	Pull        Step = "pull"        // an artifact or image
	Scan        Step = "scan"        // the tags of an image
	Index       Step = "index"       // the index of a Helm repository
	Bucket      Step = "bucket"      // the objects of a bucket
	Chart       Step = "chart"       // building or loading a chart
	Install     Step = "install"     // a Helm release
	Upgrade     Step = "upgrade"
	Rollback    Step = "rollback"
	Uninstall   Step = "uninstall"
	Test        Step = "test"
	Render      Step = "render" // a chart
	Hook        Step = "hook"   // of a Helm release
	Call        Step = "call"   // an admission webhook
	Impersonate Step = "impersonate"
	Unset       Step = "unset"       // an object without a namespace
	Proxy       Step = "proxy"       // connecting to a proxy
	Dependency  Step = "dependency"  // a dependency of a chart
	PostRender  Step = "post-render" // a chart
	Merge       Step = "merge"       // the values of a release
	KubeConfig  Step = "kubeconfig"  // reading the kubeconfig of another cluster
	Walk        Step = "walk"        // looking for the files to update
	SigningKey  Step = "signing-key" // reading the key that signs commits
	Sparse      Step = "sparse"      // a sparse checkout
	Fill        Step = "fill"        // the template of a ResourceSet
	Download    Step = "download"    // the artifact of a source
	Copy        Step = "copy"        // the data of a Secret or ConfigMap by a ResourceSet
)

// prefix is a text that a controller or one of its libraries adds to an error.
type prefix struct {
	step    Step
	pattern string
}

// Patterns for an object as controllers print it: kind, optional namespace, name.
const (
	kindPart   = `[A-Z][A-Za-z0-9]*`
	namePart   = `[A-Za-z0-9][A-Za-z0-9.:_-]*`
	objectPart = `(?P<kind>` + kindPart + `)/(?:(?P<namespace>[a-z0-9-]+)/)?(?P<name>` + namePart + `)`
	keyPart    = `'(?P<secretns>[a-z0-9-]+)/(?P<secret>[a-z0-9.-]+)'`
)

// prefixes lists the prefixes that kustomize-controller, helm-controller, source-controller, the image controllers,
// flux-operator, and the libraries ssa, git, kustomize, chartutil and Helm add to errors.
var prefixes = []prefix{
	{Apply, objectPart + ` dry-run failed(?: \(\w+\))?: `},
	{Apply, objectPart + ` apply failed: `},
	{Apply, objectPart + ` not found: `},
	{Walk, `walking path for files: `},
	{SigningKey, `could not read signing key from secret '(?P<secret>[a-z0-9.-]+)': `},
	{KubeConfig, `invalid KubeConfig in secret ` + keyPart + `: `},
	{Unset, objectPart + ` namespace not specified: `},
	{Delete, objectPart + ` immutable field detected, failed to delete object: `},
	{Delete, objectPart + ` delete failed: `},
	{Health, `health check failed after \S+: `},
	{Build, `kustomize build failed: `},
	{Decrypt, `error decrypting sources: `},
	{Decrypt, `decryption failed for '[^'\n]*': `},
	{Decrypt, `cannot get \S+ (?:SOPS age )?decryption Secret ` + keyPart + `: `},
	{Decrypt, `failed to import '[^'\n]*' data from \S+ (?:SOPS age )?decryption Secret ` + keyPart + `: `},
	{Decrypt, `failed to decrypt and format '[^'\n]*'[^:\n]*: `},
	{Substitute, `post build failed for '[^'\n]*': `},
	{Substitute, `substitute from '(?P<kind>ConfigMap|Secret)/(?P<name>[a-z0-9.-]+)' error: `},
	{Substitute, `envsubst error: `},
	{Substitute, `variable substitution failed: `},
	{Path, `kustomization path not found: `},
	{Download, `failed to download (?:archive|chart from '[^'\n]*'): (?:GET \S+ giving up after \d+ attempt\(s\): )?`},
	{Credentials, `failed to get secret ` + keyPart + `: `},
	{Credentials, `failed to get auth secret ` + keyPart + `: `},
	{Credentials, `failed to get (?:TLS )?authentication secret ` + keyPart + `: `},
	{Credentials, `(?:unable to read|could not get) KubeConfig secret ` + keyPart + `(?: error)?: `},
	{Credentials, `failed to configure authentication options: `},
	{Credentials, `failed to configure proxy options: `},
	{Credentials, `failed to get credential(?: from \S+)?: `},
	{Clone, `failed to checkout and determine revision: `},
	{Clone, `unable to clone '[^'\n]*': `},
	{Clone, `unable to list remote for '[^'\n]*': `},
	{Checkout, `failed to checkout source: `},
	{Configure, `failed configuring source manager: `},
	{Push, `failed to push to remote: `},
	{Verify, `public keys secret error: `},
	{Verify, `failed to verify the signature using provider '[^'\n]*': `},
	{Verify, `signature verification of (?:tag|commit) '[^'\n]*' failed: `},
	{Pull, `failed to determine the artifact tag for '[^'\n]*': `},
	{Pull, `failed to determine artifact digest: `},
	{Pull, `failed to pull artifact from '[^'\n]*': `},
	{Pull, `rpc error: code = \w+ desc = `},
	{Pull, `failed to pull and unpack image "[^"\n]*": `},
	{Pull, `failed to resolve (?:reference|image) "[^"\n]*": `},
	{Scan, `scan failed: `},
	{Index, `failed to fetch Helm repository index: `},
	{Index, `failed to load Helm repository from index YAML: `},
	{Bucket, `failed to confirm existence of '[^'\n]*' bucket: `},
	{Bucket, `indexation of objects from bucket '[^'\n]*' failed: `},
	{Bucket, `fetch from bucket '[^'\n]*' failed: `},
	{Chart, `(?:invalid chart reference|chart pull error|chart metadata patch error|values files merge error|dependency build error|chart package error): `},
	{Dependency, `failed to add (?:remote|local) dependency '(?P<key>[^'\n]*)': `},
	{Dependency, `failed to (?:get|download) chart '[^'\n]*' version '(?P<version>[^'\n]*)' from '(?P<address>[^'\n]*)': `},
	{Proxy, `proxyconnect tcp: `},
	{Sparse, `failed to sparse checkout directories : `},
	{PostRender, `error while running post render on files: `},
	{Chart, `Could not load chart: `},
	{Install, `Helm install failed for release \S+ with chart \S+: `},
	{Upgrade, `Helm upgrade failed for release \S+ with chart \S+: `},
	{Rollback, `Helm rollback to previous release \S+ with chart \S+ failed: `},
	{Uninstall, `Helm uninstall (?:remediation )?(?:failed )?for release \S+ with chart \S+(?: failed)?: `},
	{Test, `Helm test failed for release \S+ with chart \S+: `},
	{Fill, `build failed: (?:step "[^"\n]*": )?failed to build resources(?:\[\d+\])?: `},
	{Copy, `failed to copy data from ` + objectPart + `: `},
	{Pull, `pulling artifact \S+ failed: `},
	{Build, `build failed: `},
	{Clone, `failed to call (?:Git|ExternalService) provider: `},
	{Apply, `unable to build kubernetes objects from (?:new |current )?release manifest: `},
	{Apply, `failed to create resource: `},
	{Apply, `cannot patch "(?P<name>[^"\n]*)" with kind (?P<kind>` + kindPart + `): `},
	{Apply, `server-side apply failed for object (?P<namespace>[^\s/]*)/(?P<name>\S+) \S*, Kind=(?P<kind>` + kindPart + `): `},
	{Apply, `conflict occurred while applying object (?P<namespace>[^\s/]*)/(?P<name>\S+) \S*, Kind=(?P<kind>` + kindPart + `): `},
	{Hook, `(?:failed )?(?:pre|post)-(?:install|upgrade|rollback|delete)(?: hooks failed)?: `},
	{Hook, `warning: Hook \S+ \S+ failed: `},
	{Call, `Internal error occurred: failed calling webhook "(?P<by>[^"\n]+)": `},
	{Call, `failed calling webhook "(?P<by>[^"\n]+)": `},
	{Call, `failed to call webhook: `},
}

// expression is the compiled pattern of a prefix or an error.
type expression[T any] struct {
	T T
	// start is the literal prefix of the pattern, which rules out most patterns without the regular expression.
	start string
	re    *regexp.Regexp
}

func newExpression[T any](t T, pattern string) expression[T] {
	start, _ := regexp.MustCompile(pattern).LiteralPrefix()
	return expression[T]{t, start, regexp.MustCompile(`^(?:` + pattern + `)`)}
}

// match returns the indexes of the pattern and its groups at the start of s, or nil.
func (e expression[T]) match(s string) []int {
	if !strings.HasPrefix(s, e.start) {
		return nil
	}
	return e.re.FindStringSubmatchIndex(s)
}

var stepExpressions = sync.OnceValue(func() []expression[Step] {
	var all []expression[Step]
	for _, p := range prefixes {
		all = append(all, newExpression(p.step, p.pattern))
	}
	return all
})

// step parses a prefix and returns its length, or 0 if there is none.
func (f *Failure) step(s string) int {
	for _, e := range stepExpressions() {
		m := e.match(s)
		if m == nil {
			continue
		}
		f.Steps = append(f.Steps, e.T)
		f.Text = s[m[1]:]
		named := f.named(e.re, s, m)
		switch {
		case named.Kind != "":
			f.Object = named
		case named.Name != "":
			f.Named = named
		}
		return m[1]
	}
	return 0
}

// named sets the fields from the groups of a match and returns the object in it.
func (f *Failure) named(re *regexp.Regexp, s string, m []int) (o Object) {
	for i, name := range re.SubexpNames() {
		if name == "" || m[2*i] < 0 {
			continue
		}
		text := s[m[2*i]:m[2*i+1]]
		switch name {
		case "kind":
			o.Kind = text
		case "group":
			o.Group = text
		case "namespace":
			o.Namespace = text
		case "name":
			o.Name = text
		case "secretns":
			f.Named.Namespace, f.Named.Kind = text, "Secret"
		case "secret":
			f.Named.Name = text
		case "by":
			f.By = text
		case "user":
			f.User = text
		case "verb":
			f.Verb = text
		case "resource":
			f.Resource = text
		case "scope":
			f.Scope = text
		case "version":
			f.Version = text
		case "key":
			f.Name = text
		case "address":
			if !f.In(Dependency) || f.Address == "" { // the address of the repository takes precedence
				f.Address = text
			}
		case "code":
			f.Code = text
		case "detail":
			f.Detail = strings.TrimSpace(text)
		}
	}
	return o
}
