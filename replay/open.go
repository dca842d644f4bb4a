package replay

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// A source is one file, opened and decompressed.
type source struct {
	io.Reader
	modified time.Time // of the file; now for standard input
	close    func()
}

// maxWindow bounds the memory that a zstd frame may ask for.
const maxWindow = 128 << 20

// open opens path, or stdin for "-", and looks at the first bytes for its
// compression.
func (r *run) open(path string) (*source, error) {
	raw, modified, closeFile, err := r.openRaw(path)
	if err != nil {
		return nil, err
	}
	s := &source{modified: modified, close: closeFile}
	buffered := bufio.NewReaderSize(&countingReader{raw, r.Progress}, 256<<10)
	magic, err := buffered.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		closeFile()
		return nil, readError(path, err)
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(buffered)
		if err != nil {
			closeFile()
			return nil, readError(path, err)
		}
		s.Reader = z
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}), isSkippable(magic):
		z, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			closeFile()
			return nil, readError(path, err)
		}
		s.Reader, s.close = z, func() { z.Close(); closeFile() }
	case bytes.HasPrefix(magic, []byte("BZh")):
		s.Reader = bzip2.NewReader(buffered)
	default:
		s.Reader = buffered
	}
	return s, nil
}

// isSkippable reports whether magic begins a skippable frame of zstd (RFC 8878,
// 3.1.2), as a file of pzstd does.
func isSkippable(magic []byte) bool {
	return len(magic) == 4 && magic[0]&^0x0f == 0x50 && bytes.Equal(magic[1:], []byte{0x2a, 0x4d, 0x18})
}

func (r *run) openRaw(path string) (raw io.Reader, modified time.Time, closeFile func(), err error) {
	if path == "-" {
		if r.Stdin == nil {
			return nil, time.Time{}, nil, errors.New("-: there is no standard input")
		}
		return r.Stdin, time.Now(), func() {}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, time.Time{}, nil, readError(path, err)
	}
	st, err := f.Stat()
	if err == nil && st.IsDir() {
		err = errors.New("it is a directory; allowed is a file")
	}
	if err != nil {
		f.Close()
		return nil, time.Time{}, nil, readError(path, err)
	}
	return f, st.ModTime(), func() { f.Close() }, nil
}

// readError makes a sentence of what went wrong with path.
func readError(path string, err error) error {
	var perr *os.PathError
	if errors.As(err, &perr) {
		err = perr.Err
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s: the compressed data ends too early; what came before is in the report", path)
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		return fmt.Errorf("%s: the gzip data is damaged; what came before is in the report", path)
	}
	return fmt.Errorf("%s: cannot be read: %w", path, err)
}

// countingReader counts the bytes of a file as they are read.
type countingReader struct {
	io.Reader
	progress *Progress
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.progress.Read.Add(int64(n))
	return n, err
}
