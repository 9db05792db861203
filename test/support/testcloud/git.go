package testcloud

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/cgi"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// The hosts of the Git servers. They serve the bare repository git/app.git in the directory of the cloud
// to the clients with its credentials:
//
//	https://github.com/acme/app
//	https://dev.azure.com/acme/fleet/_git/app
//	https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/app
const (
	GitHub     = "github.com"
	DevOps     = "dev.azure.com"
	CodeCommit = "git-codecommit.eu-west-1.amazonaws.com"
)

const (
	githubAPI = "api.github.com"
	// appID and installation identify the GitHub App.
	appID        = "7"
	installation = "42"
)

// gitServers lists the Git servers of the providers.
type gitServers struct{ *Cloud }

// serve serves a repository to a client with valid credentials.
func (c gitServers) serve(w http.ResponseWriter, r *http.Request) {
	repository := map[string]string{GitHub: "/acme/app", DevOps: "/acme/fleet/_git/app", CodeCommit: "/v1/repos/app"}[r.Host]
	service, ok := strings.CutPrefix(r.URL.Path, repository)
	if !ok || service != "/info/refs" && service != "/git-upload-pack" {
		http.NotFound(w, r)
		return
	}
	if err := c.authenticate(r, repository); err != nil {
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	if c.is(Forbidden) {
		http.Error(w, "the identity may not read the repository", http.StatusForbidden)
		return
	}
	git, err := exec.LookPath("git")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	root := filepath.Join(c.dir, "git")
	request := r.Clone(r.Context())
	request.URL.Path = "/app.git" + service
	backend := &cgi.Handler{
		Path: git, Args: []string{"http-backend"},
		Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + root},
	}
	backend.ServeHTTP(w, request)
}

func (c gitServers) authenticate(r *http.Request, repository string) error {
	user, password, _ := r.BasicAuth()
	switch r.Host {
	case DevOps:
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok {
			return errors.New("no token")
		}
		_, err := c.valid(token, devOpsScope)
		return err
	case CodeCommit:
		return c.signed(user, password, repository)
	default:
		if user != "x-access-token" {
			return fmt.Errorf("unexpected user %q", user)
		}
		_, err := c.valid(password, GitHub)
		return err
	}
}

// signed checks the password of AWS CodeCommit, the time and signature of a request for the repository.
func (c gitServers) signed(user, password, repository string) error {
	id, session, _ := strings.Cut(user, "%")
	key, err := c.valid(id, "aws")
	if err != nil {
		return err
	}
	if key.session != session {
		return errors.New("the session token is invalid")
	}
	stamp, signature, _ := strings.Cut(password, "Z")
	at, err := time.Parse("20060102T150405", stamp)
	if err != nil || time.Since(at).Abs() > 15*time.Minute {
		return errors.New("the signature has expired")
	}
	day := stamp[:len("20060102")]
	request := sha256.Sum256([]byte("GIT\n" + repository + "\n\nhost:" + CodeCommit + "\n\nhost\n"))
	text := "AWS4-HMAC-SHA256\n" + stamp + "\n" + day + "/eu-west-1/codecommit/aws4_request\n" + hex.EncodeToString(request[:])
	sum := []byte("AWS4" + key.secret)
	for _, part := range []string{day, "eu-west-1", "codecommit", "aws4_request", text} {
		mac := hmac.New(sha256.New, sum)
		_, _ = mac.Write([]byte(part)) // never fails
		sum = mac.Sum(nil)
	}
	if signature != hex.EncodeToString(sum) {
		return errors.New("the signature does not match")
	}
	return nil
}

// appToken issues tokens of the installation of the GitHub App in the organization acme.
func (c gitServers) appToken(w http.ResponseWriter, r *http.Request) {
	assertion, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if err := c.account.verifyApp(assertion); err != nil {
		respond(w, http.StatusUnauthorized, map[string]string{"message": "A JSON web token could not be decoded"})
		return
	}
	switch r.Method + " " + r.URL.Path {
	case "GET /orgs/acme/installation":
		respond(w, http.StatusOK, map[string]any{"id": 42})
	case "POST /app/installations/" + installation + "/access_tokens":
		if c.is(Denied) {
			respond(w, http.StatusForbidden, map[string]string{"message": "This installation has been suspended"})
			return
		}
		token := secret("ghs")
		c.grant(token, grant{use: GitHub})
		respond(w, http.StatusCreated, map[string]any{"token": token, "expires_at": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)})
	default:
		respond(w, http.StatusNotFound, map[string]string{"message": "Not Found"})
	}
}
