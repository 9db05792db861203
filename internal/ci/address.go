package ci

import (
	"net/url"
	"regexp"
	"strings"
)

// pages maps kinds of Git hosts to regular expressions for the paths of pull request pages. No path
// matches more than one of them.
var pages = []struct {
	host string
	path string
}{
	{GitLab, `^(.*?)/([^/]+(?:/[^/]+)+)/-/merge_requests/([0-9]+)$`},
	{BitbucketServer, `^(.*)/((?:projects|users)/[^/]+/repos/[^/]+)/pull-requests/([0-9]+)(?:/overview)?$`},
	{BitbucketCloud, `^()/([^/]+/[^/]+)/pull-requests/([0-9]+)$`},
	{GitHub, `^()/([^/]+/[^/]+)/pull/([0-9]+)$`},
	{Gitea, `^(.*)/([^/]+/[^/]+)/pulls/([0-9]+)$`},
}

// fromPage sets the host, the repository and the number from the web page of
// the pull request.
func (p *PullRequest) fromPage(address string) {
	p.Server = ""
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return
	}
	for _, page := range pages {
		found := regexp.MustCompile(page.path).FindStringSubmatch(strings.TrimSuffix(u.Path, "/"))
		if found == nil {
			continue
		}
		p.Host, p.Server, p.Repository, p.Number = page.host, u.Scheme+"://"+u.Host+found[1], found[2], number(found[3])
		if page.host == BitbucketServer {
			p.Repository = bitbucketName(found[2])
		}
		return
	}
}

// bitbucketName returns "KEY/slug" for the path of a repository that belongs to
// a project or to a user, whose project has the key "~user".
func bitbucketName(path string) string {
	parts := strings.Split(path, "/")
	if parts[0] == "users" {
		return "~" + parts[1] + "/" + parts[3]
	}
	return parts[1] + "/" + parts[3]
}

// SplitClone returns the server and the repository of a clone URL.
func SplitClone(address string) (server, repository string) {
	if !strings.Contains(address, "://") {
		user, rest, isSSH := strings.Cut(address, "@")
		host, path, hasPath := strings.Cut(rest, ":")
		if !isSSH || !hasPath || user == "" {
			return "", ""
		}
		address = "ssh://" + host + "/" + strings.TrimPrefix(path, "/")
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "", ""
	}
	server = u.Scheme + "://" + u.Host
	if u.Scheme != "https" && u.Scheme != "http" {
		server = "https://" + u.Hostname()
	}
	return server, strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git")
}
