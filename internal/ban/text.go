package ban

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// MaxLine is the longest line that Write writes and Read reads, in bytes without its end.
const MaxLine = 64 << 10

// Write writes records as JSON, one object a line. The error is that of w, or of a record
// that is not valid; those before it have been written.
func Write(w io.Writer, records iter.Seq[Record]) error {
	b := bufio.NewWriter(w)
	n := 0
	var line []byte
	for r := range records {
		n++
		var err error
		line, err = r.AppendJSON(line[:0])
		if err == nil && len(line)-1 > MaxLine {
			err = fmt.Errorf("line: too long (max %d bytes)", MaxLine)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("ban %d: %w", n, err), b.Flush())
		}
		if _, err := b.Write(line); err != nil {
			return err
		}
	}
	return b.Flush()
}

// Read yields the records that Write has written. Empty lines are skipped. A line that is
// not a record yields an error with its number, and reading goes on with the next; an error
// of r is the last. At most one line is kept in memory.
func Read(r io.Reader) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		b := bufio.NewReaderSize(r, MaxLine+2)
		for n := 1; ; n++ {
			line, long, err := readLine(b)
			var record Record
			var bad error
			switch line = bytes.TrimSpace(line); {
			case long:
				bad = fmt.Errorf("line %d: too long (max %d bytes)", n, MaxLine)
			case len(line) > 0:
				if bad = json.Unmarshal(line, &record); bad != nil {
					bad = fmt.Errorf("line %d: %w", n, bad)
				}
			}
			if (bad != nil || len(line) > 0) && !yield(record, bad) {
				return
			}
			if err != nil {
				if err != io.EOF {
					yield(Record{}, fmt.Errorf("line %d: %w", n, err))
				}
				return
			}
		}
	}
}

// readLine returns the next line, and whether it is too long; it is skipped then. An error
// may come with the last line.
func readLine(b *bufio.Reader) (line []byte, long bool, err error) {
	line, err = b.ReadSlice('\n')
	for err == bufio.ErrBufferFull {
		long = true
		_, err = b.ReadSlice('\n')
	}
	long = long || len(bytes.TrimRight(line, "\r\n")) > MaxLine
	if long {
		line = nil
	}
	return line, long, err
}
