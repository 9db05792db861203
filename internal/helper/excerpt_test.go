package helper

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestExcerpt(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2*excerptMax)
	for name, c := range map[string]struct {
		written []string
		want    []string
	}{
		"nothing":                   {nil, nil},
		"lines in parts":            {[]string{"on", "e\ntw", "o", "\n"}, []string{"one", "two"}},
		"a line without an end":     {[]string{"one\ntwo"}, []string{"one", "two"}},
		"each line once":            {[]string{"one\n\ntwo\none\n", "one\n"}, []string{"one", "two"}},
		"a line that is too long":   {[]string{"one\n", long + "\n", "two\n"}, []string{"one", "two"}},
		"a long line, and no more":  {[]string{long}, []string{long[:excerptMax]}},
		"the stack of a crash":      {[]string{"panic: x\n\ngoroutine 1 [running]:\n"}, nil},
		"memory that is not enough": {[]string{"fatal error: out of memory\n"}, nil},
	} {
		var e excerpt
		for _, text := range c.written {
			if n, err := fmt.Fprint(&e, text); n != len(text) || err != nil {
				t.Errorf("%s: wrote %d bytes, %v", name, n, err)
			}
		}
		var got []string
		e.report(func(line string) { got = append(got, line) })
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
