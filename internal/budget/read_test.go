package budget_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/fluxkit/flux/internal/budget"
)

func TestReadAll(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"at once":     func(r io.Reader) io.Reader { return r },
		"by the byte": iotest.OneByteReader,
		"data at EOF": iotest.DataErrReader,
	} {
		for _, size := range []int{0, 1, 999, 1000} {
			text, err := budget.ReadAll(wrap(strings.NewReader(strings.Repeat("x", size))), "", "it", 1000)
			if err != nil || len(text) != size {
				t.Errorf("%s: %d of %d bytes, %v", name, len(text), size, err)
			}
		}
		for _, size := range []int{1001, 5000} {
			_, err := budget.ReadAll(wrap(strings.NewReader(strings.Repeat("x", size))), "file", "it", 1000)
			var exceeded *budget.ExceededError
			if !errors.As(err, &exceeded) || err.Error() != "file: it is larger than 1000 bytes" {
				t.Errorf("%s: %d bytes: %v", name, size, err)
			}
		}
	}
	broken := errors.New("broken")
	if _, err := budget.ReadAll(io.MultiReader(strings.NewReader("x"), iotest.ErrReader(broken)), "", "it", 1000); !errors.Is(err, broken) {
		t.Errorf("a reader that fails: %v", err)
	}
}
