package resp

import (
	"math/bits"
	"strconv"
)

// maxDigits is how many decimal digits surely fit in an int64.
const maxDigits = 18

// ParseInt reads a decimal integer as strictly as Redis does (string2ll): an
// optional minus and digits, without a plus, a blank, a leading zero, a minus
// before zero, or a value outside int64. It is meant for arguments as well; the
// cost is linear in the digits and nothing is allocated.
func ParseInt(b []byte) (n int64, ok bool) {
	digits := b
	if len(b) > 0 && b[0] == '-' {
		digits = b[1:]
	}
	if len(digits) == 0 || len(digits) > maxDigits+1 || digits[0] == '0' && len(b) > 1 {
		return 0, false
	}
	var u uint64
	for _, c := range digits {
		c -= '0'
		if c > 9 {
			return 0, false
		}
		u = u*10 + uint64(c) // 19 digits fit in 64 bits
	}
	if len(digits) < len(b) {
		return int64(-u), u <= 1<<63
	}
	return int64(u), u < 1<<63
}

// What lengthLine returns in place of an index.
const (
	lineCut = 0  // the line goes on behind the bytes that are there
	lineBad = -1 // no length can begin so
)

// lengthLine reads the number at b[i:] and the CR LF behind it, and returns the
// index behind them, lineCut or lineBad. The number is -1, or from 0 to ten to
// the power of maxDigits. A wrong byte is found as soon as it is there,
// whatever follows.
func lengthLine(b []byte, i int) (n int64, next int) {
	if i >= len(b) {
		return 0, lineCut
	}
	if b[i] == '-' {
		return minusOneLine(b, i+1)
	}
	first := i
	for ; i < len(b); i++ {
		c := b[i] - '0'
		if c > 9 {
			break
		}
		if i > first && b[first] == '0' || i-first == maxDigits {
			return 0, lineBad
		}
		n = n*10 + int64(c)
	}
	switch {
	case i == len(b):
		return 0, lineCut
	case i == first:
		return 0, lineBad
	}
	return n, lineEnd(b, i)
}

func minusOneLine(b []byte, i int) (n int64, next int) {
	switch {
	case i >= len(b):
		return 0, lineCut
	case b[i] != '1':
		return 0, lineBad
	case i+1 == len(b):
		return 0, lineCut
	}
	return -1, lineEnd(b, i+1)
}

// lineEnd returns the index behind the CR LF that must stand at b[i:]. There
// is a byte at i.
func lineEnd(b []byte, i int) (next int) {
	switch {
	case b[i] != '\r':
		return lineBad
	case i+1 == len(b):
		return lineCut
	case b[i+1] != '\n':
		return lineBad
	}
	return i + 2
}

// appendInt is strconv.AppendInt in base 10, without the copy from a buffer of
// its own: the place of the last digit is known beforehand.
func appendInt(b []byte, n int64) []byte {
	if uint64(n) < 10 {
		return append(b, '0'+byte(n))
	}
	u := uint64(n)
	if n < 0 {
		b, u = append(b, '-'), -u
	}
	i := len(b) + decimals(u)
	if i > cap(b) {
		return strconv.AppendUint(b, u, 10)
	}
	b = b[:i]
	for ; u >= 100; u /= 100 {
		i -= 2
		pair := u % 100 * 2
		b[i+1], b[i] = pairs[pair+1], pairs[pair]
	}
	if u >= 10 {
		i--
		b[i] = '0' + byte(u%10)
		u /= 10
	}
	b[i-1] = '0' + byte(u)
	return b
}

// pairs are the numbers from 00 to 99.
const pairs = "00010203040506070809" + "10111213141516171819" +
	"20212223242526272829" + "30313233343536373839" +
	"40414243444546474849" + "50515253545556575859" +
	"60616263646566676869" + "70717273747576777879" +
	"80818283848586878889" + "90919293949596979899"

// powers[i] is ten to the power of i, and 0 in place of 1.
var powers = [20]uint64{
	0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9,
	1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
}

// decimals returns the number of digits of u. 1233/4096 is a little more than
// the binary logarithm's share of the decimal one (S. E. Anderson, "Bit
// Twiddling Hacks").
func decimals(u uint64) int {
	n := bits.Len64(u) * 1233 >> 12
	if u >= powers[n] {
		n++
	}
	return n
}

// parseDouble reads the text of a version 3 double: a decimal number with an
// optional fraction and exponent, "inf", "-inf" or "nan".
func parseDouble(b []byte) (f float64, ok bool) {
	switch string(b) {
	case "inf", "-inf", "nan":
	default:
		if !isDecimal(b) {
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(string(b), 64)
	return f, err == nil
}

// isDecimal reports whether b is [-]digits[.digits][e[sign]digits].
// strconv.ParseFloat reads more than that.
func isDecimal(b []byte) bool {
	if len(b) > 0 && b[0] == '-' {
		b = b[1:]
	}
	n := leadingDigits(b)
	if n == 0 {
		return false
	}
	if b = b[n:]; len(b) > 0 && b[0] == '.' {
		if n = leadingDigits(b[1:]); n == 0 {
			return false
		}
		b = b[1+n:]
	}
	if len(b) > 0 && (b[0] == 'e' || b[0] == 'E') {
		if b = b[1:]; len(b) > 0 && (b[0] == '+' || b[0] == '-') {
			b = b[1:]
		}
		n = leadingDigits(b)
		return n > 0 && n == len(b)
	}
	return len(b) == 0
}

// isWhole reports whether b is the text of a big number: an optional minus and
// digits.
func isWhole(b []byte) bool {
	if len(b) > 0 && b[0] == '-' {
		b = b[1:]
	}
	return len(b) > 0 && leadingDigits(b) == len(b)
}

func leadingDigits(b []byte) int {
	n := 0
	for n < len(b) && b[n]-'0' <= 9 {
		n++
	}
	return n
}
