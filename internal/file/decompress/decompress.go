// Package decompress reads compressed files. It detects the format from the
// first bytes.
package decompress

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds the memory that a zstd frame may request.
const maxWindow = 128 << 20

// others are the first bytes of files that must be converted before, with the command for that.
var others = map[string]string{
	"\xfd7zX":    "xz data: must be plain text, gzip, zstd or bzip2; xz -dc FILE prints the text",
	"PK\x03\x04": "a zip archive: must be plain text, gzip, zstd or bzip2; unzip -p FILE prints the text",
	"\xff\xfe":   "text in UTF-16: must be UTF-8; iconv -f UTF-16 -t UTF-8 FILE converts it",
	"\xfe\xff":   "text in UTF-16: must be UTF-8; iconv -f UTF-16 -t UTF-8 FILE converts it",
}

// NewReader returns what r has, decompressed if its first bytes are those of gzip, zstd or
// bzip2. Its error names other forms of data that are no log. The reader has no goroutine and need not be closed.
func NewReader(r io.Reader) (io.Reader, error) {
	decompressed, err := newReader(bufio.NewReaderSize(r, 256<<10))
	if err != nil {
		return nil, err
	}
	const magic, at = "ustar", 257
	buffered := bufio.NewReaderSize(decompressed, 4<<10)
	head, err := buffered.Peek(at + len(magic))
	switch {
	case err != nil: // of a reader that may return another one the next time
		return io.MultiReader(bytes.NewReader(head), failed{err}), nil
	case bytes.HasSuffix(head, []byte(magic)):
		return nil, errors.New("a tar archive: must be a log; tar -xOf FILE prints the text of its files")
	}
	return buffered, nil
}

// failed returns its error.
type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }

func newReader(buffered *bufio.Reader) (io.Reader, error) {
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
	for begin, problem := range others {
		if bytes.HasPrefix(magic, []byte(begin)) {
			return nil, errors.New(problem)
		}
	}
	return buffered, nil
}

// isSkippable reports whether magic begins a skippable frame of zstd (RFC 8878,
// 3.1.2), as a file of pzstd does.
func isSkippable(magic []byte) bool {
	return len(magic) == 4 && magic[0]&^0x0f == 0x50 && bytes.Equal(magic[1:], []byte{0x2a, 0x4d, 0x18})
}
