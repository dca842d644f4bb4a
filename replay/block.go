package replay

import (
	"bytes"
	"errors"
	"io"

	"github.com/lately-go/lately/accesslog"
)

// A block is a number of whole lines of a file.
type block struct {
	file   int
	seq    int              // position among the blocks of the file
	format accesslog.Format // of data's first line; unknown while the file has had no line in data
	data   []byte           // ends with a newline, except at the end of the file

	// tooLong is true if a line that is too long, and was skipped, comes after data.
	tooLong bool
	end     bool // the file has no other block; data is empty
}

// blockSize is how much is read at once: large enough that the transfer of a block to
// another core costs little, small enough for its cache.
const blockSize = 512 << 10

// A lineChunker divides a file into blocks of whole lines.
type lineChunker struct {
	src  io.Reader
	rest []byte // the beginning of a line, cut off from the last block
	long bool   // rest's line is too long: skip up to its end
	err  error  // why reading ended
}

// next returns the data of the next block, in buf, which must be larger than
// the longest line, and whether a line that is too long comes after it. At the
// end it returns neither; see failure.
func (c *lineChunker) next(buf []byte) (data []byte, tooLong bool) {
	for {
		n := copy(buf, c.rest)
		c.rest = nil
		for c.err == nil && n < len(buf) {
			var got int
			got, c.err = c.src.Read(buf[n:])
			n += got
		}
		data = buf[:n]
		if c.long {
			end := bytes.IndexByte(data, '\n')
			if end < 0 && c.err == nil {
				continue
			}
			c.long = false
			if end >= 0 {
				c.keep(data[end+1:])
			}
			return nil, true
		}
		if c.err != nil {
			return data, false
		}
		end := bytes.LastIndexByte(data, '\n') + 1
		if len(data)-end > accesslog.MaxLine+1 { // +1 for a '\r'
			c.long = true
		} else {
			c.keep(data[end:])
		}
		if end > 0 {
			return data[:end], false
		}
	}
}

// keep copies rest, since the buffer that it is in goes to a worker.
func (c *lineChunker) keep(rest []byte) { c.rest = append([]byte(nil), rest...) }

// failure returns why reading ended, nil when the file did.
func (c *lineChunker) failure() error {
	if errors.Is(c.err, io.EOF) {
		return nil
	}
	return c.err
}
