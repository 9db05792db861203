package source

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/create/creation"
	"github.com/fluxkit/flux/cmd/flux/internal/create/credentials"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/secrets/sshkey"
)

// gitRepositoryFlags holds the flags of create source git.
type gitRepositoryFlags struct {
	address, branch, tag, semver, commit, refName, secretRef, provider, proxy string
	ignore, sparse                                                            []string
	submodules, silent                                                        bool
	auth                                                                      *credentials.Git
	// url is the parsed address.
	url *url.URL
}

// GitRepository returns the builder of GitRepositories.
func GitRepository() creation.Builder {
	o := &gitRepositoryFlags{auth: credentials.NewGit("ca-file")}
	return creation.Builder{
		Kind: "GitRepository",
		Example: `  # Track a branch of a public repository
  flux create source git podinfo --url=https://github.com/stefanprodan/podinfo --branch=master

  # Track the newest tag of a semver range
  flux create source git podinfo --url=https://github.com/stefanprodan/podinfo --tag-semver='>=6.0.0 <7.0.0'

  # Use a private repository over SSH: generate a deploy key, print it and ask for confirmation
  flux create source git podinfo --url=ssh://git@github.com/stefanprodan/podinfo --branch=master

  # Use a private repository over HTTPS: create a Secret with the token
  flux create source git podinfo --url=https://github.com/stefanprodan/podinfo --branch=master --username=git --password-stdin < token

  # Export the manifest to commit it to Git
  flux create source git podinfo --url=https://github.com/stefanprodan/podinfo --branch=master --export > source.yaml`,
		Refers: map[string][]string{"secret-ref": {"Secret"}, "proxy-secret-ref": {"Secret"}},
		Fields: map[string][]string{
			"url": {"url"}, "branch": {"ref"}, "tag": {"ref"}, "tag-semver": {"ref"}, "commit": {"ref"}, "ref-name": {"ref"},
			"secret-ref": {"secretRef"}, "provider": {"provider"}, "proxy-secret-ref": {"proxySecretRef"}, "ignore-paths": {"ignore"},
			"sparse-checkout-paths": {"sparseCheckout"}, "recurse-submodules": {"recurseSubmodules"},
		},
		SecretFlags: o.auth.FlagNames(),
		Flags:       o.add,
		Spec:        o.spec,
		Secret: func(ctx context.Context, c *creation.Creation, spec map[string]any) (*unstructured.Unstructured, error) {
			if o.secretRef != "" || o.provider == "aws" || o.provider == "azure" {
				return nil, nil // the credentials exist already
			}
			return gitSecret(ctx, c, o.auth, o.url, o.silent, spec)
		},
	}
}

func (o *gitRepositoryFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&o.address, "url", "", "URL of the repository: ssh, https or http")
	fs.StringVar(&o.branch, "branch", "", "branch to track")
	fs.StringVar(&o.tag, "tag", "", "tag to pin")
	fs.StringVar(&o.semver, "tag-semver", "", "semver range of the tags to track")
	fs.StringVar(&o.commit, "commit", "", "commit SHA to pin, on --branch if set")
	fs.StringVar(&o.refName, "ref-name", "", "Git reference to track, e.g. refs/pull/1/head")
	fs.StringVar(&o.secretRef, "secret-ref", "", "name of the Secret with the Git credentials")
	fs.Var(command.Choice{Value: &o.provider, Allowed: []string{"generic", "github", "aws", "azure"}}, "provider", "authentication provider: generic, github, aws, azure")
	fs.StringVar(&o.proxy, "proxy-secret-ref", "", "name of the Secret with the proxy address and credentials")
	fs.StringSliceVar(&o.ignore, "ignore-paths", nil, "paths to exclude, in the .gitignore format")
	fs.StringSliceVar(&o.sparse, "sparse-checkout-paths", nil, "directories to check out (default all)")
	fs.BoolVar(&o.submodules, "recurse-submodules", false, "fetch submodules recursively")
	fs.BoolVarP(&o.silent, "silent", "s", false, "skip the deploy key confirmation")
	o.auth.Add(fs)
}

