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

// NewReader returns what r has, decompressed if its first bytes are those of gzip, zstd or
// bzip2. The reader has no goroutine and need not be closed.
func NewReader(r io.Reader) (io.Reader, error) {
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
