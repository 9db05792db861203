// Package graphviz pins the module with the WebAssembly build of Graphviz that
// flux-helper embeds.
package graphviz

import (
	_ "github.com/goccy/go-graphviz/cdt"
)
