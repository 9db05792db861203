// Package testcloud simulates AWS, Azure, Google Cloud and GitHub Apps on loopback for tests: the
// endpoints that issue credentials, and registries and Git servers that accept only these
// credentials. Clients use the real hostnames through a proxy, so that they run as in production.
package testcloud

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/fluxkit/flux/test/support/testproxy"
)

// The hosts of the registries.
const (
	ECR       = "123456789012.dkr.ecr.eu-west-1.amazonaws.com"
	PublicECR = "public.ecr.aws"
	ACR       = "fluxtest.azurecr.io"
	GAR       = "europe-docker.pkg.dev"
	// Stranger is a registry that belongs to no provider. It accepts every client.
	Stranger = "registry.example.com"
)

// The hosts that issue credentials.
const (
	ecrAPI       = "api.ecr.eu-west-1.amazonaws.com"
	publicECRAPI = "api.ecr-public.us-east-1.amazonaws.com"
	awsSTS       = "sts.eu-west-1.amazonaws.com"
	publicSTS    = "sts.us-east-1.amazonaws.com"
	entra        = "login.microsoftonline.com"
	googleTokens = "oauth2.googleapis.com"
	googleSTS    = "sts.googleapis.com"
)

// Fault changes the behavior of the cloud.
type Fault string

const (
	// Denied makes the exchange for registry credentials fail.
	Denied Fault = "denied"
	// Expired makes all further credentials expire immediately.
	Expired Fault = "expired"
	// Forbidden makes registries respond with 403 to valid credentials.
	Forbidden Fault = "forbidden"
	// Slow keeps requests for credentials waiting.
	Slow Fault = "slow"
)

// Cloud is a running cloud.
type Cloud struct {
	dir        string
	proxy      *testproxy.Proxy
	plain      *httptest.Server
	registries map[string]http.Handler
	closing    chan struct{}

	mu       sync.Mutex
	fault    Fault
	requests []string
	asked    chan struct{}
	issued   map[string]grant
	account  account
}

// The clouds, one for each provider.
type (
	amazon    struct{ *Cloud }
	microsoft struct{ *Cloud }
	google    struct{ *Cloud }
)

// grant is a credential that the cloud has issued.
type grant struct {
	// use is the resource for which the credential is valid, such as a registry.
	use     string
	expires time.Time
	// secret and session belong to an access key of AWS.
	secret, session string
}

// Start runs a cloud. Files for clients are written to dir.
func Start(dir string) (*Cloud, error) {
	c := &Cloud{
		dir: dir, registries: map[string]http.Handler{}, closing: make(chan struct{}),
		asked: make(chan struct{}, 1), issued: map[string]grant{},
	}
	hosts := []string{ECR, PublicECR, ACR, GAR, GHCR, GitLabRegistry, Stranger}
	for _, host := range hosts {
		c.registries[host] = registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	}
	var err error
	if c.account, err = newAccount(); err != nil {
		return nil, err
	}
	hosts = append(hosts, ecrAPI, publicECRAPI, awsSTS, publicSTS, entra, googleTokens, googleSTS, githubAPI, GitHub, DevOps, CodeCommit, S3, gitlab, runner)
	if c.proxy, err = testproxy.Start(filepath.Join(dir, "cloud.crt"), hosts, http.HandlerFunc(c.serveSecure)); err != nil {
		return nil, err
	}
	c.plain = httptest.NewServer(http.HandlerFunc(c.serveMetadata))
	return c, nil
}

// Close stops the cloud.
func (c *Cloud) Close() {
	close(c.closing)
	c.proxy.Close()
	c.plain.CloseClientConnections()
	c.plain.Close()
}

// Set sets the fault, "" for none.
func (c *Cloud) Set(fault Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = fault
}

// Requests returns the requests since the last call, as "METHOD HOST/PATH".
func (c *Cloud) Requests() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	requests := c.requests
	c.requests = nil
	return requests
}

// Asked returns a channel that receives when a request for credentials arrives.
func (c *Cloud) Asked() <-chan struct{} { return c.asked }

// Secrets returns all credentials in the cloud. None of them may appear in output.
func (c *Cloud) Secrets() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	secrets := c.account.secrets()
	for token, g := range c.issued {
		if g.secret == "" { // the identifier of an access key is not secret
			secrets = append(secrets, token)
		} else {
			secrets = append(secrets, g.secret, g.session)
		}
	}
	return slices.DeleteFunc(secrets, func(s string) bool { return s == "" })
}

// serveSecure serves the hosts of the cloud.
func (c *Cloud) serveSecure(w http.ResponseWriter, r *http.Request) {
	c.record(r)
	switch r.Host {
	case ecrAPI, publicECRAPI, awsSTS, publicSTS, entra, googleTokens, googleSTS:
		c.issue(w, r, map[string]http.HandlerFunc{
			ecrAPI: amazon{c}.token, publicECRAPI: amazon{c}.token, awsSTS: amazon{c}.webIdentity, publicSTS: amazon{c}.webIdentity, entra: microsoft{c}.token,
			googleTokens: google{c}.key, googleSTS: google{c}.exchange,
		}[r.Host])
	case githubAPI:
		c.issue(w, r, gitServers{c}.appToken)
	case GitHub, DevOps, CodeCommit:
		gitServers{c}.serve(w, r)
	case S3:
		amazon{c}.bucket(w, r)
	case runner:
		c.issue(w, r, systems{c}.jobToken)
	case gitlab:
		c.issue(w, r, systems{c}.registryToken)
	case GHCR:
		if r.URL.Path == "/token" {
			c.issue(w, r, systems{c}.registryToken)
			return
		}
		c.serveRegistry(w, r)
	case ACR:
		if strings.HasPrefix(r.URL.Path, "/oauth2/") {
			c.issue(w, r, microsoft{c}.registryToken)
			return
		}
		c.serveRegistry(w, r)
	default:
		c.serveRegistry(w, r)
	}
}

// issue calls a handler that issues credentials, or keeps the request waiting if the cloud is slow.
func (c *Cloud) issue(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
	select {
	case c.asked <- struct{}{}:
	default:
	}
	if c.is(Slow) {
		select {
		case <-c.closing:
		case <-r.Context().Done():
		}
		return
	}
	next(w, r)
}

func (c *Cloud) record(r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	host := r.Host
	if strings.HasPrefix(host, "127.0.0.1:") {
		host = "metadata"
	}
	c.requests = append(c.requests, r.Method+" "+host+r.URL.Path)
}

func (c *Cloud) is(fault Fault) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fault == fault
}

// grant issues a credential.
func (c *Cloud) grant(token string, g grant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g.expires = time.Now().Add(time.Hour)
	if c.fault == Expired {
		g.expires = time.Now().Add(-time.Minute)
	}
	c.issued[token] = g
}

// errExpired is returned by valid for a credential that has expired.
var errExpired = errors.New("expired")

// valid checks a credential for a use.
func (c *Cloud) valid(token, use string) (grant, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g, ok := c.issued[token]
	switch {
	case !ok:
		return g, errors.New("unknown credentials")
	case g.use != use:
		return g, fmt.Errorf("credentials for %s are not valid for %s", g.use, use)
	case time.Now().After(g.expires):
		return g, errExpired
	}
	return g, nil
}
