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

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/cli/create/creation"
	"github.com/fluxkit/flux/internal/cli/create/credentials"
	"github.com/fluxkit/flux/internal/cli/installation"
	"github.com/fluxkit/flux/internal/sshkey"
)

// gitRepositoryFlags are the flags of create source git.
type gitRepositoryFlags struct {
	address, branch, tag, semver, commit, refName, secretRef, provider, proxy string
	ignore, sparse                                                            []string
	submodules, silent                                                        bool
	auth                                                                      *credentials.Git
	// url is the address, once it has been read.
	url *url.URL
}

// GitRepository returns what makes a GitRepository.
func GitRepository() creation.Builder {
	o := &gitRepositoryFlags{auth: credentials.NewGit("ca-file")}
	return creation.Builder{
		Kind: "GitRepository",
		Example: `  # A branch of a public repository
  flux create source git podinfo --url=https://github.com/stefanprodan/podinfo --branch=master

  # The newest tag of a range
  flux create source git podinfo --url=https://github.com/stefanprodan/podinfo --tag-semver='>=6.0.0 <7.0.0'

  # A private repository over SSH: makes a key, shows it, and asks whether it has been given access
  flux create source git podinfo --url=ssh://git@github.com/stefanprodan/podinfo --branch=master

  # A private repository over HTTPS, with a Secret made from the token
  flux create source git podinfo --url=https://github.com/stefanprodan/podinfo --branch=master --username=git --password-stdin < token

  # For a repository: print it
  flux create source git podinfo --url=https://github.com/stefanprodan/podinfo --branch=master --export > source.yaml`,
		Refers:      map[string][]string{"secret-ref": {"Secret"}, "proxy-secret-ref": {"Secret"}},
		SecretFlags: o.auth.Names(),
		Flags:       o.add,
		Spec:        o.spec,
		Secret: func(ctx context.Context, c *creation.Creation, spec map[string]any) (*unstructured.Unstructured, error) {
			if o.secretRef != "" || o.provider == "aws" || o.provider == "azure" {
				return nil, nil //nolint:nilnil // the credentials are there already
			}
			return gitSecret(ctx, c, o.auth, o.url, o.silent, spec)
		},
	}
}

func (o *gitRepositoryFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&o.address, "url", "", "the address of the repository: ssh, https or http")
	fs.StringVar(&o.branch, "branch", "", "the branch to follow")
	fs.StringVar(&o.tag, "tag", "", "the tag to stay at")
	fs.StringVar(&o.semver, "tag-semver", "", "the range of versions to follow the newest tag of")
	fs.StringVar(&o.commit, "commit", "", "the commit to stay at, on --branch if that is given")
	fs.StringVar(&o.refName, "ref-name", "", "the reference to follow, such as refs/pull/1/head")
	fs.StringVar(&o.secretRef, "secret-ref", "", "the Secret with the credentials")
	fs.Var(command.Choice{Value: &o.provider, Allowed: []string{"generic", "github", "aws", "azure"}}, "provider", "whose identity opens the repository: generic, github, aws, azure")
	fs.StringVar(&o.proxy, "proxy-secret-ref", "", "the Secret with the address and credentials of a proxy")
	fs.StringSliceVar(&o.ignore, "ignore-paths", nil, "leave out these paths, in the format of .gitignore")
	fs.StringSliceVar(&o.sparse, "sparse-checkout-paths", nil, "fetch these folders only")
	fs.BoolVar(&o.submodules, "recurse-submodules", false, "fetch submodules too")
	fs.BoolVarP(&o.silent, "silent", "s", false, "do not ask whether the public key has been given access")
	o.auth.Add(fs)
}

func (o *gitRepositoryFlags) spec(c *creation.Creation) map[string]any {
	spec := map[string]any{}
	o.url = c.URL("url", o.address, "ssh", "http", "https")
	if o.branch+o.tag+o.semver+o.commit+o.refName == "" {
		c.Check(errors.New("what to follow is required: --branch, --tag, --tag-semver, --commit or --ref-name"))
	}
	c.Exclusive("a GitRepository follows one of them", "branch", "tag", "tag-semver", "ref-name")
	c.Excludes("commit", "a GitRepository follows one of them", "tag", "tag-semver", "ref-name")
	c.Versions("tag-semver", o.semver)
	c.ObjectName("secret-ref", o.secretRef)
	if o.provider == "github" && o.secretRef == "" {
		c.Check(errors.New("--provider=github needs --secret-ref, a Secret made by 'flux create secret githubapp'"))
	}
	c.Excludes("secret-ref", "the credentials are in the Secret", o.auth.Names()...)
	o.auth.Check(c, o.url)
	fetching(c, spec, o.address, o.proxy, o.ignore)
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

// gitSecret makes the Secret of a GitRepository, nil for an open repository.
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
		return nil, clierr.WithHint("add --silent and give the key access afterwards, or give a key that has access with --private-key-file",
			"the new key has to be given access, and there is no terminal to ask on")
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
	// The key is in the cluster before it is shown, so that the one that is
	// given access is the one that is used, however this run ends.
	if _, err := c.Apply(ctx, "secret "+c.Name, secret); err != nil {
		return nil, err
	}
	return nil, grantAccess(ctx, c.App, data["identity.pub"], silent)
}

// grantAccess shows a public key and asks, unless silent, whether it has been given access.
func grantAccess(ctx context.Context, a *app.App, public string, silent bool) error {
	a.UI.Success("public key: %s", strings.TrimSpace(public))
	if silent {
		return nil
	}
	yes, err := a.Confirm(ctx, "Has the key been given access to the repository?")
	if err == nil && !yes {
		return clierr.WithHint("give it access and run the command again: the same key is used then", "the key was not given access")
	}
	return err
}

// storedKey is the key that an earlier run has left in the Secret.
func storedKey(ctx context.Context, c *creation.Creation) (sshkey.Pair, error) {
	client, err := c.App.Client()
	if err != nil {
		return sshkey.Pair{}, err
	}
	secret, err := client.Get(ctx, installation.BuiltIn("v1", "Secret"), c.Namespace, c.Name)
	if apierrors.IsNotFound(err) {
		return sshkey.Pair{}, nil
	}
	if err != nil {
		return sshkey.Pair{}, fmt.Errorf("looking for an earlier key in Secret %s/%s: %w", c.Namespace, c.Name, err)
	}
	data, _ := secret["data"].(map[string]any)
	value := func(key string) []byte {
		text, _ := data[key].(string)
		plain, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil // the server does not let others in
		}
		return plain
	}
	pair, err := sshkey.Load(value("identity"), string(value("password")))
	if err != nil {
		return sshkey.Pair{}, nil //nolint:nilerr // what cannot be used is replaced
	}
	return pair, nil
}
