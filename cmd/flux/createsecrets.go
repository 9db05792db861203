package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/credential"
	"github.com/fluxkit/flux/internal/sshkey"
)

func secretGit() secretBuilder {
	var address string
	auth, bearer := newGitAuthFlags("ca-crt-file"), newSecretFlag("bearer-token")
	return secretBuilder{
		word: "git", what: "that opens a Git repository",
		example: `  # Over SSH: makes a key and shows it, to be given access
  flux create secret git app --url=ssh://git@github.com/org/app

  # Over SSH with a key that has access, its passphrase in a file
  flux create secret git app --url=ssh://git@github.com/org/app --private-key-file=./id_ed25519 --password-file=./passphrase

  # Over HTTPS with a token from standard input
  flux create secret git app --url=https://github.com/org/app --username=git --password-stdin < token

  # For a repository: print it, to be encrypted
  flux create secret git app --url=https://github.com/org/app --bearer-token-stdin --export < token`,
		flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&address, "url", "", "the address of the repository: ssh, https or http")
			bearer.add(fs, "", "the token to send as a bearer token", "")
			auth.add(fs)
		},
		build: func(ctx context.Context, c *creation) (*unstructured.Unstructured, error) {
			u := c.address("url", address, "ssh", "http", "https")
			auth.check(c, u)
			c.exclusive("one of them opens the repository", append(bearer.names(), "username")...)
			if u != nil && u.Scheme == "ssh" && c.asked(bearer) {
				c.wrong(errors.New("--bearer-token is for https addresses"))
			}
			if u != nil && u.Scheme != "ssh" && auth.username == "" && !c.asked(bearer) && auth.tls.caFile == "" {
				c.wrong(errors.New("--username and --password, or --bearer-token, are required for an https address"))
			}
			if err := c.verdict(); err != nil {
				return nil, err
			}
			if u.Scheme == "ssh" {
				data, err := auth.sshData(ctx, c, u, sshkey.Pair{})
				return c.secretObject(c.name, "", data), err
			}
			return c.secretObject(c.name, "", auth.httpData(c, bearer)), nil
		},
	}
}

// httpData is what opens a Git repository over HTTP.
func (g *gitAuthFlags) httpData(c *creation, bearer *secretFlag) map[string]string {
	data := g.tls.read(c)
	if g.username != "" {
		data["username"], data["password"] = g.username, c.secret(g.password)
	}
	if c.asked(bearer) {
		data["bearerToken"] = c.secret(bearer)
	}
	return data
}

func secretGitHubApp() secretBuilder {
	var id, installation, owner, keyFile, base string
	return secretBuilder{
		word: "githubapp", what: "by which a GitHub App opens repositories",
		example: `  # The installation that is named by its number
  flux create secret githubapp app --app-id=12345 --app-installation-id=67890 --app-private-key=./app.pem

  # The installation of an organisation, on a server of your own
  flux create secret githubapp app --app-id=12345 --app-installation-owner=org --app-private-key=./app.pem --app-base-url=https://github.example.com/api/v3`,
		flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&id, "app-id", "", "the number of the App")
			fs.StringVar(&installation, "app-installation-id", "", "the number of its installation")
			fs.StringVar(&owner, "app-installation-owner", "", "the user or organisation that it is installed for, instead of the number")
			fs.StringVar(&keyFile, "app-private-key", "", "a file with the App's private key; '-' is standard input")
			fs.StringVar(&base, "app-base-url", "", "the address of the API, unless it is that of github.com")
		},
		build: func(_ context.Context, c *creation) (*unstructured.Unstructured, error) {
			c.need("app-id", id)
			c.need("app-private-key", keyFile)
			if installation == "" && owner == "" {
				c.wrong(errors.New("--app-installation-id or --app-installation-owner is required"))
			}
			c.exclusive("one of them names the installation", "app-installation-id", "app-installation-owner")
			c.number("app-id", id)
			c.number("app-installation-id", installation)
			if base != "" {
				c.address("app-base-url", base, "https", "http")
			}
			before := len(c.problems)
			if key := c.file("app-private-key", keyFile); keyFile != "" && len(c.problems) == before {
				c.flagged("app-private-key", credential.RSAKey(key))
				keyFile = string(key)
			}
			data := map[string]string{"githubAppID": id, "githubAppPrivateKey": keyFile}
			for key, value := range map[string]string{
				"githubAppInstallationID": installation, "githubAppInstallationOwner": owner, "githubAppBaseURL": base,
			} {
				if value != "" {
					data[key] = value
				}
			}
			return c.secretObject(c.name, "Opaque", data), nil
		},
	}
}

