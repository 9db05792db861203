package create

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"
	"time"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/syntax"
	"github.com/fluxkit/flux/cmd/flux/internal/create/creation"
	"github.com/fluxkit/flux/pkg/controllers"
)

// orders lists the sort orders of an ImagePolicy; the last tag is selected.
var orders = []string{"asc", "desc"}

// digestPolicies lists the values of spec.digestReflectionPolicy.
var digestPolicies = []string{"Always", "IfNotPresent", "Never"}

func buildImageRepository() creation.Builder {
	var image, secretRef, certRef string
	var timeout time.Duration
	return creation.Builder{
		Kind: "ImageRepository",
		Example: `  # Scan an image repository for tags
  flux create image repository podinfo --image=ghcr.io/stefanprodan/podinfo --interval=5m

  # Scan a private image repository
  flux create image repository app --image=registry.example.com/org/app --secret-ref=registry --cert-ref=registry-ca`,
		Refers: map[string][]string{"secret-ref": {"Secret"}, "cert-ref": {"Secret"}},
		Fields: map[string][]string{"image": {"image"}, "secret-ref": {"secretRef"}, "cert-ref": {"certSecretRef"}, "scan-timeout": {"timeout"}},
		Flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&image, "image", "", "image repository without a tag, e.g. ghcr.io/org/app")
			fs.StringVar(&secretRef, "secret-ref", "", "name of the Secret with the registry credentials")
			fs.StringVar(&certRef, "cert-ref", "", "name of the Secret with TLS certificates")
			fs.DurationVar(&timeout, "scan-timeout", 0, "timeout of a scan, e.g. 30s (default --interval)")
		},
		Spec: func(c *creation.Creation) map[string]any {
			spec := map[string]any{}
			c.Require("image", image)
			if image != "" {
				c.CheckFlag("image", syntax.Image(image))
			}
			c.ObjectName("secret-ref", secretRef)
			c.ObjectName("cert-ref", certRef)
			c.Positive(map[string]time.Duration{"scan-timeout": timeout})
			creation.Put(spec, "image", image)
			creation.Put(spec, "interval", c.Interval)
			creation.Put(spec, "timeout", timeout)
			creation.Put(spec, "secretRef.name", secretRef)
			creation.Put(spec, "certSecretRef.name", certRef)
			return spec
		},
	}
}

