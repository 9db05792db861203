package controller

import (
	"fmt"
	"regexp"
	"strings"
)

// The allowed values of flags, as regular expressions. None of them matches a path, an address or a command, which only
// the sandbox sets.
const (
	boolean    = `(true|false)?`
	number     = `[0-9]{1,9}(\.[0-9]{1,6})?`
	duration   = `([0-9]{1,9}(\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h)){1,6}`
	name       = `[A-Za-z0-9][-A-Za-z0-9._]{0,252}`
	selector   = `[-A-Za-z0-9 !=,()._/]{0,1000}`
	list       = `[-A-Za-z0-9@./,]{0,1000}`
	gates      = `([A-Za-z0-9]+=(true|false),?)+`
	serviceURL = `(http://[a-z0-9][-a-z0-9]*\.[a-z0-9][-a-z0-9]*\.svc(\.[a-z0-9][-a-z0-9]*)*\.?(:[0-9]{1,5})?/?)?`
	service    = `[a-z0-9][-a-z0-9]*\.[a-z0-9][-a-z0-9]*\.svc(\.[a-z0-9][-a-z0-9]*)*\.?(:[0-9]{1,5})?`
)

// allowed lists the flags that a pod may set, by the format of their values. A flag has the same meaning in all
// controllers.
var allowed = []struct{ form, flags string }{
	{boolean, `enable-leader-election leader-election-release-on-cancel watch-all-namespaces no-cross-namespace-refs
		no-remote-bases export-http-path-metrics`},
	{number, `artifact-retention-records concurrent concurrent-ssa helm-cache-max-size helm-chart-file-max-size
		helm-chart-max-size helm-index-max-size interval-jitter-percentage kube-api-burst kube-api-qps token-cache-max-size
		http-retry gc-interval storage-compression-threshold storage-value-log-file-size oom-watch-memory-threshold`},
	{duration, `artifact-retention-ttl helm-cache-purge-interval helm-cache-ttl leader-election-lease-duration
		leader-election-renew-deadline leader-election-retry-period max-retry-delay min-retry-delay requeue-dependency
		token-cache-max-duration graceful-shutdown-timeout http-timeout oom-watch-interval rate-limit-interval
		reconciliation-timeout reporting-interval`},
	{name, `default-service-account default-decryption-service-account default-kubeconfig-service-account
		default-workload-identity-service-account override-manager
		sops-age-secret sops-vault-configmap`},
	{list, `artifact-digest-algo snapshot-digest-algo ssh-hostkey-algos ssh-kex-algos custom-apply-stage-kinds`},
	{selector, `watch-label-selector watch-configs-label-selector`},
	{gates, `feature-gates`},
	{`json|console`, `log-encoding`},
	{`trace|debug|info|error`, `log-level`},
	{serviceURL, `events-addr`},
	{service, `storage-adv-addr`},
}

// rejected maps the other flags of the controllers to the reason why a pod may not set them.
var rejected = map[string]string{
	"insecure-kubeconfig-exec":      "it runs programs on this machine",
	"insecure-kubeconfig-tls":       "it applies to other clusters only",
	"oom-watch-current-memory-path": "it reads a file on this machine",
	"oom-watch-max-memory-path":     "it reads a file on this machine",
	"web-config":                    "it reads a file on this machine",
	"web-config-secret-name":        "the sandbox does not serve the web page",
	"web-server-only":               "the sandbox does not serve the web page",
	"web-server-port":               "the sandbox does not serve the web page",
}

// Flag is a flag of a controller.
type Flag struct {
	// Known is set if a controller has the flag.
	Known bool
	// Boolean is set if the flag has no separate value argument.
	Boolean bool
	// Refused is the reason why a pod may not set the flag, or empty.
	Refused string

	form string
}

// FindFlag returns the flag called name.
func FindFlag(name string) Flag {
	for _, a := range allowed {
		for flag := range strings.FieldsSeq(a.flags) {
			if flag == name {
				return Flag{Known: true, Boolean: a.form == boolean, form: a.form}
			}
		}
	}
	reason, known := rejected[name]
	return Flag{Known: known, Boolean: strings.HasPrefix(name, "insecure-") || name == "web-server-only", Refused: reason}
}

// Check returns the reason why a pod may not set the flag to a value, or "" if it may.
func (f Flag) Check(value string) string {
	switch {
	case f.Refused != "":
		return f.Refused
	case !f.Known:
		return "the sandbox does not support it"
	case !regexp.MustCompile(`\A(?:` + f.form + `)\z`).MatchString(value):
		return fmt.Sprintf("the sandbox does not support the value %q", value)
	}
	return ""
}
