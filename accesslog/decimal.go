package accesslog

// A decimal is the text of a number, taken apart: 0.DIGITS times ten to the
// power of point, where DIGITS are those of whole and then those of fraction.
type decimal struct {
	negative        bool
	whole, fraction []byte
	point           int
}

// maxExponent bounds what an exponent is read as. A line holds at most MaxLine
// digits, so one beyond it means zero or out of range either way.
const maxExponent = 1 << 20

// parseDecimal reads [-]digits[.digits][e[+-]digits].
func parseDecimal(s []byte) (d decimal, ok bool) {
	if len(s) > 0 && s[0] == '-' {
		d.negative, s = true, s[1:]
	}
	d.whole, s = leadingDigits(s)
	if len(d.whole) == 0 {
		return d, false
	}
	if len(s) > 0 && s[0] == '.' {
		d.fraction, s = leadingDigits(s[1:])
		if len(d.fraction) == 0 {
			return d, false
		}
	}
	exponent, s, ok := leadingExponent(s)
	d.point = len(d.whole) + exponent
	return d, ok && len(s) == 0
}

// leadingExponent reads the optional e[+-]digits at the start of s.
func leadingExponent(s []byte) (n int, rest []byte, ok bool) {
	if len(s) == 0 || s[0] != 'e' && s[0] != 'E' {
		return 0, s, true
	}
	s = s[1:]
	negative := false
	if len(s) > 0 && (s[0] == '+' || s[0] == '-') {
		negative, s = s[0] == '-', s[1:]
	}
	digits, rest := leadingDigits(s)
	for _, c := range digits {
		n = min(n*10+int(c-'0'), maxExponent)
	}
	if negative {
		n = -n
	}
	return n, rest, len(digits) > 0
}

func leadingDigits(s []byte) (digits, rest []byte) {
	i := 0
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return s[:i], s[i:]
}

func (d decimal) len() int { return len(d.whole) + len(d.fraction) }

// at returns the digit of that index, 0 outside.
func (d decimal) at(i int) int64 {
	switch {
	case i < 0 || i >= d.len():
		return 0
	case i < len(d.whole):
		return int64(d.whole[i] - '0')
	}
	return int64(d.fraction[i-len(d.whole)] - '0')
}

// readDecimal reads a number of units of 10^-power seconds, as seconds and
// nanoseconds, floored, without any rounding between. A time outside the years
// 1 to 9999 is not read.
func readDecimal(s []byte, power int) (sec, nsec int64, ok bool) {
	if sec, nsec, ok = readShort(s, power); ok {
		return sec, nsec, true
	}
	d, ok := parseDecimal(s)
	if !ok {
		return 0, 0, false
	}
	point := d.point - power
	first := 0
	for first < d.len() && d.at(first) == 0 {
		first++
	}
	if first == d.len() {
		return 0, 0, true
	}
	if point-first > len("253402300799") {
		return 0, 0, false
	}
	for i := first; i < point; i++ {
		sec = sec*10 + d.at(i)
	}
	for i := point; i < point+9; i++ {
		nsec = nsec*10 + d.at(i)
	}
	if d.negative {
		sec, nsec = negate(sec, nsec, d.restAfter(point+9))
	}
	return sec, nsec, minSeconds <= sec && sec <= maxSeconds
}

// readShort is readDecimal for whole numbers of few digits, as most are. What
// it does not read may still be a number.
func readShort(s []byte, power int) (sec, nsec int64, ok bool) {
	unit, most := int64(1), 11
	for range power {
		unit *= 10
		most++
	}
	if len(s) == 0 || len(s) > min(most, 18) {
		return 0, 0, false
	}
	var n int64
	for _, c := range s {
		if !isDigit(c) {
			return 0, 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n / unit, n % unit * (1_000_000_000 / unit), true
}

// restAfter reports whether there is a digit other than 0 at i or behind.
func (d decimal) restAfter(i int) bool {
	for i = max(i, 0); i < d.len(); i++ {
		if d.at(i) != 0 {
			return true
		}
	}
	return false
}

// negate returns -(sec + nsec), less the rest that was cut off, floored.
func negate(sec, nsec int64, rest bool) (int64, int64) {
	if rest {
		nsec++
	}
	if nsec == 0 {
		return -sec, 0
	}
	return -sec - 1, 1_000_000_000 - nsec
}
