package ratelimit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// MaxBanLine is the longest line that ReadBans takes, in bytes, without its
// end. WriteBans writes none that is longer.
const MaxBanLine = 64 << 10

// WriteBans writes bans as JSON, one object a line. The error is that of w, or
// of a ban that is not valid; those before it have been written.
func WriteBans(w io.Writer, bans iter.Seq[BanRecord]) error {
	b := bufio.NewWriter(w)
	n := 0
	var line []byte
	for r := range bans {
		n++
		var err error
		line, err = r.appendJSON(line[:0])
		if err == nil && len(line)-1 > MaxBanLine {
			err = fmt.Errorf("its line would be longer than %d bytes", MaxBanLine)
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

// ReadBans yields the bans that WriteBans has written to what r reads. Empty
// lines are skipped. A line that is not a ban yields an error with its number,
// and the reading goes on with the next; an error of r is the last. No more
// than a line is kept in memory, and nothing of one that is too long.
func ReadBans(r io.Reader) iter.Seq2[BanRecord, error] {
	return func(yield func(BanRecord, error) bool) {
		b := bufio.NewReaderSize(r, MaxBanLine+2)
		for n := 1; ; n++ {
			line, long, err := banLineOf(b)
			var ban BanRecord
			var bad error
			switch line = bytes.TrimSpace(line); {
			case long:
				bad = fmt.Errorf("line %d: it is longer than %d bytes", n, MaxBanLine)
			case len(line) > 0:
				if bad = json.Unmarshal(line, &ban); bad != nil {
					bad = fmt.Errorf("line %d: %w", n, bad)
				}
			}
			if (bad != nil || len(line) > 0) && !yield(ban, bad) {
				return
			}
			if err != nil {
				if err != io.EOF {
					yield(BanRecord{}, fmt.Errorf("line %d: %w", n, err))
				}
				return
			}
		}
	}
}

// banLineOf returns the next line, and whether it is too long; then it is
// skipped. An error may come with the last line.
func banLineOf(b *bufio.Reader) (line []byte, long bool, err error) {
	line, err = b.ReadSlice('\n')
	for err == bufio.ErrBufferFull {
		long = true
		_, err = b.ReadSlice('\n')
	}
	long = long || len(bytes.TrimRight(line, "\r\n")) > MaxBanLine
	if long {
		line = nil
	}
	return line, long, err
}
