package helm

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync/atomic"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

// variesKey is the key of an atomic.Bool that is set if a rendering may differ at another time.
type variesKey struct{}

// vary records that the rendering may differ at another time.
func vary(ctx context.Context) {
	if varies, ok := ctx.Value(variesKey{}).(*atomic.Bool); ok {
		varies.Store(true)
	}
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