func (o *gitRepositoryFlags) spec(c *creation.Creation) map[string]any {
	spec := map[string]any{}
	o.url = c.URL("url", o.address, "ssh", "http", "https")
	if o.branch+o.tag+o.semver+o.commit+o.refName == "" && !c.Partial {
		c.Check(errors.New("a Git reference is required: --branch, --tag, --tag-semver, --commit or --ref-name"))
	}
	c.Exclusive("branch", "tag", "tag-semver", "ref-name")
	c.Excludes("commit", "a GitRepository tracks one reference", "tag", "tag-semver", "ref-name")
	c.Versions("tag-semver", o.semver)
	c.ObjectName("secret-ref", o.secretRef)
	if o.provider == "github" && o.secretRef == "" && !c.Partial {
		c.Check(errors.New("--provider=github requires --secret-ref: create the Secret with 'flux create secret githubapp'"))
	}
	c.Excludes("secret-ref", "the credentials are in the Secret", o.auth.FlagNames()...)
	o.auth.Check(c, o.url)
	putFetchFields(c, spec, o.address, o.proxy, o.ignore)
	creation.Put(spec, "ref.branch", o.branch)
	creation.Put(spec, "ref.tag", o.tag)
	creation.Put(spec, "ref.semver", o.semver)
	creation.Put(spec, "ref.commit", o.commit)
	creation.Put(spec, "ref.name", o.refName)
	creation.Put(spec, "provider", o.provider)
	creation.Put(spec, "recurseSubmodules", o.submodules)
	creation.Put(spec, "sparseCheckout", o.sparse)
	creation.Put(spec, "secretRef.name", o.secretRef)
	return spec
}

// gitSecret builds the Secret of a GitRepository, or returns nil if it needs no
// credentials or the Secret has been applied already.
func gitSecret(ctx context.Context, c *creation.Creation, auth *credentials.Git, u *url.URL, silent bool, spec map[string]any) (*unstructured.Unstructured, error) {
	if u.Scheme != "ssh" {
		data := auth.TLS.Read(c)
		if auth.Username != "" {
			data["username"], data["password"] = auth.Username, c.Secret(auth.Password)
		}
		if err := c.Err(); err != nil || len(data) == 0 {
			return nil, err
		}
		creation.Put(spec, "secretRef.name", c.Name)
		return credentials.NewSecret(c, c.Name, "", data), nil
	}
	if auth.KeyFile == "" && !silent && c.DryRun == "" && !c.App.UI.Interactive() {
		return nil, hint.Errorf("use --silent and add the deploy key afterwards, or use an existing key with --private-key-file",
			"no terminal to confirm that the deploy key was added")
	}
	stored, err := storedKey(ctx, c)
	if err != nil {
		return nil, err
	}
	data, err := auth.SSHData(ctx, c, u, stored)
	if err != nil {
		return nil, err
	}
	creation.Put(spec, "secretRef.name", c.Name)
	secret := credentials.NewSecret(c, c.Name, "", data)
	if auth.KeyFile != "" || c.DryRun != "" || stored.Private != nil {
		c.App.UI.Success("public key: %s", strings.TrimSpace(data["identity.pub"]))
		return secret, nil
	}
	// The Secret is applied before the public key is shown: if this run is
	// interrupted, the next one uses the key that the user may have added.
	if _, err := c.Apply(ctx, "secret "+c.Name, secret); err != nil {
		return nil, err
	}
	return nil, confirmDeployKey(ctx, c.App, data["identity.pub"], silent)
}

// confirmDeployKey reports the public key and, unless silent, asks the user to
// confirm that it was added to the repository.
func confirmDeployKey(ctx context.Context, a *app.App, public string, silent bool) error {
	a.UI.Success("public key: %s", strings.TrimSpace(public))
	if silent {
		return nil
	}
	yes, err := a.Confirm(ctx, "Have you added the deploy key to your repository?")
	if err == nil && !yes {
		return hint.Errorf("add the deploy key to the repository and run the command again: it uses the same key", "deploy key not added")
	}
	return err
}

// storedKey returns the key pair in the Secret of an earlier run, if any.
func storedKey(ctx context.Context, c *creation.Creation) (sshkey.Pair, error) {
	client, err := c.App.Client()
	if err != nil {
		return sshkey.Pair{}, err
	}
	secret, err := client.Get(ctx, kube.BuiltIn("v1", "Secret"), c.Namespace, c.Name)
	if apierrors.IsNotFound(err) {
		return sshkey.Pair{}, nil
	}
	if err != nil {
		return sshkey.Pair{}, fmt.Errorf("reading the SSH key in Secret %s/%s: %w", c.Namespace, c.Name, err)
	}
	data, _ := secret["data"].(map[string]any)
	value := func(key string) []byte {
		text, _ := data[key].(string)
		plain, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil // the API server accepts only valid base64
		}
		return plain
	}
	pair, err := sshkey.Load(value("identity"), string(value("password")))
	if err != nil {
		return sshkey.Pair{}, nil // an unusable key is replaced
	}
	return pair, nil
}
