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
	file     io.Closer
}

// maxWindow bounds the memory that a zstd frame may ask for.
const maxWindow = 128 << 20

// open opens path, or stdin for "-".
func (r *run) open(path string) (*source, error) {
	s := &source{modified: time.Now(), file: io.NopCloser(nil)}
	raw := r.Stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, readError(path, err)
		}
		raw, s.file = f, f
		if st, err := f.Stat(); err == nil {
			s.modified = st.ModTime()
		}
	} else if raw == nil {
		return nil, errors.New("-: there is no standard input")
	}
	var err error
	if s.Reader, err = decompress(&countingReader{raw, r.Progress}); err != nil {
		s.file.Close()
		return nil, readError(path, err)
	}
	return s, nil
}

// decompress returns what r has, decompressed as its first bytes say.
func decompress(r io.Reader) (io.Reader, error) {
	buffered := bufio.NewReaderSize(r, 256<<10)
	magic, err := buffered.Peek(4)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		return gzip.NewReader(buffered)
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}), isSkippable(magic):
		// With a concurrency of 1 a decoder needs no Close: it has no goroutine.
		return zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	case bytes.HasPrefix(magic, []byte("BZh")):
		return bzip2.NewReader(buffered), nil
	}
	return buffered, nil
}

// isSkippable reports whether magic begins a skippable frame of zstd (RFC 8878,
// 3.1.2), as a file of pzstd does.
func isSkippable(magic []byte) bool {
	return len(magic) == 4 && magic[0]&^0x0f == 0x50 && bytes.Equal(magic[1:], []byte{0x2a, 0x4d, 0x18})
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

// Read counts the bytes that it reads.
func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.progress.Read.Add(int64(n))
	return n, err
}
