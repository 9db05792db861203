package source

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/create/creation"
	"github.com/fluxkit/flux/cmd/flux/internal/create/credentials"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/secrets/sshkey"
)

// GitRepository returns the builder of GitRepositories.
func GitRepository() creation.Builder {
	auth := credentials.NewGit("ca-file")
	address := func(c *creation.Creation) *url.URL { return c.URL("url", c.Text("url"), "ssh", "http", "https") }
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
		SecretFlags: auth.FlagNames(),
		Flags: files(
			creation.Text("url", "url", "URL of the repository: ssh, https or http"),
			creation.Text("branch", "ref.branch", "branch to track").Replaces("ref"),
			creation.Text("tag", "ref.tag", "tag to pin").Replaces("ref"),
			creation.Text("tag-semver", "ref.semver", "semver range of the tags to track").Replaces("ref").Checked((*creation.Creation).Versions),
			creation.Text("commit", "ref.commit", "commit SHA to pin, on --branch if set").Replaces("ref"),
			creation.Text("ref-name", "ref.name", "Git reference to track, e.g. refs/pull/1/head").Replaces("ref"),
			creation.ObjectName("secret-ref", "secretRef.name", "name of the Secret with the Git credentials", "Secret"),
			creation.Choice("provider", "provider", "authentication provider: generic, github, aws, azure", "generic", "github", "aws", "azure"),
			creation.List("sparse-checkout-paths", "sparseCheckout", "directories to check out (default: all)"),
			creation.Switch("recurse-submodules", "recurseSubmodules", "fetch submodules recursively"),
			creation.Switch("yes", "", "skip the deploy key confirmation").Short("y"),
			creation.Switch("silent", "", "alias of --yes").Short("s"),
		),
		OtherFlags: auth.Add,
		Spec: func(c *creation.Creation, _ map[string]any) {
			u := address(c)
			if c.Text("branch")+c.Text("tag")+c.Text("tag-semver")+c.Text("commit")+c.Text("ref-name") == "" && !c.Partial {
				c.Check(errors.New("a Git reference is required: --branch, --tag, --tag-semver, --commit or --ref-name"))
			}
			c.Exclusive("branch", "tag", "tag-semver", "ref-name")
			c.Excludes("commit", "a GitRepository tracks one reference", "tag", "tag-semver", "ref-name")
			if c.Text("provider") == "github" && c.Text("secret-ref") == "" && !c.Partial {
				c.Check(errors.New("--provider=github requires --secret-ref: create the Secret with 'flux create secret githubapp'"))
			}
			c.Excludes("secret-ref", "the credentials are in the Secret", auth.FlagNames()...)
			auth.Check(c, u)
		},
		Secret: func(ctx context.Context, c *creation.Creation, spec map[string]any) (*unstructured.Unstructured, error) {
			if provider := c.Text("provider"); c.Text("secret-ref") != "" || provider == "aws" || provider == "azure" {
				return nil, nil // the credentials exist already
			}
			return gitSecret(ctx, c, auth, address(c), c.Is("yes") || c.Is("silent"), spec)
		},
	}
}

// gitSecret builds the Secret of a GitRepository. It returns nil if no credentials are needed or
// the Secret is already applied.
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
		return nil, hint.Errorf("use --yes and add the deploy key afterwards, or use an existing key with --private-key-file",
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

// confirmDeployKey reports the public key. Unless silent, it asks the user to confirm that the key
// was added to the repository.
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
