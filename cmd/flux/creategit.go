package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/config"
	"github.com/fluxkit/flux/internal/sshkey"
)

// gitAuthFlags are how a Git repository is opened. create source git and
// create secret git share them.
type gitAuthFlags struct {
	username, keyFile string
	password          *secretFlag
	key               sshkey.Kind
	tls               tlsFlags
}

func newGitAuthFlags(caFlag string) *gitAuthFlags {
	return &gitAuthFlags{
		password: newSecretFlag("password"), tls: tlsFlags{ca: caFlag},
		key: sshkey.Kind{Algorithm: "ecdsa", Curve: "p384", Bits: 2048},
	}
}

func (g *gitAuthFlags) add(fs *pflag.FlagSet) {
	fs.StringVarP(&g.username, "username", "u", "", "the user name over HTTPS")
	g.password.add(fs, "p", "the password or token over HTTPS, or the passphrase of the SSH key", "")
	fs.StringVar(&g.keyFile, "private-key-file", "", "a file with the SSH key to use; one is made unless given; '-' is standard input")
	g.tls.add(fs)
	fs.Var(choice{&g.key.Algorithm, sshkey.Algorithms}, "ssh-key-algorithm", "the kind of SSH key to make: "+strings.Join(sshkey.Algorithms, ", "))
	fs.Var(choice{&g.key.Curve, sshkey.Curves}, "ssh-ecdsa-curve", "the curve of an ecdsa key: "+strings.Join(sshkey.Curves, ", "))
	fs.Var((*keyBits)(&g.key.Bits), "ssh-rsa-bits", "the size of an rsa key, a multiple of 8")
}

// names are the flags that a Secret is made from.
func (g *gitAuthFlags) names() []string {
	return append(g.password.names(), "username", "private-key-file", g.tls.ca)
}

// check refuses what does not go with the scheme of the address.
func (g *gitAuthFlags) check(c *creation, u *url.URL) {
	switch {
	case u == nil:
	case u.Scheme == "ssh":
		if given := c.given(g.tls.ca); len(given) > 0 {
			c.wrong(fmt.Errorf("%s is for https addresses, not for SSH", given[0]))
		}
		if c.asked(g.password) && g.keyFile == "" {
			c.wrong(errors.New("--password unlocks --private-key-file over SSH, which is not given"))
		}
	default:
		if given := c.given("private-key-file"); len(given) > 0 {
			c.wrong(fmt.Errorf("%s is for ssh addresses", given[0]))
		}
		if (g.username != "") != c.asked(g.password) {
			c.wrong(errors.New("--username and --password go together"))
		}
		if u.Scheme == "http" && len(c.given(g.tls.ca)) > 0 {
			c.wrong(fmt.Errorf("--%s is for https addresses", g.tls.ca))
		}
	}
}

// sshData makes or reads the key, asks the server for its own, and returns what
// a Secret needs to hold. pair is a key that is used already, if any.
func (g *gitAuthFlags) sshData(ctx context.Context, c *creation, u *url.URL, pair sshkey.Pair) (map[string]string, error) {
	passphrase := c.secret(g.password)
	key := c.file("private-key-file", g.keyFile)
	if err := c.verdict(); err != nil {
		return nil, err
	}
	var err error
	switch {
	case g.keyFile != "":
		pair, err = sshkey.Load(key, passphrase)
		if errors.Is(err, sshkey.ErrPassphrase) {
			err = hinted("give the passphrase with --password-file or --password-stdin", "--private-key-file: %w", err)
		}
	case pair.Private == nil:
		pair, err = sshkey.Generate(g.key)
	}
	if err != nil {
		return nil, err
	}
	known, err := c.app.scanHost(ctx, u)
	if err != nil {
		return nil, err
	}
	data := map[string]string{"identity": string(pair.Private), "identity.pub": string(pair.Public), "known_hosts": known}
	if passphrase != "" {
		data["password"] = passphrase
	}
	return data, nil
}

