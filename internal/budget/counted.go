package budget

import "io"

// Counted returns a reader that calls progress with the number of bytes read and their total. Nil is no
// progress.
func Counted(r io.Reader, total int64, progress func(done, total int64)) io.Reader {
	if progress == nil {
		return r
	}
	return &counted{from: r, total: total, progress: progress}
}

type counted struct {
	from        io.Reader
	done, total int64
	progress    func(done, total int64)
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.done += int64(n)
	c.progress(c.done, c.total)
	return n, err
}
