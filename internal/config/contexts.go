package config

import (
	"fmt"
	"path"
	"strings"

	"github.com/spf13/viper"
)

// contextGroups is the name of the setting for groups of kubeconfig contexts.
const contextGroups = "context-groups"

// ContextGroups returns the groups of kubeconfig contexts in the configuration file: the patterns of each group by its name.
func ContextGroups(env func(string) string) (map[string][]string, error) {
	var entries []struct {
		Name     string
		Contexts []string
	}
	file, err := readList(env, contextGroups, "name, contexts", &entries)
	if err != nil {
		return nil, err
	}
	groups := map[string][]string{}
	for i, e := range entries {
		_, twice := groups[e.Name]
		switch {
		case e.Name == "" || strings.ContainsAny(e.Name, ",^*?["):
			return nil, fmt.Errorf("%s: %s[%d].name: invalid name %q: it must not be empty or contain any of , ^ * ? [", file, contextGroups, i, e.Name)
		case twice:
			return nil, fmt.Errorf("%s: %s[%d].name: duplicate group %q", file, contextGroups, i, e.Name)
		case len(e.Contexts) == 0:
			return nil, fmt.Errorf("%s: %s[%d].contexts: group %q has no contexts", file, contextGroups, i, e.Name)
		}
		groups[e.Name] = e.Contexts
	}
	return groups, nil
}

// MatchContext reports whether a pattern matches a kubeconfig context. Patterns have the syntax of [path.Match],
// except that "*" and "?" also match "/", which context names may contain.
func MatchContext(pattern, context string) (bool, error) {
	flat := strings.NewReplacer("/", "|")
	return path.Match(flat.Replace(pattern), flat.Replace(context))
}

// readList decodes a setting that is a list of objects with the given fields. It returns the path of the file.
func readList(env func(string) string, setting, fields string, into any) (file string, err error) {
	v := viper.New()
	file = Path(env)
	if err := read(v, file); err != nil {
		return file, err
	}
	if err := v.UnmarshalKey(setting, into); err != nil {
		return file, fmt.Errorf("%s: %s: use a list of {%s}: %w", file, setting, fields, err)
	}
	return file, nil
}
