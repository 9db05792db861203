package budget_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fluxkit/flux/internal/budget"
)

func TestShort(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a", strings.Repeat("x", budget.ErrorText), "", strings.Repeat("ü", budget.ErrorText/2)} {
		if err := errors.New(text); budget.Short(err) != err { //nolint:errorlint // the same error, not an equal one
			t.Errorf("%.20q is shortened", text)
		}
	}
	if err := budget.Short(nil); err != nil {
		t.Error(err)
	}
	long := fmt.Errorf("chart app: %s: %w", strings.Repeat("ü", 1<<20), fs.ErrNotExist)
	short := budget.Short(long)
	text := short.Error()
	if !strings.HasPrefix(text, "chart app: ü") || !strings.HasSuffix(text, "ü: file does not exist") || len(text) > budget.ErrorText+100 || !utf8.ValidString(text) {
		t.Errorf("%d bytes: %.50q", len(text), text)
	}
	if !errors.Is(short, fs.ErrNotExist) {
		t.Error("the cause is lost")
	}
	if !strings.Contains(text, "… (2093") {
		t.Error("the number of bytes that are left out is missing")
	}
}
