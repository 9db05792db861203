// Package engine lays out graphs with Graphviz, which runs as WebAssembly without access to files, the environment or
// the network.
package engine

import (
	"context"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/graphviz"
)

// Job is the job that Engine runs.
const Job = graphviz.Job

// errNotBuilt is returned by a program that was built without graphviz.wasm, which is copied from a Go module and not
// part of this repository.
var errNotBuilt = errors.New("this flux-helper was built without Graphviz: build it with `make build` instead of `go install`")

// The directory always has a README, so that a clean clone builds.
//
//go:embed graphviz
var files embed.FS

const (
	// memory limits the memory of Graphviz. A graph of 5000 objects requires 40 MiB.
	memory = 128 << 20
	// page is the size of a WebAssembly memory page.
	page = 64 << 10
	// compilers is the number of functions that are compiled concurrently.
	compilers = 4
	// clearance is the space on each side of a node, because curves can touch the nodes that they pass.
	clearance = 3
)

// Engine runs Graphviz. It compiles the code once.
type Engine struct {
	compile func() (*compiled, error)
}

// compiled is Graphviz compiled for this processor.
type compiled struct {
	runtime wazero.Runtime
	code    wazero.CompiledModule
}

// New returns an engine.
func New() *Engine { return &Engine{sync.OnceValues(compile)} }

// compile compiles Graphviz, with the functions that it imports.
func compile() (*compiled, error) {
	code, err := files.ReadFile("graphviz/graphviz.wasm")
	if err != nil {
		return nil, errNotBuilt
	}
	ctx := experimental.WithCompilationWorkers(context.Background(), compilers)
	c := &compiled{runtime: wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithMemoryLimitPages(memory/page))}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, c.runtime); err != nil {
		return nil, err
	}
	if c.code, err = c.runtime.CompileModule(ctx, code); err != nil {
		return nil, err
	}
	// Plugin callbacks implemented in Go are not used.
	callbacks := c.runtime.NewHostModuleBuilder("env")
	for _, f := range c.code.ImportedFunctions() {
		if module, name, _ := f.Import(); module == "env" {
			unused := api.GoFunc(func(context.Context, []uint64) { panic("unexpected call of " + name) })
			callbacks = callbacks.NewFunctionBuilder().WithGoFunction(unused, f.ParamTypes(), f.ResultTypes()).Export(name)
		}
	}
	_, err = callbacks.Instantiate(ctx)
	return c, err
}

// Layout lays out a graph.
func (e *Engine) Layout(ctx context.Context, g graphviz.Graph) (graphviz.Layout, error) {
	text, err := dot(g)
	if err != nil {
		return graphviz.Layout{}, err
	}
	c, err := e.compile()
	if err != nil {
		return graphviz.Layout{}, err
	}
	module, err := c.runtime.InstantiateModule(ctx, c.code, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		return graphviz.Layout{}, fmt.Errorf("starting Graphviz: %w", err)
	}
	defer func() { _ = module.Close(ctx) }() // frees memory only
	p := &program{ctx: ctx, module: module}
	output, err := p.draw(text)
	if err != nil {
		return graphviz.Layout{}, fmt.Errorf("laying out the graph with Graphviz: %w", err)
	}
	return parse(output, g)
}

// dot returns the graph in the DOT language. It contains only numbers, so that no text of the input is passed to
// Graphviz.
func dot(g graphviz.Graph) (string, error) {
	const points = 72 // of an inch
	var b strings.Builder
	b.WriteString("digraph {\nrankdir=LR\nnodesep=0.15\nranksep=0.9\nnode [shape=box, fixedsize=true, label=\"\"]\nedge [arrowsize=0.7, tailport=e, headport=w]\n")
	for i, n := range g.Nodes {
		fmt.Fprintf(&b, "%d [width=%.4f, height=%.4f]\n", i, (n.Width+2*clearance)/points, (n.Height+2*clearance)/points)
	}
	for i, e := range g.Edges {
		if min(e.From, e.To) < 0 || max(e.From, e.To) >= len(g.Nodes) {
			return "", fmt.Errorf("edge %d connects nodes that do not exist", i)
		}
		fmt.Fprintf(&b, "%d -> %d [id=%d]\n", e.From, e.To, i)
	}
	return b.String() + "}\n", nil
}

// program is a running Graphviz. After the first error, its functions do nothing.
type program struct {
	ctx    context.Context // the context of a single call of Layout
	module api.Module
	err    error
}

// draw lays out a graph and returns it as JSON.
func (p *program) draw(text string) ([]byte, error) {
	// The plugin table contains pairs of a name and an address, and ends with zeros.
	var plugins []byte
	for _, name := range []string{"gvplugin_dot_layout_LTX_library", "gvplugin_core_LTX_library"} {
		plugins = binary.LittleEndian.AppendUint32(plugins, p.store([]byte(name+"\x00")))
		plugins = binary.LittleEndian.AppendUint32(plugins, p.global(name))
	}
	table := p.store(append(plugins, make([]byte, 8)...))
	gvc := p.call("gvContextPlugins", table, 0)
	graph := p.call("agmemread", p.store([]byte(text+"\x00")))
	if code := p.call("gvLayout", gvc, graph, p.store([]byte("dot\x00"))); code != 0 {
		p.fail(fmt.Errorf("error %d", int32(code)))
	}
	result := p.store(make([]byte, 8)) // an address and a length
	if code := p.call("gvRenderData", gvc, graph, p.store([]byte("json\x00")), result, result+4); code != 0 {
		p.fail(fmt.Errorf("error %d", int32(code)))
	}
	header := p.load(result, 8)
	if p.err != nil {
		return nil, p.err
	}
	return p.load(binary.LittleEndian.Uint32(header), binary.LittleEndian.Uint32(header[4:])), p.err
}

func (p *program) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// call calls a function of Graphviz.
func (p *program) call(name string, arguments ...uint32) uint32 {
	if p.err != nil {
		return 0
	}
	f := p.module.ExportedFunction(name)
	if f == nil {
		p.fail(fmt.Errorf("no function %s", name))
		return 0
	}
	stack := make([]uint64, len(arguments))
	for i, a := range arguments {
		stack[i] = uint64(a)
	}
	results, err := f.Call(p.ctx, stack...)
	if exit := (*sys.ExitError)(nil); errors.As(err, &exit) {
		p.fail(errors.New("it exited, probably because it requires more than " + budget.Size(memory) + " of memory"))
		return 0
	}
	if err != nil {
		// The first line is the error, and the other lines are the stack trace.
		first, _, _ := strings.Cut(err.Error(), "\n")
		p.fail(errors.New(first))
		return 0
	}
	return uint32(results[0])
}

func (p *program) global(name string) uint32 {
	g := p.module.ExportedGlobal(name)
	if g == nil {
		p.fail(fmt.Errorf("no variable %s", name))
		return 0
	}
	return uint32(g.Get())
}

// store copies data to the memory of Graphviz and returns its address.
func (p *program) store(data []byte) uint32 {
	address := p.call("malloc", uint32(len(data)))
	if p.err == nil && (address == 0 || !p.module.Memory().Write(address, data)) {
		p.fail(errors.New("out of memory"))
	}
	return address
}

func (p *program) load(address, size uint32) []byte {
	if p.err != nil {
		return nil
	}
	data, ok := p.module.Memory().Read(address, size)
	if !ok {
		p.fail(errors.New("invalid result"))
	}
	return data
}
