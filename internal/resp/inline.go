package resp

import (
	"bytes"
	"encoding/hex"
)

// inline reads the line at the start of the buffer as a command. It returns false if the
// line is incomplete or r.err is set. r.args is empty for a line of blanks.
func (r *Reader) inline() bool {
	most := r.limits.Inline + len("\r\n")
	line := r.in.buf[r.in.start:min(r.in.end, r.in.start+most)]
	seen := min(r.pos-r.in.start, len(line))
	n := bytes.IndexByte(line[seen:], '\n')
	if n < 0 {
		r.pos = r.in.start + len(line)
		if len(line) == most {
			r.fail(faultInline)
		}
		return false
	}
	n += seen
	behind := r.in.start + n + 1
	if n > 0 && line[n-1] == '\r' {
		n--
	}
	if n > r.limits.Inline {
		r.fail(faultInline)
		return false
	}
	args, fault := splitInline(r.args[:0], line[:n], &r.limits)
	if fault != "" {
		r.fail(fault)
		return false
	}
	r.args, r.pos, r.in.start = args, behind, behind
	return cap(args) <= keepArgs || r.payArgs()
}

// splitInline appends the words of a line to args. Words are separated by blanks. In
// quotes, blanks are part of the word; a blank must follow the closing quote. In double
// quotes \n, \r, \t, \b, \a and \xHH are the bytes they are in C, and a backslash before
// any other byte is that byte; in single quotes only \' is special. (This is what
// sdssplitargs of Redis does.)
//
// Quoted words are decoded in place: none becomes longer.
func splitInline(args [][]byte, line []byte, limits *Limits) (_ [][]byte, fault string) {
	if bytes.IndexByte(line, 0) >= 0 {
		return args, faultNUL
	}
	for i := 0; ; {
		for i < len(line) && isBlank(line[i]) {
			i++
		}
		if i == len(line) {
			break
		}
		word, next := inlineWord(line, i)
		switch {
		case next < 0:
			return args, faultQuotes
		case len(args) == limits.Args:
			return args, faultInlineArgs
		case len(word) > limits.Bulk:
			return args, faultInlineArg
		}
		args, i = append(args, word), next
	}
	if len(args) > 0 && isHTTP(args[0]) {
		return args, faultHTTP
	}
	return args, ""
}

// isHTTP reports whether a line begins like an HTTP request of a browser: its request line
// or, for methods that are commands too, its first header.
func isHTTP(word []byte) bool {
	return bytes.EqualFold(word, []byte("post")) || bytes.EqualFold(word, []byte("host:"))
}

// inlineWord decodes the word that begins at line[i] and returns it with the index
// after it, -1 if a quote is not closed or followed by a byte that is not a blank.
func inlineWord(line []byte, i int) (word []byte, next int) {
	start := i
	for i < len(line) && !endsWord(line[i]) && line[i] != '"' && line[i] != '\'' {
		i++
	}
	to := i // where the next decoded byte goes
	for i < len(line) && !endsWord(line[i]) {
		quote := line[i]
		if quote != '"' && quote != '\'' {
			line[to] = quote
			to, i = to+1, i+1
			continue
		}
		for i++; ; to++ {
			if i == len(line) {
				return nil, -1
			}
			if line[i] == quote {
				break
			}
			line[to], i = quotedByte(line, i, quote)
		}
		i++
		if i < len(line) && !isBlank(line[i]) {
			return nil, -1
		}
		break
	}
	return line[start:to:to], i
}

// quotedByte decodes the byte at line[i] inside quotes, and returns the index of the next.
func quotedByte(line []byte, i int, quote byte) (c byte, next int) {
	if line[i] != '\\' || i+1 == len(line) || quote == '\'' && line[i+1] != '\'' {
		return line[i], i + 1
	}
	c = line[i+1]
	if quote == '\'' {
		return c, i + 2
	}
	switch c {
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'b':
		c = '\b'
	case 'a':
		c = '\a'
	case 'x':
		var b [1]byte
		if i+3 < len(line) {
			if _, err := hex.Decode(b[:], line[i+2:i+4]); err == nil {
				return b[0], i + 4
			}
		}
	}
	return c, i + 2
}

// isBlank reports whether c separates words: C's isspace.
func isBlank(c byte) bool { return c == ' ' || c-'\t' <= '\r'-'\t' }

// endsWord reports whether c ends a word outside quotes. In Redis, VT and FF do not,
// although no word begins with them.
func endsWord(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }
