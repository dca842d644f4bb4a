package resp

import "strconv"

// maxDigits is how many decimal digits surely fit in an int64.
const maxDigits = 18

// ParseInt reads a decimal integer as strictly as Redis does (string2ll): an optional minus
// and digits, without a plus, a blank, a leading zero, or a minus before zero.
func ParseInt(b []byte) (n int64, ok bool) {
	if len(b) == 0 || len(b) > len("-9223372036854775808") {
		return 0, false
	}
	if len(b) > 1 && (b[0] == '0' || b[0] == '+' || b[0] == '-' && b[1] == '0') {
		return 0, false
	}
	if len(b) > maxDigits || b[0] == '-' {
		n, err := strconv.ParseInt(string(b), 10, 64)
		return n, err == nil
	}
	for _, c := range b { // most are short
		if c -= '0'; c > 9 {
			return 0, false
		}
		n = n*10 + int64(c)
	}
	return n, true
}

// What lengthLine returns instead of an index.
const (
	lineCut = 0  // more bytes are needed
	lineBad = -1 // no length can begin so
)

// lengthLine reads the number at b[i:] and the CR LF after it, and returns the index after
// them, lineCut or lineBad. The number is -1, or has up to maxDigits digits. A wrong byte is
// an error even if the line is incomplete.
func lengthLine(b []byte, i int) (n int64, next int) {
	first, minus := i, i < len(b) && b[i] == '-'
	if minus {
		first++
		i++
	}
	for ; i < len(b); i++ {
		c := b[i] - '0'
		if c > 9 {
			break
		}
		if i > first && b[first] == '0' || i-first == maxDigits {
			return 0, lineBad
		}
		n = n*10 + int64(c)
		if minus && n != 1 {
			return 0, lineBad
		}
	}
	switch {
	case i == len(b):
		return 0, lineCut
	case i == first || b[i] != '\r':
		return 0, lineBad
	case i+1 == len(b):
		return 0, lineCut
	case b[i+1] != '\n':
		return 0, lineBad
	}
	if minus {
		n = -1
	}
	return n, i + 2
}
