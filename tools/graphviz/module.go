// Package graphviz pins the module from which flux-helper takes Graphviz as WebAssembly.
package graphviz

import (
	_ "github.com/goccy/go-graphviz/cdt"
)
