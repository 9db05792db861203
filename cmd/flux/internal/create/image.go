package create

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template/parse"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/syntax"
	"github.com/fluxkit/flux/cmd/flux/internal/create/creation"
	"github.com/fluxkit/flux/internal/lazy"
)

// orders lists the sort orders of an ImagePolicy; the last tag is selected.
var orders = []string{"asc", "desc"}

// digestPolicies lists the values of spec.digestReflectionPolicy.
var digestPolicies = []string{"Always", "IfNotPresent", "Never"}

func imageRepository() creation.Builder {
	return creation.Builder{
		Kind: "ImageRepository",
		Example: `  # Scan an image repository for tags
  flux create image repository podinfo --image=ghcr.io/stefanprodan/podinfo --interval=5m

  # Scan a private image repository
  flux create image repository app --image=registry.example.com/org/app --secret-ref=registry --cert-ref=registry-ca`,
		Flags: []creation.Flag{
			creation.Text("image", "image", "image repository without a tag, e.g. ghcr.io/org/app").Required().Checked(checkImage),
			creation.ObjectName("secret-ref", "secretRef.name", "name of the Secret with the registry credentials", "Secret"),
			creation.ObjectName("cert-ref", "certSecretRef.name", "name of the Secret with TLS certificates", "Secret"),
			creation.Duration("scan-timeout", "timeout", "timeout of a scan, e.g. 30s (default: --interval)"),
			creation.Interval(),
		},
	}
}

func checkImage(c *creation.Creation, flag, value string) {
	if value != "" {
		c.CheckFlag(flag, syntax.Image(value))
	}
}

func imagePolicy() creation.Builder {
	return creation.Builder{
		Kind: "ImagePolicy",
		Example: `  # Select the newest version
  flux create image policy podinfo --image-ref=podinfo --select-semver='>=1.0.0'

  # Select the newest build of a branch by the timestamp in its tags
  flux create image policy app --image-ref=app --select-numeric=asc --filter-regex='^main-[a-f0-9]+-(?P<ts>[0-9]+)' --filter-extract='$ts'

  # Track the digest of a mutable tag, checked every hour
  flux create image policy app --image-ref=app --select-alpha=asc --filter-regex='^latest$' --reflect-digest=Always --interval=1h`,
		Flags: []creation.Flag{
			creation.ObjectName("image-ref", "imageRepositoryRef.name", "name of the ImageRepository to select tags from", "ImageRepository").Required(),
			creation.Text("select-semver", "policy.semver.range", "semver range from which the newest version is selected").Replaces("policy").Checked((*creation.Creation).Versions),
			creation.OneOf("select-alpha", "policy.alphabetical.order", "alphabetical order: asc selects the last tag, desc the first", orders...).Replaces("policy"),
			creation.OneOf("select-numeric", "policy.numerical.order", "numerical order: asc selects the highest tag, desc the lowest", orders...).Replaces("policy"),
			creation.Text("filter-regex", "", "regular expression that tags must match").Replaces("filterTags"),
			creation.Text("filter-extract", "", "sort key of a tag built from the capture groups of --filter-regex, e.g. '$ts'").Replaces("filterTags"),
			creation.OneOf("reflect-digest", "digestReflectionPolicy", "policy for storing the digest of the selected tag: Always, IfNotPresent, Never (default: Never)", digestPolicies...).
				Replaces("digestReflectionPolicy", "interval"),
			creation.Duration("interval", "interval", "interval between digest lookups, e.g. 1h (only with --reflect-digest=Always)").Replaces("digestReflectionPolicy", "interval"),
		},
		Spec: func(c *creation.Creation, spec map[string]any) {
			if c.Text("select-semver")+c.Text("select-alpha")+c.Text("select-numeric") == "" && !c.Partial {
				c.Check(errors.New("one of --select-semver, --select-alpha and --select-numeric is required"))
			}
			c.Exclusive("select-semver", "select-alpha", "select-numeric")
			pattern, extract := c.Text("filter-regex"), c.Text("filter-extract")
			checkFilter(c, pattern, extract)
			if (c.Duration("interval") > 0) != (c.Text("reflect-digest") == "Always") {
				c.Check(errors.New("--interval and --reflect-digest=Always must be set together"))
			}
			if pattern != "" {
				creation.Put(spec, "filterTags", map[string]any{"pattern": pattern, "extract": extract})
			}
		},
	}
}

