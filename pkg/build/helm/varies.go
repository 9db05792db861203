package helm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync/atomic"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
)

// notesKey is the key of the notes of a rendering.
type notesKey struct{}

// notes records whether a rendering may differ at another time, and whether a template looked up an object without a finder.
type notes struct{ varies, looked atomic.Bool }

// vary records that the rendering may differ at another time.
func vary(ctx context.Context) {
	if note, ok := ctx.Value(notesKey{}).(*notes); ok {
		note.varies.Store(true)
	}
}

// lookup is the lookup function of templates without a finder. It finds nothing, as in "helm template".
func (n *notes) lookup(_, _, _, _ string) (map[string]any, error) {
	n.looked.Store(true)
	return map[string]any{}, nil
}

// readable returns a digest of the values and templates of a chart and of its dependencies, and of their other files if a template
// or a value contains .Files.
func readable(c *chart.Chart, values common.Values) (string, error) {
	charts := []*chart.Chart{c}
	for i := 0; i < len(charts); i++ {
		charts = append(charts, charts[i].Dependencies()...)
	}
	content := []any{values["Values"]}
	for _, c := range charts {
		for _, f := range c.Templates {
			content = append(content, f.Name, string(f.Data))
		}
	}
	text, err := json.Marshal(content)
	if err == nil && bytes.Contains(text, []byte(".Files")) {
		for _, c := range charts {
			for _, f := range c.Files {
				content = append(content, f.Name, f.Data)
			}
		}
		text, err = json.Marshal(content)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text)), err
}

// varying lists the template functions whose results depend on the time, the time zone or random numbers, or are secret.
var varying = []string{
	"ago", "bcrypt", "buildCustomCert", "date", "dateInZone", "date_in_zone", "decryptAES", "derivePassword", "durationRound", "encryptAES",
	"genCA", "genCAWithKey", "genPrivateKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey",
	"htmlDate", "htmlDateInZone", "htpasswd", "mustToDate", "now", "randAlpha", "randAlphaNum", "randAscii", "randBytes", "randInt", "randNumeric",
	"shuffle", "toDate", "uuidv4",
}

// observed returns template functions that record that a rendering varies. Its keys and values functions sort the map
// keys, whose order is random in Helm.
func observed(ctx context.Context, reverse bool) template.FuncMap {
	functions := template.FuncMap{}
	for name, function := range sprig.TxtFuncMap() {
		if slices.Contains(varying, name) {
			functions[name] = noting(function, func() { vary(ctx) })
		}
	}
	if note, ok := ctx.Value(notesKey{}).(*notes); ok {
		functions["lookup"] = note.lookup
	}
	functions["keys"] = func(all ...map[string]any) []string {
		keys := []string{}
		for _, m := range all {
			keys = append(keys, ordered(m, reverse)...)
		}
		return keys
	}
	functions["values"] = func(m map[string]any) []any {
		values := []any{}
		for _, key := range ordered(m, reverse) {
			values = append(values, m[key])
		}
		return values
	}
	return functions
}

func ordered(m map[string]any, reverse bool) []string {
	keys := slices.Sorted(maps.Keys(m))
	if reverse {
		slices.Reverse(keys)
	}
	return keys
}

// noting returns a function that calls note before it calls another function.
func noting(function any, note func()) any {
	f := reflect.ValueOf(function)
	return reflect.MakeFunc(f.Type(), func(in []reflect.Value) []reflect.Value {
		note()
		if f.Type().IsVariadic() {
			return f.CallSlice(in)
		}
		return f.Call(in)
	}).Interface()
}
