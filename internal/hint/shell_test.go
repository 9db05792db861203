package hint_test

import (
	"os/exec"
	"testing"

	"github.com/fluxkit/flux/internal/hint"
)

// TestQuote gives quoted words to a shell, which has to print them as they were.
func TestQuote(t *testing.T) {
	t.Parallel()
	for _, word := range []string{
		"main", "feature/a_b-1.2", "user@host:path", "", " ", "a b", "$(touch x);'", "`id`", "$HOME", "a;b", "a|b", "a&b", "a>b", "*", "?", "[a]", "~", "#a", "!a",
		`\`, `"`, "'", "''", "a\nb", "a\tb", "é", "\u202e", "{a,b}", "--all", "-x", "%s", "%!d(x)",
	} {
		out, err := exec.Command("sh", "-c", hint.Command("printf '<%%s>' %s", word)).CombinedOutput()
		if err != nil || string(out) != "<"+word+">" {
			t.Errorf("%q as %s: %q, %v", word, hint.Quote(word), out, err)
		}
	}
}

func TestHarmlessWordsAreNotQuoted(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"main", "refs/heads/a_b-1.2", "oci://ghcr.io/a/b:1.2", "k=v,w", "user@host", "100%", "a+b"} {
		if got := hint.Quote(word); got != word {
			t.Errorf("%q is quoted as %s", word, got)
		}
	}
}

func TestOperand(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{"a": "a", "--all": "-- --all", "-$(x)": "-- '-$(x)'", "a-b": "a-b"} {
		if got := hint.Operand(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}