// scanHost asks an SSH server for its key, shows the fingerprint, and refuses a
// key that contradicts what the user's known_hosts says.
func (a *app) scanHost(ctx context.Context, u *url.URL) (string, error) {
	key, err := sshkey.Scan(ctx, sshkey.Address(u.Host), nil)
	if err != nil {
		return "", fmt.Errorf("asking %s for its host key: %w", u.Host, err)
	}
	if home := config.Home(a.env); home != "" {
		file := filepath.Join(home, ".ssh", "known_hosts")
		verdict, err := sshkey.Look(file, key)
		if err != nil {
			return "", err
		}
		if verdict == sshkey.Contradicted {
			return "", hinted("if its key was changed on purpose, correct that file",
				"%s shows the host key %s, which is not the one in %s: somebody may be listening in", u.Host, key.Fingerprint(), file)
		}
	}
	a.ui.Success("host key of %s: %s %s", u.Host, key.Type(), key.Fingerprint())
	return key.Line() + "\n", nil
}

// gitRepositoryFlags are the flags of create source git.
type gitRepositoryFlags struct {
	address, branch, tag, semver, commit, refName, secretRef, provider, proxy string
	ignore, sparse                                                            []string
	submodules, silent                                                        bool
	auth                                                                      *gitAuthFlags
	// url is the address, once it has been read.
	url *url.URL
}

