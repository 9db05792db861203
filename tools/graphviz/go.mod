module github.com/fluxkit/flux/tools/graphviz

go 1.26.0

require github.com/goccy/go-graphviz v0.2.10

require github.com/tetratelabs/wazero v1.10.1 // indirect