func buildImagePolicy() creation.Builder {
	var repository, semver, alpha, numeric, pattern, extract, reflect string
	var interval time.Duration
	return creation.Builder{
		Kind: "ImagePolicy",
		Example: `  # Select the newest version
  flux create image policy podinfo --image-ref=podinfo --select-semver='>=1.0.0'

  # Select the newest build of a branch by the timestamp in its tags
  flux create image policy app --image-ref=app --select-numeric=asc --filter-regex='^main-[a-f0-9]+-(?P<ts>[0-9]+)' --filter-extract='$ts'

  # Track the digest of a mutable tag, checked every hour
  flux create image policy app --image-ref=app --select-alpha=asc --filter-regex='^latest$' --reflect-digest=Always --interval=1h`,
		Refers: map[string][]string{"image-ref": {"ImageRepository"}},
		Fields: map[string][]string{
			"image-ref": {"imageRepositoryRef"}, "select-semver": {"policy"}, "select-alpha": {"policy"}, "select-numeric": {"policy"},
			"filter-regex": {"filterTags"}, "filter-extract": {"filterTags"},
			"reflect-digest": {"digestReflectionPolicy", "interval"}, "interval": {"digestReflectionPolicy", "interval"},
		},
		Words: map[string][]string{"select-alpha": orders, "select-numeric": orders, "reflect-digest": digestPolicies},
		Flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&repository, "image-ref", "", "name of the ImageRepository to select tags from")
			fs.StringVar(&semver, "select-semver", "", "semver range to select the newest version of")
			fs.StringVar(&alpha, "select-alpha", "", "alphabetical order: asc selects the last tag, desc the first")
			fs.StringVar(&numeric, "select-numeric", "", "numerical order: asc selects the highest tag, desc the lowest")
			fs.StringVar(&pattern, "filter-regex", "", "regular expression that tags must match")
			fs.StringVar(&extract, "filter-extract", "", "sort key of a tag built from the capture groups of --filter-regex, e.g. '$ts'")
			fs.StringVar(&reflect, "reflect-digest", "", "policy for storing the digest of the selected tag: Always, IfNotPresent, Never (default Never)")
			fs.DurationVar(&interval, "interval", 0, "interval between digest lookups, e.g. 1h (only with --reflect-digest=Always)")
		},
		Spec: func(c *creation.Creation) map[string]any {
			spec := map[string]any{}
			c.Require("image-ref", repository)
			if semver+alpha+numeric == "" && !c.Partial {
				c.Check(errors.New("one of --select-semver, --select-alpha and --select-numeric is required"))
			}
			c.Exclusive("select-semver", "select-alpha", "select-numeric")
			c.ObjectName("image-ref", repository)
			c.Versions("select-semver", semver)
			c.OneOf("select-alpha", alpha, orders)
			c.OneOf("select-numeric", numeric, orders)
			c.OneOf("reflect-digest", reflect, digestPolicies)
			checkFilter(c, pattern, extract)
			c.Positive(map[string]time.Duration{"interval": interval})
			if (interval > 0) != (reflect == "Always") {
				c.Check(errors.New("--interval and --reflect-digest=Always must be set together"))
			}
			creation.Put(spec, "imageRepositoryRef.name", repository)
			creation.Put(spec, "policy.semver.range", semver)
			creation.Put(spec, "policy.alphabetical.order", alpha)
			creation.Put(spec, "policy.numerical.order", numeric)
			if pattern != "" {
				creation.Put(spec, "filterTags", map[string]any{"pattern": pattern, "extract": extract})
			}
			creation.Put(spec, "digestReflectionPolicy", reflect)
			creation.Put(spec, "interval", interval)
			return spec
		},
	}
}

// groupReference matches the references to capture groups in a replacement: $name, ${name}.
var groupReference = regexp.MustCompile(`\$(?:\{([^}]*)\}|(\w+))`)

// checkFilter validates the pattern and checks that extract refers to its capture groups.
func checkFilter(c *creation.Creation, pattern, extract string) {
	c.Needs("filter-regex", "filter-extract")
	re, err := regexp.Compile(pattern)
	if err != nil {
		c.CheckFlag("filter-regex", fmt.Errorf("invalid regular expression %q: %w", pattern, err))
		return
	}
	for _, m := range groupReference.FindAllStringSubmatch(strings.ReplaceAll(extract, "$$", ""), -1) {
		group := m[1] + m[2]
		number := 0
		if _, err := fmt.Sscanf(group, "%d", &number); err == nil && number <= re.NumSubexp() {
			continue
		}
		if re.SubexpIndex(group) < 0 && pattern != "" {
			c.CheckFlag("filter-extract", fmt.Errorf("%q refers to capture group %q, which --filter-regex does not have", extract, group))
		}
	}
}

