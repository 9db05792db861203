// Package controller describes the Flux controllers as programs: their names, the
// directories of their binaries, and the flags for listen addresses.
package controller

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Listen is a flag for a listen address, with the default port of the controller.
type Listen struct {
	Flag string
	Port int32
}

// Store is a flag for a directory, with the default of the controller.
type Store struct {
	Flag string
	Path string
}

// Controller is a Flux controller, or flux-operator.
type Controller struct {
	Name    string
	Listens []Listen
	Stores  []Store
	// Args lists arguments that are always passed, and Env further variables of the environment.
	Args, Env []string
	// Separate is set if no Flux distribution contains it.
	Separate bool
}

// All lists the controllers in the order of the Flux documentation, and flux-operator.
var All = []Controller{
	{
		Name: "source-controller", Stores: []Store{{"storage-path", "/data"}},
		Listens: []Listen{{"metrics-addr", 8080}, {"health-addr", 9440}, {"storage-addr", 9090}},
	},
	{Name: "kustomize-controller", Listens: []Listen{{"metrics-addr", 8080}, {"health-addr", 9440}}},
	{Name: "helm-controller", Listens: []Listen{{"metrics-addr", 8080}, {"health-addr", 9440}}},
	{
		Name:    "notification-controller",
		Listens: []Listen{{"metrics-addr", 8080}, {"health-addr", 9440}, {"events-addr", 9090}, {"receiverAddr", 9292}},
	},
	{
		Name: "image-reflector-controller", Stores: []Store{{"storage-path", "/data"}},
		Listens: []Listen{{"metrics-addr", 8080}, {"health-addr", 9440}},
	},
	{Name: "image-automation-controller", Listens: []Listen{{"metrics-addr", 8080}, {"health-addr", 9440}}},
	{
		Name: "source-watcher", Stores: []Store{{"storage-path", "/data"}},
		Listens: []Listen{{"metrics-addr", 8080}, {"health-addr", 9440}, {"storage-addr", 9090}},
	},
	{
		Name: "flux-operator", Stores: []Store{{"storage-path", "/data"}}, Listens: []Listen{{"metrics-addr", 8080}, {"health-addr", 8081}},
		Args: []string{"--web-server-port=0"}, Separate: true,
		Env: []string{"GODEBUG=fips140=on"}, // without FIPS mode, it exits
	},
}

// Names lists the names of the controllers that a Flux distribution contains.
func Names() []string { return names(func(c Controller) bool { return !c.Separate }) }

func names(keep func(Controller) bool) []string {
	var all []string
	for _, c := range All {
		if keep(c) {
			all = append(all, c.Name)
		}
	}
	return all
}

// Get returns the controller called name.
func Get(name string) (Controller, bool) {
	i := slices.IndexFunc(All, func(c Controller) bool { return c.Name == name })
	if i < 0 {
		return Controller{}, false
	}
	return All[i], true
}

// Parse parses a list of controllers: all (without flux-operator), none, or comma-separated names.
func Parse(choice string) ([]string, error) {
	switch choice {
	case "all":
		return Names(), nil
	case "none", "":
		return []string{}, nil
	}
	known := names(func(Controller) bool { return true })
	asked := strings.Split(choice, ",")
	for _, name := range asked {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("unknown controller %q: must be all, none, or a list of names from %s", name, strings.Join(known, ","))
		}
	}
	// The names are in the order of All and without duplicates, so that equal lists compare equal.
	return slices.DeleteFunc(known, func(name string) bool { return !slices.Contains(asked, name) }), nil
}

// Format formats names for Parse.
func Format(names []string) string {
	switch {
	case len(names) == 0:
		return "none"
	case slices.Equal(names, Names()):
		return "all"
	}
	return strings.Join(names, ",")
}

// Find returns the directory with the binaries of the named controllers: beside, or its
// subdirectory "controllers".
func Find(beside string, names []string) (string, error) {
	if len(names) == 0 {
		return "", nil
	}
	var missing []string
	for _, dir := range []string{filepath.Join(beside, "controllers"), beside} {
		missing = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			_, err := os.Stat(filepath.Join(dir, name))
			return err == nil
		})
		if len(missing) == 0 {
			return dir, nil
		}
		if len(missing) < len(names) {
			break
		}
	}
	return "", errors.New("no binary of " + strings.Join(missing, ", ") + " beside " + beside +
		": build them with sandbox/build " + beside + " controllers operator, or run up --controllers=none")
}
