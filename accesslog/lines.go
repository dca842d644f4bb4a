package accesslog

import "bytes"

// MaxLine is the length of the longest good line in bytes, without its line
// end. A longer one is bad for every format, and readers skip it without
// holding it.
const MaxLine = 64 << 10

// CutLine cuts data at its first '\n', which is in neither part, and removes
// one '\r' from the end of the line. When data has no '\n', the line is all of
// data, less such a '\r', rest is empty and ok is false: only the caller knows
// whether that is the last line or a part of one.
func CutLine(data []byte) (line, rest []byte, ok bool) {
	line, rest, ok = bytes.Cut(data, []byte{'\n'})
	return trimReturn(line), rest, ok
}

const byteOrderMark = "\ufeff"

// trimMarks returns line without the byte order marks in front of it.
func trimMarks(line []byte) []byte {
	for bytes.HasPrefix(line, []byte(byteOrderMark)) {
		line = line[len(byteOrderMark):]
	}
	return line
}

func trimReturn(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		return line[:n-1]
	}
	return line
}
