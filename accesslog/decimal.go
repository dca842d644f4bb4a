package accesslog

import "bytes"

// readDecimal reads a number, [-]digits[.digits][e[+-]digits], of units of 10^-power
// seconds, power being 0, 3, 6 or 9, as seconds and nanoseconds: floored, without rounding in between. A time
// outside the years 1 to 9999 is not read.
func readDecimal(s []byte, power int) (sec, nsec int64, ok bool) {
	if 0 < len(s) && len(s) <= min(11+power, 18) { // most are whole numbers
		n, i := int64(0), 0
		for ; i < len(s) && isDigit(s[i]); i++ {
			n = n*10 + int64(s[i]-'0')
		}
		if i == len(s) {
			unit := [...]int64{1, 1e3, 1e6, 1e9}[power/3]
			return n / unit, n % unit * (1e9 / unit), true
		}
	}
	negative := len(s) > 0 && s[0] == '-'
	if negative {
		s = s[1:]
	}
	whole, rest := leadingDigits(s)
	var fraction []byte
	if len(rest) > 0 && rest[0] == '.' {
		if fraction, rest = leadingDigits(rest[1:]); len(fraction) == 0 {
			return 0, 0, false
		}
	}
	exponent, rest, ok := leadingExponent(rest)
	if !ok || len(whole) == 0 || len(rest) > 0 {
		return 0, 0, false
	}
	place := len(whole) + exponent - power // the digit before had the value 10^place
	finer := false                         // there are digits below a nanosecond
	for _, digits := range [2][]byte{whole, fraction} {
		for _, c := range digits {
			digit := int64(c - '0')
			place--
			switch {
			case place >= 0:
				if sec = sec*10 + digit; sec > maxSeconds {
					return 0, 0, false
				}
			case place >= -9:
				nsec = nsec*10 + digit
			default:
				finer = finer || digit > 0
			}
		}
	}
	for ; place > 0 && 0 < sec && sec <= maxSeconds; place-- {
		sec *= 10
	}
	for place = min(place, 0); place > -9; place-- {
		nsec *= 10
	}
	if negative {
		sec, nsec = negate(sec, nsec, finer)
	}
	return sec, nsec, minSeconds <= sec && sec <= maxSeconds
}

// negate returns -(sec + nsec), less the finer digits that were cut off, floored.
func negate(sec, nsec int64, finer bool) (int64, int64) {
	if finer {
		nsec++
	}
	if nsec == 0 {
		return -sec, 0
	}
	return -sec - 1, 1_000_000_000 - nsec
}

// maxExponent bounds what an exponent is read as. A line holds at most MaxLine
// digits, so with one beyond it a number is zero or out of range.
const maxExponent = 1 << 20

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

// appendSeconds appends a number of units of 10^-scale seconds as a number of seconds, and
// returns it too. It is nil for a value that is no duration, such as a dash or -1.
func appendSeconds(dst, number []byte, scale int) (seconds, all []byte) {
	if len(number) > 0 && number[0] == '+' { // HAProxy, of a request that has not ended
		number = number[1:]
	}
	digits, rest := leadingDigits(number)
	switch {
	case len(digits) == 0:
		return nil, dst
	case scale == 0:
		return number, dst
	case len(rest) > 0 && (rest[0] != '.' || !allDigits(rest[1:])):
		return nil, dst
	}
	n := len(dst)
	if whole := len(digits) - scale; whole > 0 {
		dst = append(append(dst, digits[:whole]...), '.')
		dst = append(dst, digits[whole:]...)
	} else {
		dst = append(append(dst, "0.000000000"[:2-whole]...), digits...)
	}
	if len(rest) > 0 {
		dst = append(dst, rest[1:]...)
	}
	dst = bytes.TrimSuffix(bytes.TrimRight(dst, "0"), []byte("."))
	return dst[n:len(dst):len(dst)], dst
}