func buildImageUpdate() creation.Builder {
	var repository, namespace, checkout, push, template, authorName, authorEmail, keySecret, keyType string
	var path string
	var delay time.Duration
	return creation.Builder{
		Kind: "ImageUpdateAutomation",
		Example: `  # Commit new tags to the branch that the cluster follows
  flux create image update apps --git-repo-ref=flux-system --git-repo-path=./clusters/production --checkout-branch=main \
    --author-name=flux --author-email=flux@example.com --commit-template='{{range .Changed.Changes}}{{.OldValue}} -> {{.NewValue}}{{end}}'

  # Push signed commits to another branch
  flux create image update apps --git-repo-ref=flux-system --checkout-branch=main --push-branch=image-updates \
    --author-name=flux --author-email=flux@example.com --signing-key-secret=flux-gpg`,
		Refers: map[string][]string{"git-repo-ref": {"GitRepository"}, "signing-key-secret": {"Secret"}},
		Fields: map[string][]string{
			"git-repo-ref": {"sourceRef.name"}, "git-repo-namespace": {"sourceRef.namespace"}, "git-repo-path": {"update"},
			"checkout-branch": {"git.checkout.ref"}, "push-branch": {"git.push.branch"}, "commit-template": {"git.commit.messageTemplate"},
			"author-name": {"git.commit.author.name"}, "author-email": {"git.commit.author.email"},
			"signing-key-secret": {"git.commit.signingKey"}, "signing-key-type": {"git.commit.signingKey"}, "policy-change-delay": {"policyChangeDelay"},
		},
		Words: map[string][]string{"signing-key-type": {"gpg", "ssh"}},
		Flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&repository, "git-repo-ref", "", "name of the GitRepository to update")
			fs.StringVar(&namespace, "git-repo-namespace", "", "namespace of the GitRepository (default the namespace of the ImageUpdateAutomation)")
			fs.StringVar(&path, "git-repo-path", "", "path to the directory with the manifests to update (default the repository root)")
			fs.StringVar(&checkout, "checkout-branch", "", "branch to check out")
			fs.StringVar(&push, "push-branch", "", "branch to push to (default --checkout-branch)")
			fs.StringVar(&template, "commit-template", "", "Go template of the commit message")
			fs.StringVar(&authorName, "author-name", "", "name of the commit author")
			fs.StringVar(&authorEmail, "author-email", "", "e-mail address of the commit author")
			fs.StringVar(&keySecret, "signing-key-secret", "", "name of the Secret with the key to sign commits with")
			fs.StringVar(&keyType, "signing-key-type", "", "type of the signing key: gpg, ssh")
			fs.DurationVar(&delay, "policy-change-delay", 0, "time to wait for further ImagePolicy changes before a run, e.g. 5m (requires Flux 2.10)")
		},
		Spec: func(c *creation.Creation) map[string]any {
			spec := map[string]any{}
			c.Require("git-repo-ref", repository)
			c.Require("checkout-branch", checkout)
			c.Require("author-name", authorName)
			c.Require("author-email", authorEmail)
			c.ObjectName("git-repo-ref", repository)
			c.ObjectName("git-repo-namespace", namespace)
			c.ObjectName("signing-key-secret", keySecret)
			c.OneOf("signing-key-type", keyType, []string{"gpg", "ssh"})
			c.Needs("signing-key-secret", "signing-key-type")
			checkTemplate(c, template)
			c.Positive(map[string]time.Duration{"policy-change-delay": delay})
			if delay > 0 {
				c.RequireFlux("policy-change-delay", delay.String(), "2.10")
			}
			creation.Put(spec, "policyChangeDelay", delay)
			creation.Put(spec, "interval", c.Interval)
			creation.Put(spec, "sourceRef", creation.RefField(controllers.ID{Kind: "GitRepository", Name: repository, Namespace: namespace}))
			creation.Put(spec, "git.checkout.ref.branch", checkout)
			creation.Put(spec, "git.commit.author.email", authorEmail)
			creation.Put(spec, "git.commit.author.name", authorName)
			creation.Put(spec, "git.commit.messageTemplate", template)
			creation.Put(spec, "git.commit.signingKey.secretRef.name", keySecret)
			creation.Put(spec, "git.commit.signingKey.type", keyType)
			creation.Put(spec, "git.push.branch", push)
			if path != "" {
				_, err := syntax.Path(path)
				c.CheckFlag("git-repo-path", err)
				creation.Put(spec, "update", map[string]any{"path": path, "strategy": "Setters"})
			}
			return spec
		},
	}
}

// unknownFunction matches the parse error for a function that text/template does not know.
var unknownFunction = regexp.MustCompile(`function "\w+" not defined`)

// checkTemplate checks the syntax of a Go template. It accepts unknown functions,
// because image-automation-controller defines its own.
func checkTemplate(c *creation.Creation, text string) {
	if _, err := template.New("commit-template").Parse(text); err != nil && !unknownFunction.MatchString(err.Error()) {
		c.CheckFlag("commit-template", err)
	}
}