func buildGitRepository() builder {
	o := &gitRepositoryFlags{auth: newGitAuthFlags("ca-file")}
	return builder{
		kind: "GitRepository",
		example: `  # A branch of a public repository
  flux create source git podinfo --url=https://github.com/stefanprodan/podinfo --branch=master

  # The newest tag of a range
  flux create source git podinfo --url=https://github.com/stefanprodan/podinfo --tag-semver='>=6.0.0 <7.0.0'

  # A private repository over SSH: makes a key, shows it, and asks whether it has been given access
  flux create source git podinfo --url=ssh://git@github.com/stefanprodan/podinfo --branch=master

  # A private repository over HTTPS, with a Secret made from the token
  flux create source git podinfo --url=https://github.com/stefanprodan/podinfo --branch=master --username=git --password-stdin < token

  # For a repository: print it
  flux create source git podinfo --url=https://github.com/stefanprodan/podinfo --branch=master --export > source.yaml`,
		refers:      map[string][]string{"secret-ref": {"Secret"}, "proxy-secret-ref": {"Secret"}},
		secretFlags: o.auth.names(),
		flags:       o.add,
		spec:        o.spec,
		secret: func(ctx context.Context, c *creation, spec map[string]any) (*unstructured.Unstructured, error) {
			if o.secretRef != "" || o.provider == "aws" || o.provider == "azure" {
				return nil, nil //nolint:nilnil // the credentials are there already
			}
			return c.gitSecret(ctx, o.auth, o.url, o.silent, spec)
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
	fs.Var(choice{&o.provider, []string{"generic", "github", "aws", "azure"}}, "provider", "whose identity opens the repository: generic, github, aws, azure")
	fs.StringVar(&o.proxy, "proxy-secret-ref", "", "the Secret with the address and credentials of a proxy")
	fs.StringSliceVar(&o.ignore, "ignore-paths", nil, "leave out these paths, in the format of .gitignore")
	fs.StringSliceVar(&o.sparse, "sparse-checkout-paths", nil, "fetch these folders only")
	fs.BoolVar(&o.submodules, "recurse-submodules", false, "fetch submodules too")
	fs.BoolVarP(&o.silent, "silent", "s", false, "do not ask whether the public key has been given access")
	o.auth.add(fs)
}

func (o *gitRepositoryFlags) spec(c *creation) map[string]any {
	spec := map[string]any{}
	o.url = c.address("url", o.address, "ssh", "http", "https")
	if o.branch+o.tag+o.semver+o.commit+o.refName == "" {
		c.wrong(errors.New("what to follow is required: --branch, --tag, --tag-semver, --commit or --ref-name"))
	}
	c.exclusive("a GitRepository follows one of them", "branch", "tag", "tag-semver", "ref-name")
	c.excludes("commit", "a GitRepository follows one of them", "tag", "tag-semver", "ref-name")
	c.versions("tag-semver", o.semver)
	c.objectName("secret-ref", o.secretRef)
	if o.provider == "github" && o.secretRef == "" {
		c.wrong(errors.New("--provider=github needs --secret-ref, a Secret made by 'flux create secret githubapp'"))
	}
	c.excludes("secret-ref", "the credentials are in the Secret", o.auth.names()...)
	o.auth.check(c, o.url)
	c.fetching(spec, o.address, o.proxy, o.ignore)
	put(spec, "ref.branch", o.branch)
	put(spec, "ref.tag", o.tag)
	put(spec, "ref.semver", o.semver)
	put(spec, "ref.commit", o.commit)
	put(spec, "ref.name", o.refName)
	put(spec, "provider", o.provider)
	put(spec, "recurseSubmodules", o.submodules)
	put(spec, "sparseCheckout", o.sparse)
	put(spec, "secretRef.name", o.secretRef)
	return spec
}

// gitSecret makes the Secret of a GitRepository, nil for an open repository.
func (c *creation) gitSecret(ctx context.Context, auth *gitAuthFlags, u *url.URL, silent bool, spec map[string]any) (*unstructured.Unstructured, error) {
	if u.Scheme != "ssh" {
		data := auth.tls.read(c)
		if auth.username != "" {
			data["username"], data["password"] = auth.username, c.secret(auth.password)
		}
		if err := c.verdict(); err != nil || len(data) == 0 {
			return nil, err
		}
		put(spec, "secretRef.name", c.name)
		return c.secretObject(c.name, "", data), nil
	}
	if auth.keyFile == "" && !silent && c.dryRun == "" && !c.app.ui.Interactive() {
		return nil, hinted("add --silent and give the key access afterwards, or give a key that has access with --private-key-file",
			"the new key has to be given access, and there is no terminal to ask on")
	}
	stored, err := c.storedKey(ctx)
	if err != nil {
		return nil, err
	}
	data, err := auth.sshData(ctx, c, u, stored)
	if err != nil {
		return nil, err
	}
	put(spec, "secretRef.name", c.name)
	secret := c.secretObject(c.name, "", data)
	if auth.keyFile != "" || c.dryRun != "" || stored.Private != nil {
		c.app.ui.Success("public key: %s", strings.TrimSpace(data["identity.pub"]))
		return secret, nil
	}
	// The key is in the cluster before it is shown, so that the one that is
	// given access is the one that is used, however this run ends.
	if _, err := c.apply(ctx, "secret "+c.name, secret); err != nil {
		return nil, err
	}
	return nil, c.app.grantAccess(ctx, data["identity.pub"], silent)
}

// grantAccess shows a public key and asks, unless silent, whether it has been given access.
func (a *app) grantAccess(ctx context.Context, public string, silent bool) error {
	a.ui.Success("public key: %s", strings.TrimSpace(public))
	if silent {
		return nil
	}
	yes, err := a.confirm(ctx, "Has the key been given access to the repository?")
	if err == nil && !yes {
		return hinted("give it access and run the command again: the same key is used then", "the key was not given access")
	}
	return err
}

// storedKey is the key that an earlier run has left in the Secret.
func (c *creation) storedKey(ctx context.Context) (sshkey.Pair, error) {
	client, err := c.app.cluster()
	if err != nil {
		return sshkey.Pair{}, err
	}
	secret, err := client.Get(ctx, builtin("v1", "Secret"), c.namespace, c.name)
	if apierrors.IsNotFound(err) {
		return sshkey.Pair{}, nil
	}
	if err != nil {
		return sshkey.Pair{}, fmt.Errorf("looking for an earlier key in Secret %s/%s: %w", c.namespace, c.name, err)
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
