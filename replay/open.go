package replay

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/lately-go/lately/internal/file/decompress"
)

// A source is one file, opened and decompressed.
type source struct {
	io.Reader
	modified time.Time // of the file; now for standard input
	file     io.Closer
}

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
	if s.Reader, err = decompress.NewReader(&countingReader{raw, r.Progress}); err != nil {
		s.file.Close()
		return nil, readError(path, err)
	}
	return s, nil
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

// A countingReader counts the bytes that are read of a file.
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

// Progress is the progress of a Run, to be read while it runs.
type Progress struct {
	Total atomic.Int64 // bytes of all files, as stored; 0 if unknown
	Read  atomic.Int64 // bytes read so far
	Lines atomic.Int64 // lines parsed

	// File is the number of the file that is read, from 1 to Files.
	File  atomic.Int64
	Files int

	// Judging is the number of parts to judge after reading, and Judged the number
	// that are done.
	Judging, Judged atomic.Int64
}
