// Package controller knows the Flux controllers as programs: their names, where
// their binaries lie, and which of their flags are addresses to listen on.
package controller

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Listen is a flag that takes an address to listen on, with the port that the
// controller uses when the flag is not given.
type Listen struct {
	Flag string
	Port int32
}

// Store is a flag that takes a folder, with the one that the controller uses when
// the flag is not given.
type Store struct {
	Flag string
	Path string
}

// Controller is one of Flux's controllers.
type Controller struct {
	Name    string
	Listens []Listen
	Stores  []Store
}

// All lists the controllers in the order in which Flux names them.
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

// Parse reads a choice of controllers: all, none, or names between commas.
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
			return nil, fmt.Errorf("unknown controller %q: give all, none, or some of %s", name, strings.Join(Names(), ","))
		}
	}
	// In the order of All and each once, so that equal choices compare equal.
	return slices.DeleteFunc(Names(), func(name string) bool { return !slices.Contains(asked, name) }), nil
}

// Format writes a choice as Parse reads it.
func Format(names []string) string {
	switch len(names) {
	case 0:
		return "none"
	case len(All):
		return "all"
	}
	return strings.Join(names, ",")
}

// Find returns the folder with the binaries of the named controllers, beside
// this program or in the folder "controllers" there.
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
