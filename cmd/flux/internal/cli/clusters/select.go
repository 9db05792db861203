// Package clusters runs a command on the clusters of several kubeconfig contexts.
package clusters

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/config"
	"github.com/fluxkit/flux/internal/hint"
)

// Commands returns the commands that can run on several clusters, without the name of the program.
func Commands() []string {
	return []string{
		"check", "diff helmrelease", "diff kustomization", "events", "get", "history", "orphans", "reconcile", "resume",
		"stats", "status", "suspend", "trace", "tree", "ui", "version", "wait", "why",
	}
}

// SeveralError is returned before a command runs if --context selects several clusters: the command then runs once for each of them.
type SeveralError struct {
	Contexts []string
	// Command is the name of the command, and Format its -o format.
	Command, Format string
}

func (e *SeveralError) Error() string {
	return fmt.Sprintf("--context selects %d contexts", len(e.Contexts))
}

// Select returns a SeveralError if --context lists several contexts, has a pattern or is a group in the
// configuration file. In a Fork, it selects the context of the Fork.
func Select(a *app.App, cmd *cobra.Command) error {
	flag := cmd.Flags().Lookup("context")
	if flag == nil {
		return nil
	}
	if a.Context != "" {
		return cmd.Flags().Set("context", a.Context)
	}
	selection := flag.Value.String()
	if selection == "" {
		return nil
	}
	groups, err := config.ContextGroups(a.Env)
	if err != nil {
		return err
	}
	if _, group := groups[selection]; !group && !strings.ContainsAny(selection, ",^*?[") {
		return nil
	}
	contexts, exact, err := contextsOf(a, groups, selection)
	if err != nil || exact {
		return err
	}
	several := &SeveralError{Contexts: contexts, Command: strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")}
	if output := cmd.Flags().Lookup("output"); output != nil {
		several.Format = output.Value.String()
	}
	if err := supported(cmd, several); err != nil {
		return err
	}
	if once := cmd.Flags().Lookup("once"); several.Command == "ui" && once.Value.String() == "false" {
		return nil // the dashboard shows all clusters
	}
	return several
}

// Contexts returns the kubeconfig contexts that a selection matches, in its order.
func Contexts(a *app.App, selection string) ([]string, error) {
	groups, err := config.ContextGroups(a.Env)
	if err != nil {
		return nil, err
	}
	contexts, _, err := contextsOf(a, groups, selection)
	return contexts, err
}

// contextsOf returns the contexts that a selection matches. exact is true if the selection is the name of a context.
func contextsOf(a *app.App, groups map[string][]string, selection string) (contexts []string, exact bool, err error) {
	raw, err := a.Global.Kube.Raw()
	if err != nil {
		return nil, false, &clierr.ConfigError{Err: err}
	}
	if _, exact := raw.Contexts[selection]; exact {
		return []string{selection}, true, nil
	}
	contexts, err = matching(slices.Sorted(maps.Keys(raw.Contexts)), groups, selection)
	return contexts, false, err
}

// credentials lists the flags that apply to one cluster only.
var credentials = []string{
	"cluster", "user", "server", "token", "certificate-authority", "tls-server-name", "client-certificate", "client-key", "insecure-skip-tls-verify",
}

// supported returns an error if the command or one of its flags does not support several clusters.
func supported(cmd *cobra.Command, several *SeveralError) error {
	if !slices.ContainsFunc(Commands(), func(name string) bool {
		return several.Command == name || strings.HasPrefix(several.Command, name+" ")
	}) {
		return hint.Errorf("set --context to one context", "flux %s does not support several clusters", several.Command)
	}
	for _, name := range []string{"watch", "follow"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Value.String() == "true" {
			return hint.Errorf("set --context to one context", "--%s does not support several clusters", name)
		}
	}
	for _, name := range credentials {
		if cmd.Flags().Changed(name) {
			return hint.Errorf("omit --"+name+", or set --context to one context", "--%s cannot be used with several clusters", name)
		}
	}
	if !slices.Contains([]string{"", app.People, "wide", "json", "yaml"}, several.Format) {
		return hint.Errorf("use -o json or -o yaml", "-o %s does not support several clusters", several.Format)
	}
	return nil
}

// matching returns the contexts that a selection matches, in its order: names, patterns and groups, separated by commas.
// "^" excludes contexts. A selection with exclusions only starts with all contexts.
func matching(contexts []string, groups map[string][]string, selection string) ([]string, error) {
	var included, excluded []string
	only := true
	for item := range strings.SplitSeq(selection, ",") {
		item, exclude := strings.CutPrefix(strings.TrimSpace(item), "^")
		only = only && exclude
		find := func() ([]string, error) { return matches(contexts, item) }
		if patterns, group := groups[item]; group && !slices.Contains(contexts, item) {
			find = func() ([]string, error) { return matching(contexts, nil, strings.Join(patterns, ",")) }
		}
		found, err := find()
		if err != nil {
			return nil, err
		}
		if exclude {
			excluded = append(excluded, found...)
		} else {
			included = append(included, found...)
		}
	}
	if only {
		included = contexts
	}
	var selected []string
	for _, context := range included {
		if !slices.Contains(excluded, context) && !slices.Contains(selected, context) {
			selected = append(selected, context)
		}
	}
	if len(selected) == 0 {
		return nil, fmt.Errorf("--context %q excludes all contexts", selection)
	}
	return selected, nil
}

// shownContexts is the number of contexts in a hint.
const shownContexts = 10

// matches returns the contexts that a pattern matches. A pattern that matches nothing is an error: a typo in an exclusion
// must not select a cluster.
func matches(contexts []string, pattern string) ([]string, error) {
	var found []string
	for _, context := range contexts {
		match, err := config.MatchContext(pattern, context)
		if err != nil || pattern == "" {
			return nil, fmt.Errorf("invalid --context: invalid pattern %q", pattern)
		}
		if match || pattern == context {
			found = append(found, context)
		}
	}
	if len(found) == 0 {
		return nil, hint.Errorf("the contexts are "+budget.List(contexts, shownContexts), "no kubeconfig context matches %q", pattern)
	}
	return found, nil
}
