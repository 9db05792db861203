package output_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/terminal/output"
)

const (
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	plain  = "\x1b[0m"
	faint  = "\x1b[2m"
	bright = "\x1b[22m"
)

func states() output.Table {
	return output.Table{
		Headers: []string{"NAME", "REVISION", "SUSPENDED", "READY", "MESSAGE"},
		Rows: [][]string{
			{"app", "main@sha1:6f9a1b2c", "False", "True", "Applied revision: main@sha1:6f9a1b2c"},
			{"broken", "", "False", "False", "kustomize build failed: collecting all resources: no such file"},
			{"busy", "main@sha1:6f9a1b2c", "False", "Unknown", "at \x1b[5mwork"},
		},
	}
}

// TestLongNames cuts names before the readiness and the beginning of the message.
func TestLongNames(t *testing.T) {
	t.Parallel()
	table := output.Table{
		Headers: []string{"NAMESPACE", "NAME", "REVISION", "SUSPENDED", "READY", "MESSAGE"},
		Rows: [][]string{{
			"team-payments", "kustomization/a-long-name-of-an-application-that-users-can-shorten", "main@sha1:6f9a1b2c", "False", "False",
			"kustomize build failed: collecting all resources: no such file",
		}},
	}
	events := output.Table{
		Headers: []string{"LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"},
		Rows: [][]string{{
			"2m", "Warning", "ReconciliationFailed", "Kustomization/a-long-name-of-an-application-that-users-can-shorten", "health check failed after 30s",
		}},
	}
	for want, table := range map[string]output.Table{
		"team-payments  kustomi…-can-shorten  main@6f9a1b2c  False  kustomize build fail…\n": table,
		"2m  Warning  ReconciliationFailed  Kustomi…-can-shorten  health check failed af…\n": events,
	} {
		var b strings.Builder
		if err := table.Show(&b, false, output.Screen{Width: 80}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		screen output.Screen
		header bool
		want   string
	}{
		"as wide as it gets": {output.Screen{}, true, `
NAME    REVISION            SUSPENDED  READY    MESSAGE
app     main@sha1:6f9a1b2c  False      True     Applied revision: main@sha1:6f9a1b2c
broken                      False      False    kustomize build failed: collecting all resources: no such file
busy    main@sha1:6f9a1b2c  False      Unknown  at \x1b[5mwork
`},
		"long messages cut": {output.Screen{Width: 80}, false, `
app     main@sha1:6f9a1b2c  False  True     Applied revision: main@sha1:6f9a1b2c
broken                      False  False    kustomize build failed: collecting…
busy    main@sha1:6f9a1b2c  False  Unknown  at \x1b[5mwork
`},
		"suspension and revisions give way": {output.Screen{Width: 60}, true, `
NAME    REVISION       READY    MESSAGE
app     main@6f9a1b2c  True     Applied revision: main@…
broken                 False    kustomize build failed:…
busy    main@6f9a1b2c  Unknown  at \x1b[5mwork
`},
		"long messages folded": {output.Screen{Width: 90, Fold: true}, true, `
NAME    REVISION            SUSPENDED  READY    MESSAGE
app     main@sha1:6f9a1b2c  False      True     Applied revision: main@sha1:6f9a1b2c
broken                      False      False    kustomize build failed: collecting all
                                                resources: no such file
busy    main@sha1:6f9a1b2c  False      Unknown  at \x1b[5mwork
`},
		"or put below where there is no room": {output.Screen{Width: 60, Fold: true}, true, `
NAME    REVISION            SUSPENDED  READY
app     main@sha1:6f9a1b2c  False      True
    Applied revision: main@sha1:6f9a1b2c
broken                      False      False
    kustomize build failed: collecting all resources: no
    such file
busy    main@sha1:6f9a1b2c  False      Unknown
    at \x1b[5mwork
`},
		"too narrow for anything": {output.Screen{Width: 30}, true, `
NAME    REVISION  READY    MESSAGE
app     6f9a1b2c  True     Applied revision: main@…
broken            False    kustomize build failed:…
busy    6f9a1b2c  Unknown  at \x1b[5mwork
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			if err := states().Show(&b, test.header, test.screen); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, "\n"+b.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestShowPaints(t *testing.T) {
	t.Parallel()
	table := output.Table{
		Headers: []string{"NAME", "SUSPENDED", "READY", "MESSAGE"},
		Rows: [][]string{
			{"a", "False", "True", "fine"},
			{"b", "False", "False", "False"},
			{"c", "False", "Unknown", "busy"},
			{"d", "True", "True", ""},
			{"e", "True", "False", "it broke"},
		},
	}
	want := `NAME  SUSPENDED  READY    MESSAGE
a     False      True     fine
b     False      ` + red + `False` + plain + `    False
c     False      ` + yellow + `Unknown` + plain + `  busy
` + faint + `d` + bright + `     ` + faint + `True` + bright + `       ` + faint + `True` + bright + `
` + faint + `e` + bright + `     ` + faint + `True` + bright + `       ` + red + `False` + plain + `    ` + faint + `it broke` + bright + `
`
	var b strings.Builder
	if err := table.Show(&b, true, output.Screen{Color: true}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("%s\n%q", diff, b.String())
	}
}

// TestStreamKeepsItsColumns adds rows that fit the columns and rows that do not.
func TestStreamKeepsItsColumns(t *testing.T) {
	t.Parallel()
	rows := [][]string{
		{"app", "", "False", "False", "waiting to be reconciled"},
		{"app", "main@sha1:6f9a1b2c", "False", "Unknown", "working"},
		{"an-application-with-a-long-name", "main@sha1:6f9a1b2c", "False", "True", "Applied revision: main@sha1:6f9a1b2c"},
		{"app", "main@sha1:6f9a1b2c", "False", "True", "Applied revision: main@sha1:6f9a1b2c"},
	}
	for name, test := range map[string]struct {
		screen   output.Screen
		terminal bool
		want     string
	}{
		"piped": {want: "\n" +
			"NAME            \tREVISION            \tSUSPENDED\tREADY  \tMESSAGE \n" +
			"app             \t                    \tFalse    \tFalse  \twaiting to be reconciled\t\n" +
			"app             \tmain@sha1:6f9a1b2c  \tFalse    \tUnknown\tworking\t\n" +
			"an-application-with-a-long-name\tmain@sha1:6f9a1b2c  \tFalse    \tTrue   \tApplied revision: main@sha1:6f9a1b2c\t\n" +
			"app                            \tmain@sha1:6f9a1b2c  \tFalse    \tTrue   \tApplied revision: main@sha1:6f9a1b2c\t\n"},
		"on a terminal": {output.Screen{Width: 80}, true, `
NAME              REVISION              READY    MESSAGE
app                                     False    waiting to be reconciled
app               main@sha1:6f9a1b2c    Unknown  working
an-applic…n-with-a-long-name  main@6f9a1b2c    True     Applied revision: main@…
app                           main@6f9a1b2c    True     Applied revision: main@…
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			s := output.NewStream(&b, states().Headers, func() (output.Screen, bool) { return test.screen, test.terminal })
			if err := s.Begin(rows[:1], true); err != nil {
				t.Fatal(err)
			}
			for _, row := range rows[1:] {
				if err := s.Add(row); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(test.want, "\n"+b.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFit narrows a wide table step by step: a suspension, names and revisions stay visible.
func TestFit(t *testing.T) {
	t.Parallel()
	table := output.Table{
		Headers: []string{"NAMESPACE", "NAME", "REVISION", "SUSPENDED", "READY", "MESSAGE"},
		Rows: [][]string{
			{"apps", "shop-frontend", "refs/heads/main@sha1:6f9a1b2c", "True", "True", "Applied revision: refs/heads/main@sha1:6f9a1b2c"},
			{"apps", "shop-backend", "v1.2.3@sha256:83a3c595", "False", "False", "not found"},
		},
	}
	for width, want := range map[int]string{
		100: `
NAMESPACE  NAME           REVISION                       SUSPENDED  READY  MESSAGE
apps       shop-frontend  refs/heads/main@sha1:6f9a1b2c  True       True   Applied revision: refs/h…
apps       shop-backend   v1.2.3@sha256:83a3c595         False      False  not found
`,
		96: `
NAMESPACE  NAME           REVISION                       SUSP   READY  MESSAGE
apps       shop-frontend  refs/heads/main@sha1:6f9a1b2c  True   True   Applied revision: refs/…
apps       shop-backend   v1.2.3@sha256:83a3c595         False  False  not found
`,
		80: `
NAMESPACE  NAME           REVISION                  SUSP   READY  MESSAGE
apps       shop-frontend  refs/heads/main@6f9a1b2c  True   True   Applied revis…
apps       shop-backend   v1.2.3@83a3c595           False  False  not found
`,
		60: `
NAMESPACE  NAME           REVISION  SUSP   READY  MESSAGE
apps       shop-frontend  6f9a1b2c  True   True   Applie…
apps       shop-backend   v1.2.3    False  False  not fo…
`,
	} {
		var b strings.Builder
		if err := table.Show(&b, true, output.Screen{Width: width}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, "\n"+b.String()); diff != "" {
			t.Errorf("%d columns: %s", width, diff)
		}
	}
}
