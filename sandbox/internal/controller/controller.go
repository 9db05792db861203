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

// Controller is a Flux controller.
type Controller struct {
	Name    string
	Listens []Listen
	Stores  []Store
}

// All lists the controllers in the order of the Flux documentation.
var All = []Controller{
	{"source-controller", []Listen{{"metrics-addr", 8080}, {"health-addr", 9440}, {"storage-addr", 9090}}, []Store{{"storage-path", "/data"}}},
	{"kustomize-controller", []Listen{{"metrics-addr", 8080}, {"health-addr", 9440}}, nil},
	{"helm-controller", []Listen{{"metrics-addr", 8080}, {"health-addr", 9440}}, nil},
	{"notification-controller", []Listen{
		{"metrics-addr", 8080}, {"health-addr", 9440}, {"events-addr", 9090}, {"receiverAddr", 9292},
	}, nil},
	{"image-reflector-controller", []Listen{{"metrics-addr", 8080}, {"health-addr", 9440}}, []Store{{"storage-path", "/data"}}},
	{"image-automation-controller", []Listen{{"metrics-addr", 8080}, {"health-addr", 9440}}, nil},
	{"source-watcher", []Listen{{"metrics-addr", 8080}, {"health-addr", 9440}, {"storage-addr", 9090}}, []Store{{"storage-path", "/data"}}},
}

// Names lists the names of all controllers.
func Names() []string {
	names := make([]string, len(All))
	for i, c := range All {
		names[i] = c.Name
	}
	return names
}

// Get returns the controller called name.
func Get(name string) (Controller, bool) {
	i := slices.IndexFunc(All, func(c Controller) bool { return c.Name == name })
	if i < 0 {
		return Controller{}, false
	}
	return All[i], true
}

// Parse parses a list of controllers: all, none, or comma-separated names.
func Parse(choice string) ([]string, error) {
	switch choice {
	case "all":
		return Names(), nil
	case "none", "":
		return []string{}, nil
	}
	asked := strings.Split(choice, ",")
	for _, name := range asked {
		if _, ok := Get(name); !ok {
			return nil, fmt.Errorf("unknown controller %q: must be all, none, or a list of names from %s", name, strings.Join(Names(), ","))
		}
	}
	// The names are in the order of All and without duplicates, so that equal lists
	// compare equal.
	return slices.DeleteFunc(Names(), func(name string) bool { return !slices.Contains(asked, name) }), nil
}

// Format formats names for Parse.
func Format(names []string) string {
	switch len(names) {
	case 0:
		return "none"
	case len(All):
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
		": build them with sandbox/build " + beside + " controllers, or run up --controllers=none")
}
