package helm

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/sprig/v3"

	"github.com/fluxkit/flux/pkg/build/charts"
)

// repeatable are the functions of sprig that always return the same for the same arguments, apart from those of observed. Helm
// removes or replaces env, expandenv and getHostByName.
const repeatable = `abbrev abbrevboth add add1 add1f addf adler32sum all any append atoi b32dec b32enc b64dec b64enc base biggest camelcase cat
ceil chunk clean coalesce compact concat contains dateModify date_modify deepCopy deepEqual default dict dig dir div divf duration empty env
expandenv ext fail first float64 floor fromJson get getHostByName has hasKey hasPrefix hasSuffix hello indent initial initials int int64 isAbs
join kebabcase keys kindIs kindOf last list lower max maxf merge mergeOverwrite min minf mod mul mulf mustAppend mustChunk mustCompact
mustDateModify mustDeepCopy mustFirst mustFromJson mustHas mustInitial mustLast mustMerge mustMergeOverwrite mustPrepend mustPush mustRegexFind
mustRegexFindAll mustRegexMatch mustRegexReplaceAll mustRegexReplaceAllLiteral mustRegexSplit mustRest mustReverse mustSlice mustToJson
mustToPrettyJson mustToRawJson mustUniq mustWithout must_date_modify nindent nospace omit osBase osClean osDir osExt osIsAbs pick pluck plural
prepend push quote regexFind regexFindAll regexMatch regexQuoteMeta regexReplaceAll regexReplaceAllLiteral regexSplit repeat replace rest
reverse round semver semverCompare seq set sha1sum sha256sum sha512sum slice snakecase sortAlpha split splitList splitn squote sub subf substr
swapcase ternary title toDecimal toJson toPrettyJson toRawJson toString toStrings trim trimAll trimPrefix trimSuffix trimall trunc tuple typeIs
typeIsLike typeOf uniq unixEpoch unset until untilStep untitle upper urlJoin urlParse values without wrap wrapWith`

// TestFunctions checks that each function of sprig is known to be repeatable, or not to be.
func TestFunctions(t *testing.T) {
	t.Parallel()
	want := slices.Sorted(slices.Values(slices.Concat(varying, strings.Fields(repeatable))))
	if got := slices.Sorted(maps.Keys(sprig.TxtFuncMap())); !slices.Equal(got, want) {
		t.Errorf("the functions of sprig are\n%v, want\n%v", got, want)
	}
}

// TestVaries renders charts that may be rendered differently next time, and near misses.
func TestVaries(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]bool{
		"{{ .Values.a }}":                                   false,
		"{{/* now */}}x: now randAlphaNum":                  false,
		"{{ if false }}{{ now }}{{ end }}x":                 false,
		"{{ \"1h\" | duration }}":                           false,
		"{{ keys .Values | sortAlpha }}":                    false,
		"{{ keys .Values }}{{ values .Values }}":            false,
		"{{ lookup \"v1\" \"Secret\" \"a\" \"b\" }}":        false,
		"{{ getHostByName \"example.com\" }}":               false,
		"{{ now | unixEpoch }}":                             true,
		"{{ date \"2006\" 0 }}":                             true,
		"{{ tpl \"{{ randAlphaNum 5 }}\" . }}":              true,
		"{{ include \"named\" . }}":                         true,
		"{{ (genCA \"ca\" 1).Cert | trunc 5 }}":             true,
		"{{ htpasswd \"a\" \"b\" }}":                        true,
		"{{ uuidv4 }}":                                      true,
		"{{ shuffle \"abc\" }}":                             true,
		"{{ randInt 1 5 }}":                                 true,
		"{{ toDate \"2006-01-02\" \"2026-01-01\" }}":        true,
		"{{ derivePassword 1 \"long\" \"a\" \"b\" \"c\" }}": true,
	} {
		rendered, err := render(t, template, false)
		if err != nil {
			t.Errorf("%s: %v", template, err)
		} else if rendered.Varies != want {
			t.Errorf("%s: varies: %v, want %v", template, rendered.Varies, want)
		}
	}
}

// render renders a chart with a template in a comment.
func render(t *testing.T, template string, reverse bool) (*charts.Rendered, error) {
	t.Helper()
	return (&Renderer{}).Render(context.Background(), charts.Release{Name: "web", Namespace: "apps", Reverse: reverse, Values: map[string]any{"a": "x", "b": "y", "c": "z"}, Chart: charts.Chart{
		Folder: "web", Files: map[string][]byte{
			"web/Chart.yaml":             []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n"),
			"web/templates/_helpers.tpl": []byte("{{ define \"named\" }}{{ randAlpha 3 }}{{ end }}"),
			"web/templates/a.yaml":       []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata:\n  a: |-\n    " + template + "\n"),
		},
	}})
}

// TestOrder checks that the order of the keys of maps is always the same, and reversed in the second rendering.
func TestOrder(t *testing.T) {
	t.Parallel()
	for reverse, want := range map[bool]string{false: "[a b c][x y z]", true: "[c b a][z y x]"} {
		for range 3 {
			rendered, err := render(t, "{{ keys (omit .Values \"global\") }}{{ values (omit .Values \"global\") }}", reverse)
			if err != nil || !strings.Contains(rendered.Manifests[0], want) {
				t.Errorf("reverse %v: %v, want %s: %v", reverse, rendered, want, err)
			}
		}
	}
}
