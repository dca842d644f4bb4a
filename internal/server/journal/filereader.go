package journal

import (
	"bufio"
	"io"
)

// A fileReader reads a file from beginning to end, a part at a time.
type fileReader struct {
	r     *bufio.Reader // holds the largest part
	size  int64         // of the file
	at    int64         // where the next part begins
	taken int           // bytes of r that were taken
}

// newFileReader returns a reader of f, whose parts have at most that many bytes. It needs
// no more memory than the length of the file.
func newFileReader(f file, most int) (*fileReader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return &fileReader{r: bufio.NewReaderSize(f, int(min(info.Size(), int64(most)))), size: info.Size()}, nil
}

// peek returns the next n bytes, or the rest of the file. They are valid until the next
// call.
func (r *fileReader) peek(n int) ([]byte, error) {
	if _, err := r.r.Discard(r.taken); err != nil {
		return nil, err
	}
	r.taken = 0
	b, err := r.r.Peek(int(min(int64(n), r.size-r.at)))
	if err == io.EOF {
		err = io.ErrUnexpectedEOF // the file was longer
	}
	return b, err
}

// take consumes n of the bytes that peek has returned.
func (r *fileReader) take(n int) {
	r.at += int64(n)
	r.taken = n
}