// number checks a number of GitHub.
func (c *creation) number(flag, value string) {
	if n, err := strconv.ParseInt(value, 10, 64); value != "" && (err != nil || n <= 0) {
		c.flagged(flag, fmt.Errorf("%q is no number", value))
	}
}

func secretNotation() secretBuilder {
	var files []string
	var policy string
	return secretBuilder{
		word: "notation", what: "that artifacts signed with Notation are verified by",
		example: `  # The policy, and the authority that the signatures come from
  flux create secret notation trust --trust-policy-file=./trustpolicy.json --ca-cert-file=./ca.crt`,
		flags: func(fs *pflag.FlagSet) {
			fs.StringSliceVar(&files, "ca-cert-file", nil, "files with the certificates to trust, named *.crt or *.pem")
			fs.StringVar(&policy, "trust-policy-file", "", "a file with the trust policy; '-' is standard input")
		},
		build: func(_ context.Context, c *creation) (*unstructured.Unstructured, error) {
			c.need("trust-policy-file", policy)
			c.need("ca-cert-file", strings.Join(files, ","))
			data := map[string]string{}
			for _, file := range files {
				name := filepath.Base(file)
				if ext := filepath.Ext(name); ext != ".crt" && ext != ".pem" {
					c.flagged("ca-cert-file", fmt.Errorf("%q has to end in .crt or .pem", file))
					continue
				}
				if _, twice := data[name]; twice {
					c.flagged("ca-cert-file", fmt.Errorf("two files are named %q, and a Secret has room for one", name))
				}
				before := len(c.problems)
				if text := c.file("ca-cert-file", file); len(c.problems) == before {
					c.flagged("ca-cert-file", credential.Certificates(text))
					data[name] = string(text)
				}
			}
			before := len(c.problems)
			if text := c.file("trust-policy-file", policy); policy != "" && len(c.problems) == before {
				c.flagged("trust-policy-file", credential.TrustPolicy(text))
				data["trustpolicy.json"] = string(text)
			}
			return c.secretObject(c.name, "", data), nil
		},
	}
}

// webhookAnnotation tells people the address to give to who calls a Receiver.
const webhookAnnotation = "notification.toolkit.fluxcd.io/webhook"

func secretReceiver() secretBuilder {
	var typ, hostname, email, audience string
	token := newSecretFlag("token")
	return secretBuilder{
		word: "receiver", what: "with the token of a Receiver",
		example: `  # A new token; the Secret's annotation says the webhook's address
  flux create secret receiver github-receiver --type=github --hostname=flux.example.com

  # A token that exists already
  flux create secret receiver github-receiver --type=github --hostname=flux.example.com --token-file=./token`,
		flags: func(fs *pflag.FlagSet) {
			fs.Var(choice{&typ, receiverTypes}, "type", "who calls: "+strings.Join(receiverTypes, ", "))
			token.add(fs, "", "the token", ", made unless given")
			fs.StringVar(&hostname, "hostname", "", "the host under which the webhook is reached, such as flux.example.com")
			fs.StringVar(&email, "email-claim", "", "for gcr: the service account that calls")
			fs.StringVar(&audience, "audience-claim", "", "for gcr: whom its tokens are for; the webhook's address unless given")
		},
		build: func(_ context.Context, c *creation) (*unstructured.Unstructured, error) {
			c.need("type", typ)
			c.need("hostname", hostname)
			c.endpoint("hostname", hostname)
			c.claims(typ, email)
			value := c.secret(token)
			if !c.asked(token) {
				made := make([]byte, 32)
				if _, err := rand.Read(made); err != nil {
					return nil, fmt.Errorf("making a token: %w", err)
				}
				value = hex.EncodeToString(made)
			}
			webhook := (&url.URL{Scheme: "https", Host: hostname, Path: credential.WebhookPath(value, c.name, c.namespace)}).String()
			data := map[string]string{"token": value}
			if typ == "gcr" {
				if audience == "" {
					audience = webhook
				}
				data["email"], data["audience"] = email, audience
			}
			secret := c.secretObject(c.name, "", data)
			secret.SetAnnotations(map[string]string{webhookAnnotation: webhook})
			if len(c.problems) == 0 {
				c.app.ui.Success("webhook address: %s", webhook)
			}
			return secret, nil
		},
	}
}

// claims checks who may call a Receiver of Google's registry.
func (c *creation) claims(typ, email string) {
	if typ != "gcr" {
		if given := c.given("email-claim", "audience-claim"); len(given) > 0 {
			c.wrong(fmt.Errorf("%s is for --type=gcr", strings.Join(given, ", ")))
		}
		return
	}
	c.need("email-claim", email)
	if _, err := mail.ParseAddress(email); email != "" && err != nil {
		c.flagged("email-claim", fmt.Errorf("%q is no e-mail address", email))
	}
}
