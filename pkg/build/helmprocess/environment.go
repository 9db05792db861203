package helmprocess

// forCharts are the variables that a helper for charts gets: where files are, how the
// network is reached, and what 'docker login' left. Tokens of a pipeline are
// none of its business, since charts decide what it does.
var forCharts = []string{
	"PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "DOCKER_CONFIG", "REGISTRY_AUTH_FILE",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "GODEBUG", "GOMEMLIMIT",
	"USERPROFILE", "LOCALAPPDATA", "SystemRoot", "TEMP", "TMP", // Windows
}

// chartEnvironment returns the variables of a helper for charts.
func chartEnvironment(lookup func(string) (string, bool)) []string {
	env := []string{}
	for _, name := range forCharts {
		if value, ok := lookup(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
