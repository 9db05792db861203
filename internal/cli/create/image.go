package create

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"
	"time"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/cli/create/creation"
	"github.com/fluxkit/flux/internal/input"
)

// orders are how tags are sorted before the last is chosen.
var orders = []string{"asc", "desc"}

// reflections are when the digest of a chosen tag is noted.
var reflections = []string{"Always", "IfNotPresent", "Never"}

func buildImageRepository() creation.Builder {
	var image, secretRef, certRef string
	var timeout time.Duration
	return creation.Builder{
		Kind: "ImageRepository",
		Example: `  # Look for the tags of an image
  flux create image repository podinfo --image=ghcr.io/stefanprodan/podinfo --interval=5m

  # Of a private one
  flux create image repository app --image=registry.example.com/org/app --secret-ref=registry --cert-ref=registry-ca`,
		Refers: map[string][]string{"secret-ref": {"Secret"}, "cert-ref": {"Secret"}},
		Flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&image, "image", "", "the image, without a tag")
			fs.StringVar(&secretRef, "secret-ref", "", "the Secret with the registry's credentials")
			fs.StringVar(&certRef, "cert-ref", "", "the Secret with TLS certificates")
			fs.DurationVar(&timeout, "scan-timeout", 0, "how long a look at the registry may take")
		},
		Spec: func(c *creation.Creation) map[string]any {
			spec := map[string]any{}
			c.Require("image", image)
			if image != "" {
				c.CheckFlag("image", input.Image(image))
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
		Example: `  # The newest version
  flux create image policy podinfo --image-ref=podinfo --select-semver='>=1.0.0'

  # The newest build of a branch, by the time in the tag
  flux create image policy app --image-ref=app --select-numeric=asc --filter-regex='^main-[a-f0-9]+-(?P<ts>[0-9]+)' --filter-extract='$ts'

  # What a tag points to, looked up every hour
  flux create image policy app --image-ref=app --select-alpha=asc --filter-regex='^latest$' --reflect-digest=Always --interval=1h`,
		Refers: map[string][]string{"image-ref": {"ImageRepository"}},
		Words:  map[string][]string{"select-alpha": orders, "select-numeric": orders, "reflect-digest": reflections},
		Flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&repository, "image-ref", "", "the ImageRepository whose tags to choose from")
			fs.StringVar(&semver, "select-semver", "", "choose the newest version of this range")
			fs.StringVar(&alpha, "select-alpha", "", "choose by the alphabet: asc takes the last, desc the first")
			fs.StringVar(&numeric, "select-numeric", "", "choose by number: asc takes the highest, desc the lowest")
			fs.StringVar(&pattern, "filter-regex", "", "a regular expression for the tags to choose from")
			fs.StringVar(&extract, "filter-extract", "", "the part of a tag to choose by, with the groups of --filter-regex, such as '$ts'")
			fs.StringVar(&reflect, "reflect-digest", "", "whether to note the digest of the chosen tag: Always, IfNotPresent, Never")
			fs.DurationVar(&interval, "interval", 0, "how often to look up the digest with --reflect-digest=Always")
		},
		Spec: func(c *creation.Creation) map[string]any {
			spec := map[string]any{}
			c.Require("image-ref", repository)
			if semver+alpha+numeric == "" {
				c.Check(errors.New("how to choose is required: --select-semver, --select-alpha or --select-numeric"))
			}
			c.Exclusive("a policy chooses one way", "select-semver", "select-alpha", "select-numeric")
			c.ObjectName("image-ref", repository)
			c.Versions("select-semver", semver)
			c.OneOf("select-alpha", alpha, orders)
			c.OneOf("select-numeric", numeric, orders)
			c.OneOf("reflect-digest", reflect, reflections)
			extraction(c, pattern, extract)
			c.Positive(map[string]time.Duration{"interval": interval})
			if (interval > 0) != (reflect == "Always") {
				c.Check(errors.New("--interval and --reflect-digest=Always go together"))
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

// extracted finds the groups that a replacement names: $name, ${name}.
var extracted = regexp.MustCompile(`\$(?:\{([^}]*)\}|(\w+))`)

// extraction checks that what is extracted is a group of the pattern.
func extraction(c *creation.Creation, pattern, extract string) {
	c.Needs("filter-regex", "filter-extract")
	re, err := regexp.Compile(pattern)
	if err != nil {
		c.CheckFlag("filter-regex", fmt.Errorf("%q is no regular expression: %w", pattern, err))
		return
	}
	for _, m := range extracted.FindAllStringSubmatch(strings.ReplaceAll(extract, "$$", ""), -1) {
		group := m[1] + m[2]
		number := 0
		if _, err := fmt.Sscanf(group, "%d", &number); err == nil && number <= re.NumSubexp() {
			continue
		}
		if re.SubexpIndex(group) < 0 && pattern != "" {
			c.CheckFlag("filter-extract", fmt.Errorf("%q names the group %q, which --filter-regex does not have", extract, group))
		}
	}
}

func buildImageUpdate() creation.Builder {
	var repository, namespace, checkout, push, template, authorName, authorEmail, keySecret, keyType string
	var path string
	return creation.Builder{
		Kind: "ImageUpdateAutomation",
		Example: `  # Commit new tags to the branch that the cluster follows
  flux create image update apps --git-repo-ref=flux-system --git-repo-path=./clusters/production --checkout-branch=main \
    --author-name=flux --author-email=flux@example.com --commit-template='{{range .Changed.Changes}}{{.OldValue}} -> {{.NewValue}}{{end}}'

  # To a branch of its own, signed
  flux create image update apps --git-repo-ref=flux-system --checkout-branch=main --push-branch=image-updates \
    --author-name=flux --author-email=flux@example.com --signing-key-secret=flux-gpg`,
		Refers: map[string][]string{"git-repo-ref": {"GitRepository"}, "signing-key-secret": {"Secret"}},
		Words:  map[string][]string{"signing-key-type": {"gpg", "ssh"}},
		Flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&repository, "git-repo-ref", "", "the GitRepository to commit to")
			fs.StringVar(&namespace, "git-repo-namespace", "", "the namespace of the GitRepository")
			fs.StringVar(&path, "git-repo-path", "", "the folder with the manifests; all unless given")
			fs.StringVar(&checkout, "checkout-branch", "", "the branch to change")
			fs.StringVar(&push, "push-branch", "", "the branch to push to; the one that is changed unless given")
			fs.StringVar(&template, "commit-template", "", "the Go template of commit messages")
			fs.StringVar(&authorName, "author-name", "", "the author of commits")
			fs.StringVar(&authorEmail, "author-email", "", "the author's address")
			fs.StringVar(&keySecret, "signing-key-secret", "", "the Secret with the key to sign commits with")
			fs.StringVar(&keyType, "signing-key-type", "", "the kind of that key: gpg, ssh")
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
			messageTemplate(c, template)
			creation.Put(spec, "interval", c.Interval)
			creation.Put(spec, "sourceRef", creation.RefField(input.Reference{Kind: "GitRepository", Name: repository, Namespace: namespace}))
			creation.Put(spec, "git.checkout.ref.branch", checkout)
			creation.Put(spec, "git.commit.author.email", authorEmail)
			creation.Put(spec, "git.commit.author.name", authorName)
			creation.Put(spec, "git.commit.messageTemplate", template)
			creation.Put(spec, "git.commit.signingKey.secretRef.name", keySecret)
			creation.Put(spec, "git.commit.signingKey.type", keyType)
			creation.Put(spec, "git.push.branch", push)
			if path != "" {
				_, err := input.Path(path)
				c.CheckFlag("git-repo-path", err)
				creation.Put(spec, "update", map[string]any{"path": path, "strategy": "Setters"})
			}
			return spec
		},
	}
}

// undefined finds what a parser of templates says of functions that it was not told of.
var undefined = regexp.MustCompile(`function "\w+" not defined`)

// messageTemplate refuses what is no Go template. Which functions there are,
// the controller knows.
func messageTemplate(c *creation.Creation, text string) {
	if _, err := template.New("commit-template").Parse(text); err != nil && !undefined.MatchString(err.Error()) {
		c.CheckFlag("commit-template", err)
	}
}
