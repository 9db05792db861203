package budget

import "io"

// TooLarge returns an ExceededError for something that is larger than most bytes. Name is the file or
// address, which may be empty, and what begins the sentence.
func TooLarge(name, what string, most int64) error {
	return exceeded(name, "%s is larger than %s", what, Size(most))
}

// TooMany returns an ExceededError for something that has more than most things of a kind. Name is the
// file or address, and what begins the sentence.
func TooMany(name, what, things string, most int64) error {
	return exceeded(name, "%s has more than %d %s", what, most, things)
}

// Reader returns a reader that fails with an error after most bytes. With io.LimitReader, input that is
// too large looks like input that has ended.
func Reader(r io.Reader, most int64, exceeded error) io.Reader {
	return &reader{r, most, exceeded}
}

// Body is Reader for the body of a response.
func Body(body io.ReadCloser, most int64, exceeded error) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{Reader(body, most, exceeded), body}
}

// ReadAll reads r to its end. The error is that of TooLarge if there are more than most bytes.
func ReadAll(r io.Reader, name, what string, most int64) ([]byte, error) {
	return io.ReadAll(Reader(r, most, TooLarge(name, what, most)))
}

type reader struct {
	from     io.Reader
	left     int64
	exceeded error
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if int64(len(p)) > r.left+1 {
		p = p[:r.left+1]
	}
	n, err := r.from.Read(p)
	if r.left -= int64(n); r.left < 0 {
		return 0, r.exceeded
	}
	return n, err
}
