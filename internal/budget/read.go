package budget

import (
	"context"
	"io"
)

// TooLarge returns an ExceededError for input that is larger than limit bytes. name is the file
// or address and may be empty. The subject of the error message is what.
func TooLarge(name, what string, limit int64) error {
	return exceeded(name, "%s is larger than %s", what, Size(limit))
}

// TooMany returns an ExceededError for input with more than limit things. name is the file or
// address. The subject of the error message is what.
func TooMany(name, what, things string, limit int64) error {
	return exceeded(name, "%s has more than %d %s", what, limit, things)
}

// Checked returns a reader that calls check with the result of each read: the bytes and the error. If check returns
// an error, the reader returns it in place of the result.
func Checked(r io.Reader, check func(read []byte, err error) error) io.Reader {
	return &checked{r, check}
}

type checked struct {
	from  io.Reader
	check func(read []byte, err error) error
}

// Read implements io.Reader.
func (c *checked) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	if failed := c.check(p[:n], err); failed != nil {
		return 0, failed
	}
	return n, err
}

// Closing returns a reader with the Close method of another one, such as a bounded reader of a response body.
func Closing(r io.Reader, closer io.Closer) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{r, closer}
}

// Reader returns a reader that fails with an error after limit bytes. io.LimitReader would silently
// truncate input that is too large.
func Reader(r io.Reader, limit int64, exceeded error) io.Reader {
	left := limit
	return Checked(r, func(read []byte, _ error) error {
		if left -= int64(len(read)); left < 0 {
			return exceeded
		}
		return nil
	})
}

// Body is like Reader for a response body.
func Body(body io.ReadCloser, limit int64, exceeded error) io.ReadCloser {
	return Closing(Reader(body, limit, exceeded), body)
}

// ReadAll reads r to its end. It returns the error of TooLarge if r contains more than limit bytes.
func ReadAll(r io.Reader, name, what string, limit int64) ([]byte, error) {
	return io.ReadAll(Reader(r, limit, TooLarge(name, what, limit)))
}

// Head reads the first limit bytes of r, such as the message in an error response, and ignores the rest.
func Head(r io.Reader, limit int64) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, limit))
}

// Interruptible returns a reader that fails when a context ends, even if no read blocks.
func Interruptible(ctx context.Context, r io.Reader) io.Reader {
	return Checked(r, func([]byte, error) error { return context.Cause(ctx) })
}

// Counted returns a reader that calls progress with the number of bytes read and their total. progress
// may be nil.
func Counted(r io.Reader, total int64, progress func(done, total int64)) io.Reader {
	if progress == nil {
		return r
	}
	done := int64(0)
	return Checked(r, func(read []byte, _ error) error {
		done += int64(len(read))
		progress(done, total)
		return nil
	})
}

// CheckedWriter returns a writer that calls check before each write, and does not write if check returns an error.
func CheckedWriter(w io.Writer, check func(next []byte) error) io.Writer {
	return &checkedWriter{w, check}
}

type checkedWriter struct {
	to    io.Writer
	check func(next []byte) error
}

// Write implements io.Writer.
func (c *checkedWriter) Write(p []byte) (int, error) {
	if err := c.check(p); err != nil {
		return 0, err
	}
	return c.to.Write(p)
}

// Writer returns a writer that fails with an error before it writes more than limit bytes.
func Writer(w io.Writer, limit int64, exceeded error) io.Writer {
	left := limit
	return CheckedWriter(w, func(next []byte) error {
		if left -= int64(len(next)); left < 0 {
			return exceeded
		}
		return nil
	})
}