// groupReference matches the references to capture groups in a replacement: $name, ${name}.
var groupReference = lazy.Regexp(`\$(?:\{([^}]*)\}|(\w+))`)

// checkFilter validates the pattern and checks that extract refers to its capture groups.
func checkFilter(c *creation.Creation, pattern, extract string) {
	c.Needs("filter-regex", "filter-extract")
	re, err := regexp.Compile(pattern)
	if err != nil {
		c.CheckFlag("filter-regex", fmt.Errorf("invalid regular expression %q: %w", pattern, err))
		return
	}
	for _, m := range groupReference().FindAllStringSubmatch(strings.ReplaceAll(extract, "$$", ""), -1) {
		group := m[1] + m[2]
		number := 0
		if _, err := fmt.Sscanf(group, "%d", &number); err == nil && number <= re.NumSubexp() {
			continue
		}
		if re.SubexpIndex(group) < 0 && pattern != "" {
			c.CheckFlag("filter-extract", fmt.Errorf("%q refers to capture group %q, which --filter-regex does not define", extract, group))
		}
	}
}

func imageUpdate() creation.Builder {
	return creation.Builder{
		Kind: "ImageUpdateAutomation",
		Example: `  # Commit new tags to the branch that the cluster follows
  flux create image update apps --git-repo-ref=flux-system --git-repo-path=./clusters/production --checkout-branch=main \
    --author-name=flux --author-email=flux@example.com --commit-template='{{range .Changed.Changes}}{{.OldValue}} -> {{.NewValue}}{{end}}'

  # Push signed commits to another branch
  flux create image update apps --git-repo-ref=flux-system --checkout-branch=main --push-branch=image-updates \
    --author-name=flux --author-email=flux@example.com --signing-key-secret=flux-gpg`,
		Flags: []creation.Flag{
			creation.ObjectName("git-repo-ref", "sourceRef.name", "name of the GitRepository to update", "GitRepository").Required().Replaces("sourceRef.name"),
			creation.ObjectName("git-repo-namespace", "sourceRef.namespace", "namespace of the GitRepository (default: the namespace of the ImageUpdateAutomation)"),
			creation.Text("git-repo-path", "", "path to the directory with the manifests to update (default: the repository root)").Replaces("update"),
			creation.Text("checkout-branch", "git.checkout.ref.branch", "branch to check out").Required().Replaces("git.checkout.ref"),
			creation.Text("push-branch", "git.push.branch", "branch to push to (default: --checkout-branch)"),
			creation.Text("commit-template", "git.commit.messageTemplate", "Go template of the commit message").Checked(checkTemplate),
			creation.Text("author-name", "git.commit.author.name", "name of the commit author").Required(),
			creation.Text("author-email", "git.commit.author.email", "e-mail address of the commit author").Required(),
			creation.ObjectName("signing-key-secret", "git.commit.signingKey.secretRef.name", "name of the Secret with the commit signing key", "Secret").Replaces("git.commit.signingKey"),
			creation.OneOf("signing-key-type", "git.commit.signingKey.type", "type of the signing key: gpg, ssh", "gpg", "ssh").Replaces("git.commit.signingKey"),
			creation.Duration("policy-change-delay", "policyChangeDelay", "time to wait for further ImagePolicy changes before a run, e.g. 5m (requires Flux 2.10)"),
			creation.Interval(),
		},
		Spec: func(c *creation.Creation, spec map[string]any) {
			c.Needs("signing-key-secret", "signing-key-type")
			if delay := c.Duration("policy-change-delay"); delay > 0 {
				c.RequireFlux("policy-change-delay", delay.String(), "2.10")
			}
			creation.Put(spec, "sourceRef.kind", "GitRepository")
			if path := c.Text("git-repo-path"); path != "" {
				_, err := syntax.Path(path)
				c.CheckFlag("git-repo-path", err)
				creation.Put(spec, "update", map[string]any{"path": path, "strategy": "Setters"})
			}
		},
	}
}

// checkTemplate checks the syntax of a Go template. Unknown functions are accepted, because
// image-automation-controller defines its own.
func checkTemplate(c *creation.Creation, flag, text string) {
	tree := parse.New("commit-template")
	tree.Mode = parse.SkipFuncCheck
	_, err := tree.Parse(text, "", "", map[string]*parse.Tree{})
	c.CheckFlag(flag, err)
}
